//! Published figures against recomputed ones: a verdict for each, and the mistake that reproduces what does not hold.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{FigureClaim, PublishedFigure};
use super::digits::{
    Alternative, DigitMatch, FigureClaimError, FinerDigits, ScaledClaim, StretchPlace, ValueScale, chance_alone,
    chance_together, digit_match, stretch_of,
};
use super::merged::FigureSpan;
use super::mistake::{Hypothesis, Mistake};
use super::population::{Population, PopulationRule};
use super::raw_values::PublishedData;
use crate::stats::observations_needed;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

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

/// A figure is shown with at most so many decimals more than are published.
const DECIMALS_MAX: u32 = 12;

impl CheckedClaim {
    /// How many decimals more than are published show whether `value`, in ticks, has the published digits: 99.99 is cut off to
    /// 99, and 100.0 would hide that.
    pub fn further_decimals(&self, value: f64) -> u32 {
        let published = &self.claim.published;
        let compared = |value| digit_match(self.published, published.step(self.ticks), value);
        let is_faithful = |more: &u32| {
            let shown = format!("{:.*}", (published.decimals + more) as usize, value / self.ticks);
            shown.parse::<f64>().is_ok_and(|shown| compared(shown * self.ticks) == compared(value))
        };
        (1..DECIMALS_MAX).find(is_faithful).unwrap_or(DECIMALS_MAX)
    }
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
    /// chance. It is counted of `claims` without `uncounted`.
    pub chance: f64,
    /// Indices of those among the claims that alone would fit by chance too easily.
    pub uncounted: Vec<usize>,
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

/// Explanations that fit by chance more often than this give no verdict.
const CHANCE_MAX: f64 = 0.05;
/// Quantiles from this one to its counterpart are not extreme: they are figures of the sample at any n.
const BODY: f64 = 0.25;
/// The most explanations of a claim that are kept.
const EXPLANATIONS_MAX: usize = 4;

/// Checks `claims` about `data`. `unit` is that of claims without one.
///
/// # Errors
/// If the unit of a claim is missing, the values have none, the data do not decide a claim about losses, two claims state
/// different values of one figure, or the data do not decide the last digits of claims, all of which are named.
pub fn check_figures(
    data: &PublishedData,
    claims: &[FigureClaim],
    unit: Option<TimeUnit>,
) -> Result<FigureCheck, FigureClaimError> {
    claims.iter().try_for_each(|claim| expect_decidable(data, claim))?;
    let scaled = claims.iter().map(|claim| ScaledClaim::of(claim, data.scale, unit)).collect::<Result<Vec<_>, _>>()?;
    let figure_numbers = figure_numbers(&scaled)?;
    let mut hypotheses = vec![Hypothesis::default()];
    let mut computed = ComputedFigures::of(data, &hypotheses, &scaled);
    let correct = computed.figures.concat();
    let holds = |at: &usize| scaled[*at].matched(correct[*at]).is_some();
    let failing: Vec<usize> = (0..scaled.len()).filter(|at| !holds(at)).collect();
    if !failing.is_empty() {
        hypotheses = Hypothesis::all(&Mistake::possible(data, claims));
        computed = ComputedFigures::of(data, &hypotheses, &scaled);
    }
    computed.expect_decided(data.finer, &hypotheses, &scaled)?;
    computed.leave_out_undecided(data.finer, &hypotheses, &scaled, &failing);
    let search = Search {
        claims: &scaled,
        figure_numbers: &figure_numbers,
        hypotheses: &hypotheses,
        figures: &computed.figures,
        failing: &failing,
    };
    let groups = search.groups();
    let stretch = data.sleep.and_then(stretch_of);
    let minimum = data.values.iter().skip(data.warmup).min().map(|value| *value as f64);
    let checked: Vec<CheckedClaim> = (0..scaled.len())
        .map(|at| CheckedClaim {
            stretch: stretch.and_then(|stretch| scaled[at].stretch_place(correct[at], minimum, stretch, data.scale)),
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

/// The figures of claims by hypotheses.
struct ComputedFigures {
    /// Of each hypothesis the figure of each claim.
    figures: Vec<Vec<Option<f64>>>,
    /// Where the figure of a hypothesis and a claim lies, if that is not known better: it depends on how many values differ that
    /// are equal after rounding.
    spans: BTreeMap<(usize, usize), FigureSpan>,
}

impl ComputedFigures {
    /// Each population is sorted once.
    fn of(data: &PublishedData, hypotheses: &[Hypothesis], claims: &[ScaledClaim<'_>]) -> ComputedFigures {
        let mut of_population: BTreeMap<PopulationRule, Vec<usize>> = BTreeMap::new();
        for (at, hypothesis) in hypotheses.iter().enumerate() {
            of_population.entry(hypothesis.population(data)).or_default().push(at);
        }
        let mut figures = vec![Vec::new(); hypotheses.len()];
        let mut spans = BTreeMap::new();
        for (rule, members) in of_population {
            let population = Population::of(data, rule);
            for own in members {
                let hypothesis = &hypotheses[own];
                let factor_of =
                    |claimed: PublishedFigure| if claimed.is_of_values() { hypothesis.factor() } else { 1.0 };
                for (at, claim) in claims.iter().enumerate() {
                    let claimed = claim.claim.figure;
                    let (figure, rules, factor) =
                        (hypothesis.computed(claimed), hypothesis.rules(), factor_of(claimed));
                    figures[own].push(population.figure(figure, rules).map(|figure| figure * factor));
                    spans.extend(population.span(figure, rules).map(|span| ((own, at), span.times(factor))));
                }
            }
        }
        ComputedFigures { figures, spans }
    }

    /// Expects that rounding decides the verdict of no claim. Figures that depend on which values were equal before they were
    /// rounded come behind those of other hypotheses with as many mistakes.
    fn expect_decided(
        &self,
        finer: FinerDigits,
        hypotheses: &[Hypothesis],
        claims: &[ScaledClaim<'_>],
    ) -> Result<(), FigureClaimError> {
        let is_undecided = |at: usize| {
            let span = |own: usize| self.spans.get(&(own, at)).copied();
            let mut order: Vec<usize> = (0..hypotheses.len()).collect();
            order.sort_by_key(|own| (hypotheses[*own].mistakes.len(), span(*own).is_some()));
            let known = |own: usize| self.figures[own][at].map(FigureSpan::at);
            let spans = order.into_iter().map(|own| (span(own).or(known(own)), hypotheses[own].rounding_factor()));
            !claims[at].is_decided(spans, finer)
        };
        let undecided = (0..claims.len()).filter(|at| is_undecided(*at)).map(|at| claims[at].claim.text.clone());
        match undecided.collect::<Vec<_>>() {
            undecided if undecided.is_empty() => Ok(()),
            undecided => Err(FigureClaimError::TooFine { claims: undecided, finer }),
        }
    }

    /// Takes no figure of a `failing` claim for known whose digits depend on which values were equal before they were rounded.
    fn leave_out_undecided(
        &mut self,
        finer: FinerDigits,
        hypotheses: &[Hypothesis],
        claims: &[ScaledClaim<'_>],
        failing: &[usize],
    ) {
        for ((own, at), span) in &self.spans {
            let factor = hypotheses[*own].rounding_factor();
            if failing.contains(at) && claims[*at].is_matched(*span, finer, factor) != Some(true) {
                self.figures[*own][*at] = None;
            }
        }
    }
}

/// Claims that a hypothesis explains.
struct FoundGroup {
    hypothesis: usize,
    /// Those that it was found from.
    claims: Vec<usize>,
    /// Those that it reproduces besides.
    uncounted: Vec<usize>,
}

impl FoundGroup {
    fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.claims.iter().chain(&self.uncounted).copied()
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
        self.matched(hypothesis, claim).is_some()
    }

    fn matched(&self, hypothesis: usize, claim: usize) -> Option<DigitMatch> {
        self.claims[claim].matched(self.figures[hypothesis][claim])
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
    /// mistakes and contradictions, then the one that fits best. Each claim gets the part of it that it needs.
    fn groups(&self) -> Vec<ExplainedGroup> {
        let mut remaining = self.failing.to_vec();
        let mut found: Vec<FoundGroup> = Vec::new();
        while let Some(best) = self.best(&remaining) {
            let (own, others): (Vec<usize>, Vec<usize>) =
                remaining.iter().partition(|claim| self.reproduces(best, **claim));
            for claim in own {
                let part = self.part(best, claim);
                match found.iter_mut().find(|group| group.hypothesis == part) {
                    Some(group) => group.claims.push(claim),
                    None => found.push(FoundGroup { hypothesis: part, claims: vec![claim], uncounted: Vec::new() }),
                }
            }
            remaining = others;
        }
        self.sort(&mut found);
        let mut found = self.leaning_on_accepted(found);
        self.sort(&mut found);
        found.into_iter().map(|group| self.group(group)).collect()
    }

    /// Puts the groups of most figures first.
    fn sort(&self, groups: &mut [FoundGroup]) {
        groups.sort_by_key(|group| std::cmp::Reverse(self.count(group.all())));
    }

    /// The hypothesis that explains most of the `remaining` claims; `None` if none explains any.
    fn best(&self, remaining: &[usize]) -> Option<usize> {
        let explained = |at: &usize| self.count(remaining.iter().copied().filter(|claim| self.reproduces(*at, *claim)));
        let cost = |at: &usize| self.complexity(*at) + self.count(self.against(*at).into_iter());
        let explaining = (1..self.hypotheses.len()).filter(|at| explained(at) > 0);
        explaining.min_by_key(|at| (std::cmp::Reverse(explained(at)), cost(at), self.misfit(*at, remaining)))
    }

    /// How badly a hypothesis fits those of `claims` that it reproduces: how many digits are cut off instead of rounded, then
    /// the sum of the differences.
    fn misfit(&self, hypothesis: usize, claims: &[usize]) -> (usize, u64) {
        let figure = |claim: &usize| self.figures[hypothesis][*claim];
        let matched = claims.iter().filter_map(|claim| Some((self.matched(hypothesis, *claim)?, *claim)));
        matched.fold((0, 0), |(cut, off), (own, claim)| {
            let difference = figure(&claim).map_or(0, |figure| self.claims[claim].difference(figure));
            (cut + usize::from(own == DigitMatch::CutOff), off + difference)
        })
    }

    /// The fewest of the mistakes of `hypothesis` that reproduce `claim` as well as all of them.
    fn part(&self, hypothesis: usize, claim: usize) -> usize {
        let whole = &self.hypotheses[hypothesis];
        let parts = (1..self.hypotheses.len()).filter(|at| self.hypotheses[*at].is_part_of(whole));
        let matching = parts.filter_map(|at| Some((self.matched(at, claim)?, self.complexity(at), at)));
        matching.min().map_or(hypothesis, |(.., at)| at)
    }

    /// Gives claims of groups that fit by chance too easily to an accepted group whose hypothesis reproduces them: the evidence
    /// for that one does not come from them.
    fn leaning_on_accepted(&self, found: Vec<FoundGroup>) -> Vec<FoundGroup> {
        let is_accepted = |group: &FoundGroup| self.chance_of(group) <= CHANCE_MAX;
        let (mut accepted, weak): (Vec<FoundGroup>, Vec<FoundGroup>) = found.into_iter().partition(is_accepted);
        let mut left: Vec<FoundGroup> = Vec::new();
        for mut group in weak {
            group.claims.retain(|claim| {
                let reproducing = accepted.iter_mut().filter(|own| self.reproduces(own.hypothesis, *claim));
                let nearest = reproducing.min_by_key(|own| self.misfit(own.hypothesis, &[*claim]));
                nearest.map(|own| own.uncounted.push(*claim)).is_none()
            });
            left.push(group);
        }
        accepted.extend(left.into_iter().filter(|group| !group.claims.is_empty()));
        accepted
    }

    fn chance_of(&self, group: &FoundGroup) -> f64 {
        let mistakes = self.complexity(group.hypothesis);
        let claims = self.distinct(&group.claims).into_iter();
        chance_together(&claims.map(|claim| self.chance(claim, mistakes)).collect::<Vec<_>>())
    }

    fn group(&self, found: FoundGroup) -> ExplainedGroup {
        let mut claims: Vec<usize> = found.all().collect();
        claims.sort_unstable();
        ExplainedGroup {
            hypothesis: self.hypotheses[found.hypothesis].clone(),
            against: self.against(found.hypothesis),
            chance: self.chance_of(&found),
            claims,
            uncounted: found.uncounted,
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
            is_truncated: scaled.matched(recomputed) == Some(DigitMatch::CutOff),
            beyond: tail.map(|(beyond, _)| beyond),
            is_supported,
            nearest: (!holds && explanations.is_empty()).then(|| self.nearest(at)).flatten(),
            explanations,
            stretch: None,
        }
    }

    /// The hypotheses that reproduce a claim: `chosen`, then those that no simpler one is a part of, and that are no part of it.
    fn explanations(&self, claim: usize, chosen: &Hypothesis) -> Vec<Explanation> {
        let mut found: Vec<Explanation> = Vec::new();
        let with_chosen = self.hypotheses.iter().position(|hypothesis| hypothesis == chosen);
        for at in with_chosen.into_iter().chain(1..self.hypotheses.len()) {
            let (hypothesis, figure) = (&self.hypotheses[at], self.figures[at][claim]);
            let is_part = Some(at) != with_chosen && hypothesis.is_part_of(chosen);
            let is_new = !is_part && !found.iter().any(|other| other.hypothesis.is_part_of(hypothesis));
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
