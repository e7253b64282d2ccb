//! What the slowest episodes of a run have in common, against chance. Every test that is made counts in the adjustment of
//! their p values. The tests and their simulated level: docs/statistics.md.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use super::rows::{Rows, UNKNOWN};
use super::slow::SlowEpisode;
use super::wakeups::Watched;
use crate::ping::Placement;
use crate::recording::manifest::Manifest;
use crate::stats::{Claims, at_least, holm, rayleigh, resultant, rotated};
use crate::units::Nanos;
use crate::units::human::span;

/// The slowest episodes that are tested, and the fewest.
const EPISODES: usize = 50;
const EPISODES_MIN: usize = 10;
/// A label is named from so many episodes on.
const HITS_MIN: u64 = 3;
/// The probability of any false claim about a run.
const LEVEL: f64 = 0.05;
/// Periods of the host: the timer tick at 1000, 250 and 100 Hz, and of sampling.
const PERIODS: [Nanos; 4] =
    [Nanos::from_millis(1), Nanos::from_millis(4), Nanos::from_millis(10), Nanos::from_millis(100)];
/// From this mean resultant of all probes on, these are at some phases of a period only, as on a schedule with this interval.
const ALIASED: f64 = 0.1;
/// Probes whose phases are taken for that.
const PHASES: usize = 10_000;

/// What was asked of the slowest episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommonTest {
    SentCpu,
    ReceivedCpu,
    ReflectorCpu,
    /// How the CPUs of both ends are related.
    Placement,
    /// Whether a wake-up on the receiving CPU was late meanwhile.
    LateWakeup,
    /// The phase in a period.
    Period,
}

/// A test, and what it found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommonCause {
    pub test: CommonTest,
    /// In words, without figures: `sent on CPU 1`.
    pub what: String,
    /// Of the period that was tested.
    pub period_ns: Option<Nanos>,
    /// Episodes that were tested, and those that have it; `None` of a period.
    pub episodes: u64,
    pub hits: Option<u64>,
    /// How many of the episodes chance alone would give it.
    pub expected: Option<f64>,
    /// `None` where the data cannot answer, as of a period of the schedule.
    pub p_value: Option<f64>,
    /// By Holm over all tests of the run.
    pub adjusted_p_value: Option<f64>,
    /// Whether it is claimed: the adjusted p value is at most 0.05; of periods that divide each other, one.
    pub is_claimed: bool,
    /// The mean resultant of a period: how clear its cluster is, 0 to 1.
    #[serde(skip)]
    pub resultant: f64,
}

/// Every test on the slowest of `episodes`, the clearest first; empty if these are too few.
pub(super) fn tests(
    manifest: &Manifest,
    rows: &Rows,
    episodes: &[SlowEpisode],
    watched: Option<&Watched>,
) -> Vec<CommonCause> {
    let worst: Vec<usize> = episodes.iter().take(EPISODES).map(|episode| episode.worst.place).collect();
    if worst.len() < EPISODES_MIN {
        return Vec::new();
    }
    let mut worst = WorstPlaces { rows, worst, random: Pcg64Mcg::seed_from_u64(0) };
    let mut found = worst.of_cpus(manifest);
    found.extend(watched.map(|watched| worst.of_wakeups(watched)));
    found.extend(PERIODS.map(|period| worst.of_period(episodes, period)));
    adjust(&mut found);
    keep_one_period(&mut found);
    found
}

/// The places of the slowest probes of the worst episodes among all rows.
struct WorstPlaces<'a> {
    rows: &'a Rows,
    worst: Vec<usize>,
    random: Pcg64Mcg,
}

impl WorstPlaces<'_> {
    fn of_cpus(&mut self, manifest: &Manifest) -> Vec<CommonCause> {
        let tests = [
            (CommonTest::SentCpu, "sent"),
            (CommonTest::ReceivedCpu, "received"),
            (CommonTest::ReflectorCpu, "answered"),
        ];
        let mut found = Vec::new();
        for ((test, verb), cpus) in tests.into_iter().zip(&self.rows.cpus) {
            found.extend(self.of_labels(test, &|place| cpus[place], |cpu| format!("{verb} on CPU {cpu}")));
        }
        if !manifest.spec.target.is_this_host() {
            return found;
        }
        let [sent, received, reflected] = &self.rows.cpus;
        let pairs: BTreeSet<(u16, u16)> = sent.iter().copied().zip(reflected.iter().copied()).collect();
        let of = |pair: (u16, u16)| (pair, Placement::of(manifest, pair.0, pair.1));
        let known: BTreeMap<(u16, u16), Placement> = pairs.into_iter().map(of).collect();
        let label = |place: usize| match (sent[place], received[place], reflected[place]) {
            (UNKNOWN, ..) | (_, UNKNOWN, _) | (.., UNKNOWN) => UNKNOWN,
            (from, to, _) if from != to => Placement::Moved as u16,
            (from, _, peer) => known[&(from, peer)] as u16,
        };
        let words = |label: u16| Placement::ALL[usize::from(label)].words().into();
        found.extend(self.of_labels(CommonTest::Placement, &label, words));
        found
    }

    /// Whether these probes have one label more often than all do; `None` if all have the same. Labels that
    /// stay for many probes, as the CPU of a thread does, are shifted against the episodes; of those that change all the time,
    /// as over the threads of a run of wake-ups, each episode has one by chance.
    fn of_labels(
        &mut self,
        test: CommonTest,
        label: &dyn Fn(usize) -> u16,
        words: impl Fn(u16) -> String,
    ) -> Option<CommonCause> {
        let (n, worst) = (self.rows.len(), &self.worst);
        let (mut shares, mut changes, mut before) = (BTreeMap::<u16, f64>::new(), 0, label(0));
        for own in (0..n).map(label) {
            *shares.entry(own).or_default() += 1.0 / n as f64;
            changes += usize::from(own != before);
            before = own;
        }
        if shares.len() < 2 {
            return None;
        }
        let k = worst.len() as f64;
        let hits_of = |shift: usize| {
            let mut hits = BTreeMap::<u16, u64>::new();
            worst.iter().for_each(|place| *hits.entry(label((place + shift) % n)).or_default() += 1);
            hits
        };
        // The label with the largest excess, in standard deviations.
        let most = |shift: usize| {
            let excess = |(own, hits): (u16, u64)| {
                let share = shares[&own];
                ((hits as f64 - k * share) / (k * share * (1.0 - share)).sqrt(), own, hits)
            };
            let is_asked = |(own, hits): &(u16, u64)| *own != UNKNOWN && *hits >= HITS_MIN;
            hits_of(shift).into_iter().filter(is_asked).map(excess).max_by(|one, other| one.0.total_cmp(&other.0))
        };
        // Without an excess it is a test all the same.
        let (excess, own, hits) = most(0).unwrap_or_else(|| {
            let own = shares.keys().next().copied().unwrap_or(UNKNOWN);
            (0.0, own, hits_of(0).get(&own).copied().unwrap_or(0))
        });
        let share = shares.get(&own).copied().unwrap_or(0.0);
        let p_value = if excess <= 0.0 || own == UNKNOWN {
            1.0
        } else if changes > n / 4 {
            (at_least(hits, worst.len() as u64, share) * shares.len() as f64).min(1.0)
        } else {
            rotated(n, |shift| most(shift).map_or(f64::MIN, |(excess, ..)| excess), &mut self.random).p_value
        };
        Some(CommonCause {
            hits: Some(hits),
            expected: Some(k * share),
            p_value: Some(p_value),
            ..CommonCause::of(test, words(own), worst.len())
        })
    }

    /// Whether more of these probes than by chance were under way while a wake-up was late. A shifted probe keeps its length,
    /// since a long one meets more, and starts when another one was sent, since probes and wake-ups may have one period.
    fn of_wakeups(&mut self, watched: &Watched) -> CommonCause {
        let (rows, worst) = (self.rows, &self.worst);
        let meets = |place: &&usize, shift: usize| {
            let from = rows.sent_ns[(**place + shift) % rows.len()];
            watched.is_late(rows.cpus[1][**place], from, from.saturating_add(rows.delay_ns[**place]))
        };
        let count = |shift: usize| worst.iter().filter(|place| meets(place, shift)).count();
        let found = rotated(rows.len(), |shift| count(shift) as f64, &mut self.random);
        CommonCause {
            hits: Some(count(0) as u64),
            expected: Some(found.expected),
            p_value: Some(found.p_value),
            ..CommonCause::of(CommonTest::LateWakeup, "under way while a wake-up was late".into(), worst.len())
        }
    }

    /// Whether the slowest of `episodes` cluster in one part of a period. They are two periods apart, so that the neighbours of a
    /// burst count once.
    fn of_period(&mut self, episodes: &[SlowEpisode], period: Nanos) -> CommonCause {
        let rows = self.rows;
        let phase = |place: usize| rows.sent_ns[place].rem_euclid(period.0) as f64 / period.0 as f64;
        let mut apart: Vec<usize> = Vec::new();
        for SlowEpisode { worst, .. } in episodes {
            let is_near =
                |other: &usize| rows.sent_ns[*other].abs_diff(rows.sent_ns[worst.place]) < 2 * period.0 as u64;
            if apart.len() < EPISODES && !apart.iter().any(is_near) {
                apart.push(worst.place);
            }
        }
        let drawn = (0..PHASES.min(rows.len())).map(|_| phase(self.random.random_range(0..rows.len())));
        let all: Vec<f64> = drawn.collect();
        let limit = ALIASED + 2.0 / (all.len() as f64).sqrt();
        let is_aliased = |harmonic: f64| resultant(all.iter().map(|phase| phase * harmonic)).0 > limit;
        let (length, direction) = resultant(apart.iter().map(|place| phase(*place)));
        let (what, p_value) = if is_aliased(1.0) || is_aliased(2.0) {
            ("not identifiable: the probes themselves are at some of its phases only".to_owned(), None)
        } else if apart.len() < EPISODES_MIN {
            ("too few episodes that are two periods apart".to_owned(), None)
        } else {
            let at = span(Nanos((direction * period.0 as f64) as i64));
            (format!("sent about {at} after each multiple of the period"), Some(rayleigh(length, apart.len())))
        };
        let found = CommonCause::of(CommonTest::Period, what, apart.len());
        CommonCause { period_ns: Some(period), p_value, resultant: length, ..found }
    }
}

impl CommonCause {
    fn of(test: CommonTest, what: String, episodes: usize) -> CommonCause {
        CommonCause {
            test,
            what,
            period_ns: None,
            episodes: episodes as u64,
            hits: None,
            expected: None,
            p_value: None,
            adjusted_p_value: None,
            is_claimed: false,
            resultant: 0.0,
        }
    }
}

/// Adjusts the p values of all tests, and sorts them.
fn adjust(found: &mut [CommonCause]) {
    let tested: Vec<usize> = (0..found.len()).filter(|test| found[*test].p_value.is_some()).collect();
    let claims: Vec<Claims> =
        tested.iter().map(|test| Claims { different: found[*test].p_value.unwrap_or(1.0), equivalent: None }).collect();
    for (test, adjusted) in tested.into_iter().zip(holm(&claims)) {
        found[test].adjusted_p_value = Some(adjusted.different);
        found[test].is_claimed = adjusted.different <= LEVEL;
    }
    found.sort_by(|one, other| one.p_value.unwrap_or(2.0).total_cmp(&other.p_value.unwrap_or(2.0)));
}

/// What has a period also clusters in those that divide it, and by chance in a multiple. Of these the longest is claimed that
/// is as clear as those that divide it, but for its error.
fn keep_one_period(found: &mut [CommonCause]) {
    for period in PERIODS.into_iter().rev() {
        let divides = |it: &CommonCause| it.period_ns.is_some_and(|own| own < period && period.0 % own.0 == 0);
        let is_claim = |it: &&CommonCause| it.is_claimed && it.period_ns == Some(period);
        let Some(claim) = found.iter().find(is_claim) else { continue };
        let limit = claim.resultant + 1.0 / (claim.episodes as f64).sqrt();
        let is_kept = !found.iter().any(|it| it.is_claimed && divides(it) && it.resultant > limit);
        for cause in found.iter_mut() {
            let is_other = if is_kept { divides(cause) } else { cause.period_ns == Some(period) };
            cause.is_claimed &= !is_other;
        }
    }
}
