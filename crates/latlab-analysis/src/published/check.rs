//! Published figures against recomputed ones: a verdict for each, and the mistake that reproduces what does not hold.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::claim::{FigureClaim, PublishedFigure, PublishedUnit};
use super::data::PublishedData;
use super::mistake::{Aspect, Hypothesis, MISTAKES, Mistake, combined, single};
use super::numbers::{Numbers, Rules};
use crate::diagnostics::Failure;
use crate::stats::observations_needed;
use crate::units::Nanos;
use crate::units::human::{TimeUnit, counted, listed};

/// What the data say about a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The recomputed figure rounds to it, or is cut off to it.
    Holds,
    /// A mistake reproduces its digits.
    Explained,
    /// A quantile that so few values cannot support, whatever its digits are.
    Unsupported,
    /// Neither the recomputed figure nor a mistake that is unlikely to fit by chance has its digits.
    Contradicted,
}

impl ClaimVerdict {
    /// The word in JSON and tables.
    pub const fn word(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Explained => "explained",
            ClaimVerdict::Unsupported => "unsupported",
            ClaimVerdict::Contradicted => "contradicted",
        }
    }
}

impl Serialize for ClaimVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Mistakes that reproduce a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Their codes.
    pub mistakes: Vec<&'static str>,
    /// The figure with them.
    pub value: f64,
}

/// How the time-out of select(2), which wakes a thread later by 0.1 % of it, shows in a figure of wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StretchPlace {
    /// All values are at least as long as the stretch: it is a part of them.
    Values,
    /// The published figure exceeds the recomputed one by about the stretch.
    Difference,
}

/// A published figure with its verdict: in ns, as a number without a unit, or as a count or share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedClaim {
    #[serde(skip)]
    pub stated: FigureClaim,
    pub claim: String,
    pub figure: String,
    /// Of the numbers: `ns` or none.
    pub unit: Option<&'static str>,
    /// The length of the published unit in that one.
    #[serde(skip)]
    pub scale: f64,
    pub published: f64,
    /// The correct figure; `None` if it does not exist, or is infinite.
    pub recomputed: Option<f64>,
    /// The published figure less the correct one, if that has other digits.
    pub off: Option<f64>,
    pub verdict: ClaimVerdict,
    /// Whether the recomputed figure has the published digits only if it is cut off instead of rounded.
    pub truncated: bool,
    /// Whether so many values support it: always other figures than quantiles, and quantiles between the quartiles.
    pub supported: bool,
    /// Of a quantile how many values lie beyond it, n·min(q, 1 − q).
    pub beyond: Option<f64>,
    /// What reproduces the published digits: the chosen mistakes, then others, the fewest first.
    pub explanations: Vec<Explanation>,
    pub stretch: Option<StretchPlace>,
}

/// Claims that the same mistakes explain.
#[derive(Debug, Serialize)]
pub struct ExplainedGroup {
    pub mistakes: Vec<&'static Mistake>,
    /// Indices of the claims that do not hold, and that they reproduce.
    pub figures: Vec<usize>,
    /// Indices of the claims that hold, and that they would change.
    pub against: Vec<usize>,
    /// About how probable it is that one of the combinations that were tried, with at most so many mistakes, fits by chance.
    pub chance: f64,
}

/// A claim without a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UndecidedClaim {
    pub claim: String,
    pub figure: String,
    /// A stable name of why.
    pub reason: &'static str,
    pub sentence: String,
    #[serde(skip)]
    remedy: &'static str,
}

/// Published figures with their verdicts.
#[derive(Debug)]
pub struct FigureCheck {
    /// Each claim that the data decide, in their order.
    pub claims: Vec<CheckedClaim>,
    /// The other ones, in their order.
    pub undecided: Vec<UndecidedClaim>,
    /// Explanations, those of most claims first; their chance may be too large for a verdict.
    pub groups: Vec<ExplainedGroup>,
    /// Combinations of mistakes that were tried; 0 if every claim holds.
    pub tried: usize,
    /// Values of answered probes without the warm-up.
    pub answered: u64,
    /// Lost probes, as far as the data state them.
    pub lost: u64,
    pub knows_losses: bool,
    /// The part of a time-out by which select(2) may wake later, if it shows in a figure.
    pub stretch: Option<Nanos>,
    /// Whether the log has digits below a nanosecond, which the values have not.
    pub is_rounded: bool,
}

impl FigureCheck {
    pub fn all_hold(&self) -> bool {
        self.undecided.is_empty() && self.claims.iter().all(|claim| claim.verdict == ClaimVerdict::Holds)
    }

    /// The failure that names all undecided claims, if there are any.
    pub fn refusal(&self) -> Option<Failure> {
        let first = self.undecided.first()?;
        let claims: Vec<String> = self.undecided.iter().map(|one| format!("`{}`", one.claim)).collect();
        let mut causes: Vec<&str> = self.undecided.iter().map(|one| one.sentence.as_str()).collect();
        causes.dedup();
        let noun = if claims.len() > 1 { "claims" } else { "claim" };
        let failure = Failure::request(format!("cannot check the {noun} {}", listed(&claims)));
        Some(failure.because(causes.join("; ")).hint(first.remedy))
    }
}

/// Explanations that fit by chance more often than this give no verdict.
const CHANCE_MAX: f64 = 0.05;
/// Quantiles from this one to its counterpart are not extreme: they are figures of the sample at any n.
const BODY: f64 = 0.25;
/// The most explanations of a claim that are kept.
const EXPLANATIONS_MAX: usize = 4;
/// select(2) may wake later by this part of its time-out: select_estimate_accuracy in
/// [fs/select.c](https://github.com/torvalds/linux/blob/v6.18/fs/select.c).
const STRETCH: f64 = 0.001;
/// The usual timer slack of a thread, which also delays calls that stretch nothing.
const TIMER_SLACK_NS: f64 = 50_000.0;

/// Checks `claims` about `data`. `unit` is that of claims without one. A claim that the data do not decide counts neither as
/// evidence for a mistake nor against one.
///
/// # Errors
/// Two claims that state different values of one figure.
pub fn check_figures(
    data: &PublishedData,
    claims: &[FigureClaim],
    unit: Option<TimeUnit>,
) -> Result<FigureCheck, Failure> {
    let (mut scaled, mut undecided) = (Vec::new(), Vec::new());
    for claim in claims {
        match ScaledClaim::of(claim, data, unit) {
            Ok(own) => scaled.push(own),
            Err(reason) => undecided.push(reason),
        }
    }
    expect_one_value(&scaled)?;
    let mut search = Search::of(data, &scaled, vec![Vec::new()]);
    if !search.failing.is_empty() {
        search = Search::of(data, &scaled, single(data));
        search = Search::of(data, &scaled, combined(&search.effective()));
    }
    let groups = search.groups();
    let n = data.answered() + data.lost;
    let mut checked: Vec<CheckedClaim> = (0..scaled.len()).map(|at| search.checked(at, &groups, n)).collect();
    let minimum = data.values[data.warmup..].iter().copied().fold(f64::INFINITY, f64::min);
    let stretch = data.sleep.map(|sleep| sleep.0 as f64 * STRETCH).filter(|stretch| *stretch > TIMER_SLACK_NS);
    for claim in &mut checked {
        claim.unit = (data.is_timed && claim.stated.figure.is_of_values()).then_some("ns");
        claim.stretch = stretch.and_then(|stretch| stretch_place(claim, minimum, stretch));
    }
    Ok(FigureCheck {
        stretch: stretch.filter(|_| checked.iter().any(|claim| claim.stretch.is_some())).map(|ns| Nanos(ns as i64)),
        claims: checked,
        undecided,
        groups,
        tried: search.hypotheses.len() - 1,
        answered: data.answered(),
        lost: data.lost,
        knows_losses: data.knows_losses,
        is_rounded: data.is_rounded,
    })
}

fn stretch_place(claim: &CheckedClaim, minimum: f64, stretch: f64) -> Option<StretchPlace> {
    if !claim.stated.figure.is_of_values() || claim.stated.figure == PublishedFigure::Stddev {
        return None;
    }
    if minimum >= 0.9 * stretch {
        return Some(StretchPlace::Values);
    }
    // The slack delays the exact call as well.
    let expected = stretch - 1.2 * TIMER_SLACK_NS..=1.1 * stretch;
    expected.contains(&(claim.published - claim.recomputed?)).then_some(StretchPlace::Difference)
}

/// A claim in the unit of the data.
struct ScaledClaim {
    claim: FigureClaim,
    /// The length of its unit.
    unit: f64,
    value: f64,
    /// One unit of its last digit.
    step: f64,
}

impl ScaledClaim {
    fn of(claim: &FigureClaim, data: &PublishedData, typed: Option<TimeUnit>) -> Result<ScaledClaim, UndecidedClaim> {
        let undecided = |reason, sentence: String, remedy| {
            Err(UndecidedClaim { claim: claim.text.clone(), figure: claim.figure.name(), reason, sentence, remedy })
        };
        let is_of_values = claim.figure.is_of_values();
        let time = typed.map(PublishedUnit::Time).filter(|_| is_of_values && data.is_timed);
        let unit = match claim.unit.or(time) {
            Some(PublishedUnit::Time(_)) if !data.is_timed => {
                let remedy = "say which unit they have, such as `--unit us`, or leave that of the claim out";
                return undecided("unit-unknown", "the numbers of the file have no unit".into(), remedy);
            }
            None if is_of_values && data.is_timed => {
                let remedy = "write it behind the number: `mean=296us`";
                return undecided("unit-missing", "a unit is missing".into(), remedy);
            }
            Some(PublishedUnit::Percent) => 0.01,
            Some(PublishedUnit::Time(unit)) => unit.nanos(),
            None => 1.0,
        };
        let step = unit / 10_f64.powi(claim.decimals as i32);
        match claim.figure {
            PublishedFigure::Lost | PublishedFigure::LossRatio if !data.knows_losses => undecided(
                "losses-unknown",
                "the log does not state losses: that it has none says nothing".into(),
                "leave the claim out; recordings of latlab and logs of ping, irtt and sockperf state losses",
            ),
            PublishedFigure::N if !data.knows_losses && data.missing_ids > 0 => {
                let missing = counted(data.missing_ids as usize, "number");
                let sentence =
                    format!("its rows leave out {missing}, and the log does not state whether these probes were lost");
                undecided("probes-missing", sentence, "leave the claim out; the other figures are of the rows")
            }
            _ if is_of_values && data.is_rounded && step < 0.999 => undecided(
                "too-fine",
                "the values of the log are rounded to 1 ns, and a claim is finer".into(),
                "leave its last digits out, or check the values as one number on each line of a file, with `--unit`",
            ),
            _ => Ok(ScaledClaim { claim: claim.clone(), unit, value: claim.value * unit, step }),
        }
    }

    /// What two doubles may differ by that are computed in different ways: less than a digit.
    fn tolerance(&self, figure: f64) -> f64 {
        (self.value.abs().max(figure.abs()) * 1e-12).min(self.step / 16.0)
    }

    fn is_rounded_from(&self, figure: f64) -> bool {
        (figure - self.value).abs() <= self.step / 2.0 + self.tolerance(figure)
    }

    /// Whether `figure` rounds to the published digits, or is cut off to them.
    fn has_digits_of(&self, figure: Option<f64>) -> bool {
        figure.is_some_and(|figure| {
            let beyond = if self.value < 0.0 { self.value - figure } else { figure - self.value };
            self.is_rounded_from(figure) || (0.0..self.step).contains(&beyond)
        })
    }

    /// The part of the numbers from half the published one to twice it, on a logarithmic scale, that has its digits.
    fn part(&self) -> f64 {
        if self.value > 0.0 { (1.5 * self.step / self.value / 4_f64.ln()).min(1.0) } else { 1.0 }
    }
}

/// Refuses two values of one figure.
fn expect_one_value(claims: &[ScaledClaim]) -> Result<(), Failure> {
    for (at, own) in claims.iter().enumerate() {
        let is_other = |other: &&ScaledClaim| {
            other.claim.figure == own.claim.figure && (other.value - own.value).abs() > own.tolerance(other.value)
        };
        if let Some(other) = claims[..at].iter().find(is_other) {
            return Err(Failure::request(format!("cannot check both `{}` and `{}`", other.claim.text, own.claim.text))
                .because("they are different values of one figure, of which a sample has one")
                .hint("leave one of them out, or check each in a run of its own"));
        }
    }
    Ok(())
}

/// The search for hypotheses that reproduce what does not hold.
struct Search<'a> {
    claims: &'a [ScaledClaim],
    /// The correct computation first, and none behind one with more mistakes.
    hypotheses: Vec<Hypothesis>,
    /// Of each hypothesis the figure of each claim.
    figures: Vec<Vec<Option<f64>>>,
    /// Indices of the claims that do not hold.
    failing: Vec<usize>,
}

impl<'a> Search<'a> {
    fn of(data: &PublishedData, claims: &'a [ScaledClaim], hypotheses: Vec<Hypothesis>) -> Search<'a> {
        // Hypotheses about the same numbers share these, so that they are sorted once.
        let mut by_numbers: Vec<Vec<(usize, Rules)>> = Vec::new();
        for (at, hypothesis) in hypotheses.iter().enumerate() {
            let mut rules = Rules::of(data);
            hypothesis.iter().for_each(|mistake| (MISTAKES[*mistake].apply)(&mut rules));
            match by_numbers.iter_mut().find(|members| members[0].1.shares_numbers(&rules)) {
                Some(members) => members.push((at, rules)),
                None => by_numbers.push(vec![(at, rules)]),
            }
        }
        let mut figures = vec![Vec::new(); hypotheses.len()];
        for members in by_numbers {
            let numbers = Numbers::of(data, &members[0].1);
            for (at, rules) in members {
                figures[at] = claims.iter().map(|own| numbers.figure(own.claim.figure, &rules)).collect();
            }
        }
        let failing = (0..claims.len()).filter(|at| !claims[*at].has_digits_of(figures[0][*at])).collect();
        Search { claims, hypotheses, figures, failing }
    }

    /// The single mistakes that change a figure.
    fn effective(&self) -> Vec<usize> {
        let changing = (1..self.hypotheses.len()).filter(|at| self.figures[*at] != self.figures[0]);
        changing.flat_map(|at| self.hypotheses[at].clone()).collect()
    }

    fn reproduces(&self, hypothesis: usize, claim: usize) -> bool {
        self.claims[claim].has_digits_of(self.figures[hypothesis][claim])
    }

    /// Covers the failing claims: first by the hypothesis that is least likely to fit as many of them by chance; of several
    /// by the one with the fewest mistakes and contradictions.
    fn groups(&self) -> Vec<ExplainedGroup> {
        let (mut remaining, mut found) = (self.failing.clone(), Vec::new());
        loop {
            let explaining = (1..self.hypotheses.len()).map(|at| self.group(at, &remaining));
            let cost = |group: &ExplainedGroup| group.mistakes.len() + group.against.len();
            let best = explaining
                .filter(|group| !group.figures.is_empty())
                .min_by(|one, other| one.chance.total_cmp(&other.chance).then_with(|| cost(one).cmp(&cost(other))));
            let Some(best) = best else { break };
            remaining.retain(|claim| !best.figures.contains(claim));
            found.push(best);
        }
        found.sort_by_key(|group| Reverse(group.figures.len()));
        found
    }

    fn group(&self, hypothesis: usize, remaining: &[usize]) -> ExplainedGroup {
        let figures: Vec<usize> =
            remaining.iter().copied().filter(|claim| self.reproduces(hypothesis, *claim)).collect();
        let holding = (0..self.claims.len()).filter(|claim| !self.failing.contains(claim));
        let mistakes: Vec<&'static Mistake> = self.hypotheses[hypothesis].iter().map(|at| &MISTAKES[*at]).collect();
        ExplainedGroup {
            against: holding.filter(|claim| !self.reproduces(hypothesis, *claim)).collect(),
            chance: self.chance(&figures, mistakes.len()),
            mistakes,
            figures,
        }
    }

    /// About how probable it is that a hypothesis with at most so many mistakes has the digits of all `claims` by chance: the
    /// product of the parts of their ranges that have these digits, times the number of hypotheses that change such a
    /// figure. A figure that is claimed twice counts once, with its most digits.
    fn chance(&self, claims: &[usize], mistakes: usize) -> f64 {
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        for claim in claims {
            let own = &self.claims[*claim];
            let part = parts.entry(own.claim.figure.name()).or_insert(1.0);
            *part = part.min(own.part());
        }
        let tried = self.hypotheses.iter().zip(&self.figures).take_while(|(own, _)| own.len() <= mistakes);
        let changing = |claim: usize| tried.clone().filter(|(_, own)| own[claim] != self.figures[0][claim]).count();
        let most = claims.iter().map(|claim| changing(*claim)).max().unwrap_or(0);
        (most as f64 * parts.values().product::<f64>()).min(1.0)
    }

    /// The claim with its verdict; the sample has `n` values, lost ones included.
    fn checked(&self, at: usize, groups: &[ExplainedGroup], n: u64) -> CheckedClaim {
        let own = &self.claims[at];
        let group = groups.iter().find(|group| group.figures.contains(&at));
        let quantile = if let PublishedFigure::Quantile(q) = own.claim.figure { Some(q) } else { None };
        let supported = quantile.is_none_or(|q| (BODY..=1.0 - BODY).contains(&q) || n >= observations_needed(q));
        let recomputed = self.figures[0][at];
        let holds = own.has_digits_of(recomputed);
        let is_about_rank =
            |mistake: &&Mistake| matches!(mistake.aspect, Aspect::QuantileRule | Aspect::MaximumAsQuantile);
        let verdict = match group.filter(|group| group.chance <= CHANCE_MAX) {
            _ if holds && supported => ClaimVerdict::Holds,
            _ if holds => ClaimVerdict::Unsupported,
            Some(group) if !supported && group.mistakes.iter().all(is_about_rank) => ClaimVerdict::Unsupported,
            Some(_) => ClaimVerdict::Explained,
            None => ClaimVerdict::Contradicted,
        };
        CheckedClaim {
            stated: own.claim.clone(),
            claim: own.claim.text.clone(),
            figure: own.claim.figure.name(),
            unit: None,
            scale: own.unit,
            published: own.value,
            recomputed,
            off: recomputed.filter(|_| !holds).map(|recomputed| own.value - recomputed),
            verdict,
            truncated: holds && recomputed.is_some_and(|figure| !own.is_rounded_from(figure)),
            supported,
            beyond: quantile.map(|q| n as f64 * q.min(1.0 - q)),
            explanations: group.map(|group| self.explanations(at, group)).unwrap_or_default(),
            stretch: None,
        }
    }

    /// What reproduces a claim: the mistakes of its group, then those that no simpler ones are a part of.
    fn explanations(&self, claim: usize, group: &ExplainedGroup) -> Vec<Explanation> {
        let explanation = |at: usize| {
            let mistakes = self.hypotheses[at].iter().map(|mistake| MISTAKES[*mistake].code).collect();
            Some(Explanation { mistakes, value: self.figures[at][claim]? })
        };
        let reproducing = (1..self.hypotheses.len()).filter(|at| self.reproduces(*at, claim)).filter_map(explanation);
        let chosen: Vec<&str> = group.mistakes.iter().map(|mistake| mistake.code).collect();
        let (mut found, others): (Vec<Explanation>, Vec<Explanation>) =
            reproducing.partition(|one| one.mistakes == chosen);
        for other in others {
            let is_part = |one: &[&str], of: &[&str]| one.iter().all(|code| of.contains(code));
            let is_known = found.iter().any(|one| is_part(&one.mistakes, &other.mistakes));
            if !is_known && !is_part(&other.mistakes, &chosen) {
                found.push(other);
            }
        }
        found.truncate(EXPLANATIONS_MAX);
        found
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
