//! Published figures against recomputed ones: a verdict for each, and the mistake that reproduces what does not hold.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::chance::{Alternative, chance_alone, chance_together};
use super::claim::{FigureClaim, PublishedFigure, PublishedUnit};
use super::mistake::{Hypothesis, Mistake};
use super::population::{Population, PopulationRule};
use super::raw_values::{PublishedData, ValueScale};
use crate::analysis::experiment::SlackFacts;
use crate::diagnostics::{Explain, Failure};
use crate::stats::observations_needed;
use crate::units::Nanos;
use crate::units::human::{TimeUnit, counted};

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

/// A hypothesis with the figure that it computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The mistakes.
    pub hypothesis: Hypothesis,
    /// The figure with them, in ticks of the data, or as a count or share.
    pub computed: f64,
}

/// How the time-out of select(2) shows in a figure of wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StretchPlace {
    /// All values are at least as long as the stretch: it is a part of them.
    InValues,
    /// The published figure exceeds the recomputed one by about the stretch.
    InDifference,
}

/// A published figure with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedClaim {
    /// The claim.
    pub claim: FigureClaim,
    /// The length of the published unit in ticks of the data; 1 of counts, 1 or 0.01 of shares.
    pub ticks: f64,
    /// The published value in ticks of the data, or as a count or share.
    pub published: f64,
    /// The correct figure; `None` if it does not exist, or is infinite.
    pub recomputed: Option<f64>,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// Whether the recomputed figure has the published digits only if it is cut off instead of rounded.
    pub is_truncated: bool,
    /// Of a quantile how many values lie beyond it, n·min(q, 1 − q).
    pub beyond: Option<f64>,
    /// Whether that is enough: always of other figures, and of quantiles between the quartiles.
    pub is_supported: bool,
    /// Mistakes that reproduce the published digits: the chosen one, then others, the simplest first.
    pub explanations: Vec<Explanation>,
    /// If no mistake does: the single one that comes nearest, and nearer than the correct figure.
    pub nearest: Option<Explanation>,
    /// Where the stretch of a time-out shows, if the interval of the sleeps is known.
    pub stretch: Option<StretchPlace>,
}

/// Claims that one hypothesis explains.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedGroup {
    /// The mistakes.
    pub hypothesis: Hypothesis,
    /// Indices of the claims that do not hold, and that it reproduces.
    pub claims: Vec<usize>,
    /// Indices of the claims that hold, and that it would change.
    pub against: Vec<usize>,
    /// About how probable it is that one of the hypotheses that were tried, with at most so many mistakes, fits these digits by
    /// chance.
    pub chance: f64,
}

/// Published figures with their verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureCheck {
    /// Each claim, in their order.
    pub claims: Vec<CheckedClaim>,
    /// Explanations, those of most claims first; their chance may be too large for a verdict.
    pub groups: Vec<ExplainedGroup>,
    /// Hypotheses that were tried, apart from the correct computation; 0 if every figure holds.
    pub tried: usize,
    /// Values of answered probes without the warm-up.
    pub answered: u64,
    /// Lost probes, as far as the data state them.
    pub lost: u64,
    /// Whether the data state every loss.
    pub knows_losses: bool,
    /// The part of a time-out by which select(2) may wake later, if it shows in a figure.
    pub stretch: Option<Nanos>,
    /// What the values count.
    pub scale: ValueScale,
}

impl FigureCheck {
    /// Whether every figure holds.
    pub fn all_hold(&self) -> bool {
        self.claims.iter().all(|claim| claim.verdict == ClaimVerdict::Holds)
    }
}

/// Claims that cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FigureClaimError {
    /// The values are times, and the claim has no unit.
    #[error("cannot check the claim `{text}`")]
    UnitMissing {
        /// The claim as typed.
        text: String,
    },
    /// The claim has a unit, and the values have none.
    #[error("cannot check the claim `{text}`")]
    UnitUnknown {
        /// The claim as typed.
        text: String,
    },
    /// The claim is about losses, and the data do not state them.
    #[error("cannot check the claim `{text}`")]
    LossesUnknown {
        /// The claim as typed.
        text: String,
    },
    /// The claim is about the number of probes, of which some have no row, and the data do not state whether these were lost.
    #[error("cannot check the claim `{text}`")]
    ProbesMissing {
        /// The claim as typed.
        text: String,
        /// How many have no row.
        missing: u64,
    },
    /// Two claims state different values of one figure.
    #[error("cannot check both `{first}` and `{second}`")]
    TwoValues {
        /// The first one as typed.
        first: String,
        /// The other one as typed.
        second: String,
    },
}

impl Explain for FigureClaimError {
    fn explain(&self) -> Failure {
        let failure = Failure::request(self);
        match self {
            FigureClaimError::UnitMissing { .. } => {
                failure.because("its unit is missing").hint("write it behind the number: `mean=296us`")
            }
            FigureClaimError::UnitUnknown { .. } => failure
                .because("the numbers of the file have no unit")
                .hint("say which unit they have, such as `--unit us`, or leave that of the claim out"),
            FigureClaimError::LossesUnknown { .. } => failure
                .because("the log does not state losses: that it has none says nothing")
                .hint("leave the claim out; recordings of latlab and logs of ping, irtt and sockperf state losses"),
            FigureClaimError::ProbesMissing { missing, .. } => failure
                .because(format!(
                    "its rows leave out {}, and the log does not state whether these probes were lost",
                    counted(*missing as usize, "number")
                ))
                .hint("leave the claim out; the other figures are of the rows"),
            FigureClaimError::TwoValues { .. } => failure
                .because("they are different values of one figure, of which a sample has one")
                .hint("leave one of them out, or check each in a run of its own"),
        }
    }
}

/// Explanations that fit by chance more often than this give no verdict.
const CHANCE_MAX: f64 = 0.05;
/// Quantiles from this one to its counterpart are not extreme: they are figures of the sample at any n.
const BODY: f64 = 0.25;
/// The most explanations of a claim that are kept.
const EXPLANATIONS_MAX: usize = 4;
/// The usual timer slack of a thread, which also delays calls that stretch nothing.
const TIMER_SLACK: Nanos = Nanos::from_micros(50);

/// Checks `claims` about `data`. `unit` is that of claims without one.
///
/// # Errors
/// If the unit of a claim is missing, the values have none, the data do not decide a claim about losses, or two claims state
/// different values of one figure.
pub fn check_figures(
    data: &PublishedData,
    claims: &[FigureClaim],
    unit: Option<TimeUnit>,
) -> Result<FigureCheck, FigureClaimError> {
    claims.iter().try_for_each(|claim| expect_decidable(data, claim))?;
    let scaled = claims.iter().map(|claim| ScaledClaim::of(claim, data.scale, unit)).collect::<Result<Vec<_>, _>>()?;
    let figure_numbers = figure_numbers(&scaled)?;
    let mut hypotheses = vec![Hypothesis::default()];
    let mut all_figures = figures(data, &hypotheses, &scaled);
    let correct = all_figures.concat();
    let holds = |at: &usize| scaled[*at].is_reproduced_by(correct[*at]);
    let failing: Vec<usize> = (0..scaled.len()).filter(|at| !holds(at)).collect();
    if !failing.is_empty() {
        hypotheses = Hypothesis::all(&Mistake::possible(data, claims));
        all_figures = figures(data, &hypotheses, &scaled);
    }
    let search = Search {
        claims: &scaled,
        figure_numbers: &figure_numbers,
        hypotheses: &hypotheses,
        figures: &all_figures,
        failing: &failing,
    };
    let groups = search.groups();
    let stretch = data.sleep.map(stretch_of).filter(|stretch| *stretch > TIMER_SLACK);
    let minimum = data.values.iter().skip(data.warmup).min().map(|value| *value as f64);
    let checked: Vec<CheckedClaim> = (0..scaled.len())
        .map(|at| CheckedClaim {
            stretch: stretch.and_then(|stretch| scaled[at].stretch_place(correct[at], minimum, stretch)),
            ..search.checked(at, &groups, data.answered() + data.lost)
        })
        .collect();
    Ok(FigureCheck {
        stretch: stretch.filter(|_| checked.iter().any(|claim| claim.stretch.is_some())),
        claims: checked,
        groups,
        tried: hypotheses.len() - 1,
        answered: data.answered(),
        lost: data.lost,
        knows_losses: data.knows_losses,
        scale: data.scale,
    })
}

/// Refuses a claim about losses that `data` do not state.
fn expect_decidable(data: &PublishedData, claim: &FigureClaim) -> Result<(), FigureClaimError> {
    let text = || claim.text.clone();
    match claim.figure {
        _ if data.knows_losses => Ok(()),
        PublishedFigure::Lost | PublishedFigure::LossRatio => Err(FigureClaimError::LossesUnknown { text: text() }),
        PublishedFigure::N if data.missing_ids > 0 => {
            Err(FigureClaimError::ProbesMissing { text: text(), missing: data.missing_ids })
        }
        _ => Ok(()),
    }
}

/// The number of each claim's figure: claims of one figure have the same, which must have one value.
fn figure_numbers(claims: &[ScaledClaim<'_>]) -> Result<Vec<usize>, FigureClaimError> {
    let mut first_of: BTreeMap<String, usize> = BTreeMap::new();
    let number = |(at, own): (usize, &ScaledClaim<'_>)| {
        let first = *first_of.entry(own.claim.figure.name()).or_insert(at);
        match claims[first].has_value_of(own) {
            true => Ok(first),
            false => Err(FigureClaimError::TwoValues {
                first: claims[first].claim.text.clone(),
                second: own.claim.text.clone(),
            }),
        }
    };
    claims.iter().enumerate().map(number).collect()
}

/// By how much select(2) may stretch a time-out of `interval`.
fn stretch_of(interval: Nanos) -> Nanos {
    Nanos((interval.0 as f64 * SlackFacts::default().stretch()) as i64)
}

/// The figure of each claim by each hypothesis. Each population is sorted once.
fn figures(data: &PublishedData, hypotheses: &[Hypothesis], claims: &[ScaledClaim<'_>]) -> Vec<Vec<Option<f64>>> {
    let mut of_population: BTreeMap<PopulationRule, Vec<usize>> = BTreeMap::new();
    for (at, hypothesis) in hypotheses.iter().enumerate() {
        of_population.entry(hypothesis.population(data)).or_default().push(at);
    }
    let mut figures = vec![Vec::new(); hypotheses.len()];
    for (rule, members) in of_population {
        let population = Population::of(data, rule);
        for at in members {
            let hypothesis = &hypotheses[at];
            let figure = |claim: &ScaledClaim<'_>| {
                let claimed = claim.claim.figure;
                let figure = population.figure(hypothesis.computed(claimed), hypothesis.rules())?;
                Some(if claimed.is_of_values() { figure * hypothesis.factor() } else { figure })
            };
            figures[at] = claims.iter().map(figure).collect();
        }
    }
    figures
}

/// A claim in ticks of the data.
struct ScaledClaim<'a> {
    claim: &'a FigureClaim,
    /// The length of its unit.
    ticks: f64,
    value: f64,
    /// One unit of its last digit.
    step: f64,
}

impl ScaledClaim<'_> {
    fn of(claim: &FigureClaim, scale: ValueScale, unit: Option<TimeUnit>) -> Result<ScaledClaim<'_>, FigureClaimError> {
        let text = || claim.text.clone();
        let ticks = match (claim.figure.is_of_values(), claim.published.unit, scale) {
            (false, Some(PublishedUnit::Percent), _) => 0.01,
            (false, ..) => 1.0,
            (true, Some(PublishedUnit::Time(_)), ValueScale::Plain(_)) => {
                return Err(FigureClaimError::UnitUnknown { text: text() });
            }
            (true, Some(PublishedUnit::Time(unit)), ValueScale::Time) => scale.ticks(unit),
            (true, _, ValueScale::Time) => {
                scale.ticks(unit.ok_or_else(|| FigureClaimError::UnitMissing { text: text() })?)
            }
            (true, _, ValueScale::Plain(_)) => scale.ticks(TimeUnit::Nanos),
        };
        let published = &claim.published;
        Ok(ScaledClaim { claim, ticks, value: published.value(ticks), step: published.step(ticks) })
    }

    /// Whether `other` states the same value, with as many digits or not.
    fn has_value_of(&self, other: &ScaledClaim<'_>) -> bool {
        // Both are doubles, possibly of different units.
        (self.value - other.value).abs() <= self.value.abs().max(other.value.abs()) * 1e-12
    }

    /// Whether `figure` has the published digits when rounded.
    fn is_rounded(&self, figure: f64) -> bool {
        // The published value and the figure are doubles: their last binary digits do not count.
        let tolerance = self.value.abs().max(figure.abs()) * 1e-12;
        (figure - self.value).abs() <= self.step / 2.0 + tolerance
    }

    /// Whether `figure` has the published digits when rounded or cut off.
    fn is_reproduced_by(&self, figure: Option<f64>) -> bool {
        let is_cut = |figure: f64| {
            let beyond = if self.value < 0.0 { self.value - figure } else { figure - self.value };
            (0.0..self.step).contains(&beyond) && (self.value != 0.0 || figure >= 0.0)
        };
        figure.is_some_and(|figure| self.is_rounded(figure) || is_cut(figure))
    }

    /// Where the `stretch` of a time-out shows; the smallest value is `minimum`.
    fn stretch_place(&self, correct: Option<f64>, minimum: Option<f64>, stretch: Nanos) -> Option<StretchPlace> {
        let figure = self.claim.figure;
        if !figure.is_of_values() || figure == PublishedFigure::Stddev {
            return None;
        }
        let stretch = stretch.0 as f64;
        if minimum? >= 0.9 * stretch {
            return Some(StretchPlace::InValues);
        }
        // The slack delays the exact call as well.
        let least = stretch - 1.2 * TIMER_SLACK.0 as f64;
        (least..=1.1 * stretch).contains(&(self.value - correct?)).then_some(StretchPlace::InDifference)
    }
}

/// The search for hypotheses that reproduce what does not hold.
struct Search<'a> {
    claims: &'a [ScaledClaim<'a>],
    /// Of each claim the number of its figure: a figure that is claimed twice is one piece of evidence.
    figure_numbers: &'a [usize],
    /// The correct computation first.
    hypotheses: &'a [Hypothesis],
    /// Of each hypothesis the figure of each claim.
    figures: &'a [Vec<Option<f64>>],
    /// Indices of the claims that do not hold.
    failing: &'a [usize],
}

impl Search<'_> {
    fn reproduces(&self, hypothesis: usize, claim: usize) -> bool {
        self.claims[claim].is_reproduced_by(self.figures[hypothesis][claim])
    }

    fn complexity(&self, hypothesis: usize) -> usize {
        self.hypotheses[hypothesis].mistakes.len()
    }

    /// How many figures `claims` are about.
    fn count(&self, claims: impl Iterator<Item = usize>) -> usize {
        claims.map(|claim| self.figure_numbers[claim]).collect::<BTreeSet<usize>>().len()
    }

    /// Of `claims` one for each figure: the one with the most digits.
    fn distinct(&self, claims: &[usize]) -> Vec<usize> {
        let mut finest: BTreeMap<usize, usize> = BTreeMap::new();
        for claim in claims {
            let kept = finest.entry(self.figure_numbers[*claim]).or_insert(*claim);
            if self.claims[*claim].step < self.claims[*kept].step {
                *kept = *claim;
            }
        }
        finest.into_values().collect()
    }

    /// The claims that hold, and that `hypothesis` would change.
    fn against(&self, hypothesis: usize) -> Vec<usize> {
        let holding = (0..self.claims.len()).filter(|claim| !self.failing.contains(claim));
        holding.filter(|claim| !self.reproduces(hypothesis, *claim)).collect()
    }

    /// Covers the failing claims: first the hypothesis that reproduces most of them, of several the one with the fewest
    /// mistakes and contradictions. Each claim gets the part of it that it needs.
    fn groups(&self) -> Vec<ExplainedGroup> {
        let mut remaining = self.failing.to_vec();
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        while let Some(best) = self.best(&remaining) {
            let (own, others): (Vec<usize>, Vec<usize>) =
                remaining.iter().partition(|claim| self.reproduces(best, **claim));
            for claim in own {
                let is_needed =
                    |at: &usize| self.hypotheses[*at].is_part_of(&self.hypotheses[best]) && self.reproduces(*at, claim);
                let part = (1..self.hypotheses.len()).find(is_needed).unwrap_or(best);
                match groups.iter_mut().find(|(hypothesis, _)| *hypothesis == part) {
                    Some((_, claims)) => claims.push(claim),
                    None => groups.push((part, vec![claim])),
                }
            }
            remaining = others;
        }
        groups.sort_by_key(|(_, claims)| std::cmp::Reverse(self.count(claims.iter().copied())));
        groups.into_iter().map(|(hypothesis, claims)| self.group(hypothesis, claims)).collect()
    }

    /// The hypothesis that explains most of the `remaining` claims; `None` if none explains any.
    fn best(&self, remaining: &[usize]) -> Option<usize> {
        let explained = |at: &usize| self.count(remaining.iter().copied().filter(|claim| self.reproduces(*at, *claim)));
        let cost = |at: &usize| self.complexity(*at) + self.count(self.against(*at).into_iter());
        let explaining = (1..self.hypotheses.len()).filter(|at| explained(at) > 0);
        explaining.min_by_key(|at| (std::cmp::Reverse(explained(at)), cost(at)))
    }

    fn group(&self, hypothesis: usize, claims: Vec<usize>) -> ExplainedGroup {
        let mistakes = self.complexity(hypothesis);
        let chances: Vec<_> = self.distinct(&claims).into_iter().map(|claim| self.chance(claim, mistakes)).collect();
        ExplainedGroup {
            hypothesis: self.hypotheses[hypothesis].clone(),
            against: self.against(hypothesis),
            chance: chance_together(&chances),
            claims,
        }
    }

    /// The chance that a hypothesis with at most so many mistakes fits the digits of `claim`.
    fn chance(&self, claim: usize, mistakes: usize) -> Alternative {
        let tried = (1..self.hypotheses.len()).filter(|at| self.complexity(*at) <= mistakes);
        let figures = tried.filter_map(|at| self.figures[at][claim]);
        chance_alone(self.claims[claim].value, self.claims[claim].step, self.figures[0][claim], figures)
    }

    /// The claim with its verdict; the sample has `n` values, lost ones included.
    fn checked(&self, at: usize, groups: &[ExplainedGroup], n: u64) -> CheckedClaim {
        let scaled = &self.claims[at];
        let recomputed = self.figures[0][at];
        let group = groups.iter().find(|group| group.claims.contains(&at));
        let tail = match scaled.claim.figure {
            PublishedFigure::Quantile(q) => {
                let is_body = (BODY..=1.0 - BODY).contains(&q);
                Some((n as f64 * q.min(1.0 - q), is_body || n >= observations_needed(q)))
            }
            _ => None,
        };
        let is_supported = tail.is_none_or(|(_, is_supported)| is_supported);
        let holds = !self.failing.contains(&at);
        let verdict = match group.filter(|group| group.chance <= CHANCE_MAX) {
            _ if holds && is_supported => ClaimVerdict::Holds,
            _ if holds => ClaimVerdict::Unsupported,
            Some(group) if !is_supported && is_about_place(&group.hypothesis) => ClaimVerdict::Unsupported,
            Some(_) => ClaimVerdict::Explained,
            None => ClaimVerdict::Contradicted,
        };
        let explanations = group.map(|group| self.explanations(at, &group.hypothesis)).unwrap_or_default();
        CheckedClaim {
            claim: scaled.claim.clone(),
            ticks: scaled.ticks,
            published: scaled.value,
            recomputed,
            verdict,
            is_truncated: holds && recomputed.is_some_and(|figure| !scaled.is_rounded(figure)),
            beyond: tail.map(|(beyond, _)| beyond),
            is_supported,
            nearest: (!holds && explanations.is_empty()).then(|| self.nearest(at)).flatten(),
            explanations,
            stretch: None,
        }
    }

    /// The hypotheses that reproduce a claim: `chosen`, then those that no simpler one is a part of.
    fn explanations(&self, claim: usize, chosen: &Hypothesis) -> Vec<Explanation> {
        let mut found: Vec<Explanation> = Vec::new();
        let with_chosen = self.hypotheses.iter().position(|hypothesis| hypothesis == chosen);
        for at in with_chosen.into_iter().chain(1..self.hypotheses.len()) {
            let (hypothesis, figure) = (&self.hypotheses[at], self.figures[at][claim]);
            let is_new = !found.iter().any(|other| other.hypothesis.is_part_of(hypothesis));
            if let Some(computed) = figure.filter(|_| is_new && self.reproduces(at, claim)) {
                found.push(Explanation { hypothesis: hypothesis.clone(), computed });
            }
        }
        found.truncate(EXPLANATIONS_MAX);
        found
    }

    /// The single mistake whose figure is nearest to the claim, if it is nearer than the correct figure.
    fn nearest(&self, claim: usize) -> Option<Explanation> {
        let off = |at: usize| self.figures[at][claim].map(|figure| (figure - self.claims[claim].value).abs());
        let single = (1..self.hypotheses.len()).filter(|at| self.complexity(*at) == 1);
        let nearest = single
            .filter(|at| off(*at).is_some())
            .min_by(|one, other| off(*one).unwrap_or(f64::INFINITY).total_cmp(&off(*other).unwrap_or(f64::INFINITY)))?;
        let is_nearer = off(nearest)? < off(0).unwrap_or(f64::INFINITY);
        let computed = self.figures[nearest][claim]?;
        is_nearer.then(|| Explanation { hypothesis: self.hypotheses[nearest].clone(), computed })
    }
}

/// Whether all mistakes only choose another order statistic for a quantile.
fn is_about_place(hypothesis: &Hypothesis) -> bool {
    let is = |mistake: &Mistake| matches!(mistake, Mistake::OtherQuantileRule(_) | Mistake::MaximumAsQuantile);
    hypothesis.mistakes.iter().all(is)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
