//! Published figures against recomputed ones: a verdict for each, and the mistake that reproduces what does not hold.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::claim::{FigureClaim, PublishedFigure, PublishedUnit};
use super::data::PublishedData;
use super::mistake::{Aspect, Hypothesis, MISTAKES, Mistake, combined, count, single};
use super::numbers::{Numbers, Rules};
use crate::diagnostics::Failure;
use crate::stats::observations_needed;
use crate::units::human::{TimeUnit, counted};

crate::worded! {
    /// What the data say about a published figure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ClaimVerdict: word {
        /// The recomputed figure rounds to it, or is cut off to it; of a quantile, that of another convention too.
        Holds = "holds",
        /// A mistake reproduces its digits.
        Explained = "explained",
        /// A quantile that so few values cannot support, whatever its digits are.
        Unsupported = "unsupported",
        /// Neither the recomputed figure nor a mistake that is unlikely to fit by chance has its digits.
        Contradicted = "contradicted",
    }
}

/// A published figure with its verdict: in ns, as a number without a unit, or as a count or share.
#[derive(Clone, Debug, Serialize)]
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
    /// The convention by which a quantile holds, if it is not that of the recomputed one.
    #[serde(serialize_with = "code_alone")]
    pub convention: Option<&'static Mistake>,
    /// The figure with that convention, or with the mistakes that reproduce it.
    pub reproduced: Option<f64>,
}

fn code_alone<S: Serializer>(of: &Option<&Mistake>, serializer: S) -> Result<S::Ok, S::Error> {
    of.map(|mistake| mistake.code).serialize(serializer)
}

/// Claims that the same mistakes explain.
#[derive(Debug, Serialize)]
pub struct ExplainedGroup {
    /// Its place among the hypotheses.
    #[serde(skip)]
    hypothesis: usize,
    pub mistakes: Vec<&'static Mistake>,
    /// Indices of the claims that do not hold, and that they reproduce.
    pub figures: Vec<usize>,
    /// Indices of the claims that hold, and that they would change.
    pub against: Vec<usize>,
    /// About how probable it is that one of the combinations that were tried, with at most so many mistakes, fits by chance.
    pub chance: f64,
}

#[derive(Debug, Serialize)]
pub struct FigureCheck {
    /// Values of answered probes without the warm-up.
    pub answered: u64,
    /// Lost probes, as far as the data state them.
    #[serde(skip)]
    pub lost: u64,
    /// Lost probes, if the data state all of them.
    #[serde(rename = "lost")]
    all_lost: Option<u64>,
    /// In the order of the claims.
    #[serde(rename = "figures")]
    pub claims: Vec<CheckedClaim>,
    /// Explanations, those of most claims first; their chance may be too large for a verdict.
    #[serde(rename = "mistakes")]
    pub groups: Vec<ExplainedGroup>,
    /// Combinations of mistakes that were tried; 0 if every claim holds.
    #[serde(rename = "hypotheses")]
    pub tried: usize,
    /// Whether the log has digits below a nanosecond, which the values have not.
    #[serde(rename = "rounded")]
    pub is_rounded: bool,
}

impl FigureCheck {
    pub fn all_hold(&self) -> bool {
        self.claims.iter().all(|claim| claim.verdict == ClaimVerdict::Holds)
    }
}

/// Explanations that fit by chance more often than this give no verdict.
const CHANCE_MAX: f64 = 0.05;
/// Quantiles from this one to its counterpart are not extreme: they are figures of the sample at any n.
const BODY: f64 = 0.25;

/// Checks `claims` about `data`. `unit` is that of claims without one.
///
/// # Errors
/// A claim that the data cannot decide.
pub fn check_figures(
    data: &PublishedData,
    claims: &[FigureClaim],
    unit: Option<TimeUnit>,
) -> Result<FigureCheck, Failure> {
    let scaled: Vec<ScaledClaim> =
        claims.iter().map(|claim| ScaledClaim::of(claim, data, unit)).collect::<Result<_, _>>()?;
    let mut search = Search::of(data, &scaled, vec![Vec::new()]);
    let mut conventions = BTreeMap::new();
    if !search.failing.is_empty() {
        search = Search::of(data, &scaled, single(data));
        conventions = search.conventions();
        let mistakes = search.effective();
        let is_failing = search.failing.iter().any(|claim| !conventions.contains_key(claim));
        search = Search::of(data, &scaled, if is_failing { combined(&mistakes) } else { vec![Vec::new()] });
        search.failing.retain(|claim| !conventions.contains_key(claim));
    }
    let groups = search.groups();
    Ok(FigureCheck {
        answered: data.answered(),
        lost: data.lost,
        all_lost: data.knows_losses.then_some(data.lost),
        claims: (0..scaled.len()).map(|at| search.checked(at, &groups, conventions.get(&at))).collect(),
        groups,
        tried: search.hypotheses.len() - 1,
        is_rounded: data.is_rounded,
    })
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
    fn of(claim: &FigureClaim, data: &PublishedData, typed: Option<TimeUnit>) -> Result<ScaledClaim, Failure> {
        let undecided = |cause: &str, remedy| {
            let failure = Failure::request(format!("cannot check the claim `{}`", claim.text));
            Err(failure.because(cause).hint(remedy))
        };
        let is_of_values = claim.figure.is_of_values();
        let time = typed.map(PublishedUnit::Time).filter(|_| is_of_values && data.is_timed);
        let unit = match claim.unit.or(time) {
            Some(PublishedUnit::Time(_)) if !data.is_timed => {
                let remedy = "say which unit they have, such as `--unit us`, or leave that of the claim out";
                return undecided("the numbers of the file have no unit", remedy);
            }
            None if is_of_values && data.is_timed => {
                let remedy = "write it behind the number: `mean=296us`";
                return undecided("a unit is missing", remedy);
            }
            Some(PublishedUnit::Percent) => 0.01,
            Some(PublishedUnit::Time(unit)) => unit.nanos(),
            None => 1.0,
        };
        let of_text = unit / 10_f64.powi(claim.decimals as i32);
        // Of values that are rounded to 1 ns, finer digits say nothing.
        let step = if is_of_values && data.is_rounded { of_text.max(1.0) } else { of_text };
        match claim.figure {
            PublishedFigure::Lost | PublishedFigure::LossRatio if !data.knows_losses => undecided(
                "the log does not state losses: that it has none says nothing",
                "leave the claim out; recordings of latlab and logs of ping, irtt and sockperf state losses",
            ),
            PublishedFigure::N if !data.knows_losses && data.missing_ids > 0 => {
                let missing = counted(data.missing_ids as usize, "number");
                let cause =
                    format!("its rows leave out {missing}, and the log does not state whether these probes were lost");
                undecided(&cause, "leave the claim out; the other values are of the rows")
            }
            _ => Ok(ScaledClaim { claim: claim.clone(), unit, value: claim.value * unit, step }),
        }
    }

    /// What two doubles may differ by that are computed in different ways: less than a digit, but for digits that doubles, or
    /// sums of many, do not have.
    fn tolerance(&self, figure: f64) -> f64 {
        let size = self.value.abs().max(figure.abs());
        let is_sum = matches!(self.claim.figure, PublishedFigure::Mean | PublishedFigure::Stddev);
        (size * 1e-12).min(self.step / 16.0).max(size * if is_sum { 1e-12 } else { 1e-15 })
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

/// The search for hypotheses that reproduce what does not hold.
struct Search<'a> {
    data: &'a PublishedData,
    claims: &'a [ScaledClaim],
    /// The correct computation first, and none behind one with more mistakes.
    hypotheses: Vec<Hypothesis>,
    /// Of each hypothesis the figure of each claim.
    figures: Vec<Vec<Option<f64>>>,
    /// Indices of the claims that do not hold.
    failing: Vec<usize>,
}

impl<'a> Search<'a> {
    fn of(data: &'a PublishedData, claims: &'a [ScaledClaim], hypotheses: Vec<Hypothesis>) -> Search<'a> {
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
        Search { data, claims, hypotheses, figures, failing }
    }

    /// The single mistakes that change a figure; what is called a maximum may be a quantile of any rule.
    fn effective(&self) -> Vec<usize> {
        let is_maximum = self.failing.iter().any(|claim| self.claims[*claim].claim.figure == PublishedFigure::Max);
        let changing = |at: &usize| self.figures[*at] != self.figures[0] || is_maximum && self.is_convention(*at);
        (1..self.hypotheses.len()).filter(changing).flat_map(|at| self.hypotheses[at].clone()).collect()
    }

    /// Whether a hypothesis is another rule of quantiles alone.
    fn is_convention(&self, hypothesis: usize) -> bool {
        matches!(self.hypotheses[hypothesis].as_slice(), [only] if MISTAKES[*only].aspect == Aspect::QuantileRule)
    }

    /// For each failing quantile that another rule reproduces, this rule and its figure: of several that which reproduces most.
    fn conventions(&self) -> BTreeMap<usize, (&'static Mistake, Option<f64>)> {
        let reproduced = |at: usize| {
            self.failing.iter().copied().filter(move |claim| self.reproduces(at, *claim)).collect::<Vec<_>>()
        };
        let mut rules: Vec<(usize, Vec<usize>)> =
            (1..self.hypotheses.len()).filter(|at| self.is_convention(*at)).map(|at| (at, reproduced(at))).collect();
        rules.sort_by_key(|(_, claims)| Reverse(claims.len()));
        let mut found = BTreeMap::new();
        for (at, claims) in rules {
            let rule = &MISTAKES[self.hypotheses[at][0]];
            claims.into_iter().for_each(|claim| {
                found.entry(claim).or_insert((rule, self.figures[at][claim]));
            });
        }
        found
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
            let cost = |group: &ExplainedGroup| count(&self.hypotheses[group.hypothesis]) + group.against.len();
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
            hypothesis,
            against: holding.filter(|claim| !self.reproduces(hypothesis, *claim)).collect(),
            chance: self.chance(&figures, hypothesis),
            mistakes,
            figures,
        }
    }

    /// About how probable it is that a hypothesis with at most so many mistakes as this one has the digits of all `claims` by
    /// chance: the product of the parts of their ranges that have these digits, times the number of different digits that
    /// such hypotheses give them. A figure that is claimed twice counts once, with its most digits. Rules of quantiles do not
    /// count as mistakes here: they move a figure by a value at most.
    fn chance(&self, claims: &[usize], hypothesis: usize) -> f64 {
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        for claim in claims {
            let own = &self.claims[*claim];
            let part = parts.entry(own.claim.figure.name()).or_insert(1.0);
            *part = part.min(own.part());
        }
        let most = count(&self.hypotheses[hypothesis]).max(1);
        let digits = |own: &Vec<Option<f64>>| -> Option<Vec<i64>> {
            let of = |claim: &usize| {
                let figure = own[*claim].filter(|_| own[*claim] != self.figures[0][*claim])?;
                Some((figure / self.claims[*claim].step).round() as i64)
            };
            claims.iter().map(of).collect()
        };
        let tried = self.hypotheses.iter().zip(&self.figures).filter(|(own, _)| count(own) <= most);
        let different: BTreeSet<Vec<i64>> = tried.filter_map(|(_, own)| digits(own)).collect();
        (different.len() as f64 * parts.values().product::<f64>()).min(1.0)
    }

    fn checked(
        &self,
        at: usize,
        groups: &[ExplainedGroup],
        convention: Option<&(&'static Mistake, Option<f64>)>,
    ) -> CheckedClaim {
        let own = &self.claims[at];
        let n = self.data.answered() + self.data.lost;
        let group = groups.iter().find(|group| group.figures.contains(&at));
        let quantile = if let PublishedFigure::Quantile(q) = own.claim.figure { Some(q) } else { None };
        let supported = quantile.is_none_or(|q| (BODY..=1.0 - BODY).contains(&q) || n >= observations_needed(q));
        let recomputed = self.figures[0][at];
        let holds = own.has_digits_of(recomputed);
        let is_about_rank =
            |mistake: &&Mistake| matches!(mistake.aspect, Aspect::QuantileRule | Aspect::MaximumAsQuantile);
        let verdict = match group.filter(|group| group.chance <= CHANCE_MAX) {
            _ if (holds || convention.is_some()) && supported => ClaimVerdict::Holds,
            _ if holds || convention.is_some() => ClaimVerdict::Unsupported,
            Some(group) if !supported && group.mistakes.iter().all(is_about_rank) => ClaimVerdict::Unsupported,
            Some(_) => ClaimVerdict::Explained,
            None => ClaimVerdict::Contradicted,
        };
        CheckedClaim {
            stated: own.claim.clone(),
            claim: own.claim.text.clone(),
            figure: own.claim.figure.name(),
            unit: (self.data.is_timed && own.claim.figure.is_of_values()).then_some("ns"),
            scale: own.unit,
            published: own.value,
            recomputed,
            off: recomputed.filter(|_| !holds).map(|recomputed| own.value - recomputed),
            verdict,
            truncated: holds && recomputed.is_some_and(|figure| !own.is_rounded_from(figure)),
            supported,
            beyond: quantile.map(|q| n as f64 * q.min(1.0 - q)),
            convention: convention.map(|(rule, _)| *rule),
            reproduced: match convention {
                Some((_, figure)) => *figure,
                None => group.and_then(|group| self.figures[group.hypothesis][at]),
            },
        }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
