//! Published figures against recomputed ones: a verdict for each, and the mistake that reproduces what does not hold.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{FigureClaim, PublishedFigure};
use super::digits::{
    Alternative, DigitMatch, FinerDigits, ScaledClaim, StretchPlace, Undecidable, UndecidedClaim, ValueScale,
    chance_alone, chance_together, digit_match, refusal, stretch_of,
};
use super::merged::FigureSpan;
use super::mistake::{Hypothesis, Mistake};
use super::population::{Population, PopulationRule};
use super::raw_values::PublishedData;
use crate::diagnostics::Failure;
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
    pub hypothesis: Hypothesis,
    /// The figure with them, in ticks of the data, or as a count or share.
    pub computed: f64,
}

/// A published figure with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedClaim {
    pub claim: FigureClaim,
    /// The length of the published unit in ticks of the data; 1 of counts, 1 or 0.01 of shares.
    pub ticks: f64,
    /// The published value in ticks of the data, or as a count or share.
    pub published: f64,
    /// The correct figure; `None` if it does not exist, or is infinite.
    pub recomputed: Option<f64>,
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
    /// Each claim that the data decide, in their order.
    pub claims: Vec<CheckedClaim>,
    /// The other ones, in their order.
    pub undecided: Vec<UndecidedClaim>,
    /// Explanations, those of most claims first; their chance may be too large for a verdict.
    pub groups: Vec<ExplainedGroup>,
    /// Hypotheses that were tried, apart from the correct computation; 0 if every claim holds.
    pub tried: usize,
    /// Values of answered probes without the warm-up.
    pub answered: u64,
    /// Lost probes, as far as the data state them.
    pub lost: u64,
    /// Whether the data state every loss.
    pub knows_losses: bool,
    /// The part of a time-out by which select(2) may wake later, if it shows in a figure.
    pub stretch: Option<Nanos>,
    pub scale: ValueScale,
}

impl FigureCheck {
    pub fn all_hold(&self) -> bool {
        self.undecided.is_empty() && self.claims.iter().all(|claim| claim.verdict == ClaimVerdict::Holds)
    }

    /// The failure that names all undecided claims, if there are any.
    pub fn refusal(&self) -> Option<Failure> {
        refusal(&self.undecided)
    }
}

/// Explanations that fit by chance more often than this give no verdict.
const CHANCE_MAX: f64 = 0.05;
/// Quantiles from this one to its counterpart are not extreme: they are figures of the sample at any n.
const BODY: f64 = 0.25;
/// The most explanations of a claim that are kept.
const EXPLANATIONS_MAX: usize = 4;

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
    let mut undecided: BTreeMap<usize, Undecidable> = BTreeMap::new();
    let mut scaled = Vec::new();
    for (place, claim) in claims.iter().enumerate() {
        match expect_stated(data, claim).and_then(|()| ScaledClaim::of(claim, data.scale, unit)) {
            Ok(own) => scaled.push(own),
            Err(reason) => undecided.extend([(place, reason)]),
        }
    }
    let places: Vec<usize> = (0..claims.len()).filter(|place| !undecided.contains_key(place)).collect();
    let figure_numbers = figure_numbers(&scaled)?;
    let mut computed = ComputedFigures::of(data, vec![Hypothesis::default()], &scaled);
    if (0..scaled.len()).any(|at| !computed.holds(at)) {
        computed = ComputedFigures::of(data, Hypothesis::all(&Mistake::possible(data, claims)), &scaled);
    }
    let (judged, too_fine): (Vec<usize>, Vec<usize>) = (0..scaled.len()).partition(|at| computed.is_decided(*at));
    undecided.extend(too_fine.into_iter().map(|at| {
        let can_be_shorter = scaled[at].claim.published.can_be_shorter();
        (places[at], Undecidable::TooFine { finer: data.finer, can_be_shorter })
    }));
    let search = Search {
        claims: judged.iter().map(|at| &scaled[*at]).collect(),
        figure_numbers: judged.iter().map(|at| figure_numbers[*at]).collect(),
        hypotheses: &computed.hypotheses,
        figures: computed.known(&judged),
        failing: (0..judged.len()).filter(|at| !computed.holds(judged[*at])).collect(),
    };
    let groups = search.groups();
    let stretch = data.sleep.and_then(stretch_of);
    let minimum = data.values.iter().skip(data.warmup).min().map(|value| *value as f64);
    let checked: Vec<CheckedClaim> = (0..judged.len())
        .map(|at| {
            let checked = search.checked(at, &groups, data.answered() + data.lost);
            let place = |stretch| search.claims[at].stretch_place(checked.recomputed, minimum, stretch, data.scale);
            CheckedClaim { stretch: stretch.and_then(place), ..checked }
        })
        .collect();
    let undecided = undecided.into_iter().map(|(at, reason)| UndecidedClaim { claim: claims[at].clone(), reason });
    Ok(FigureCheck {
        stretch: stretch.filter(|_| checked.iter().any(|claim| claim.stretch.is_some())),
        claims: checked,
        undecided: undecided.collect(),
        groups,
        tried: computed.hypotheses.len() - 1,
        answered: data.answered(),
        lost: data.lost,
        knows_losses: data.knows_losses,
        scale: data.scale,
    })
}

/// Expects that a claim is not about losses that `data` do not state.
fn expect_stated(data: &PublishedData, claim: &FigureClaim) -> Result<(), Undecidable> {
    match claim.figure {
        _ if data.knows_losses => Ok(()),
        PublishedFigure::Lost | PublishedFigure::LossRatio => Err(Undecidable::LossesUnknown),
        PublishedFigure::N if data.missing_ids > 0 => Err(Undecidable::ProbesMissing(data.missing_ids)),
        _ => Ok(()),
    }
}

/// The number of each claim's figure: claims of one figure have the same, which must have one value.
fn figure_numbers(claims: &[ScaledClaim<'_>]) -> Result<Vec<usize>, Failure> {
    let mut first_of: BTreeMap<String, usize> = BTreeMap::new();
    let number = |(at, own): (usize, &ScaledClaim<'_>)| {
        let first = *first_of.entry(own.claim.figure.name()).or_insert(at);
        match claims[first].has_value_of(own) {
            true => Ok(first),
            false => Err(Failure::request(format!(
                "cannot check both `{}` and `{}`",
                claims[first].claim.text, own.claim.text
            ))
            .because("they are different values of one figure, of which a sample has one")
            .hint("leave one of them out, or check each in a run of its own")),
        }
    };
    claims.iter().enumerate().map(number).collect()
}

/// The figures of claims by hypotheses.
struct ComputedFigures<'a> {
    claims: &'a [ScaledClaim<'a>],
    /// The correct computation first, and none behind one with more mistakes.
    hypotheses: Vec<Hypothesis>,
    /// Of each hypothesis the figure of each claim.
    figures: Vec<Vec<Option<f64>>>,
    /// Where the figure of a hypothesis and a claim lies, if that is not known better: it depends on how many values differ that
    /// are equal after rounding.
    spans: BTreeMap<(usize, usize), FigureSpan>,
    /// The figures of a hypothesis and a claim that are exact although values were rounded.
    exact: BTreeSet<(usize, usize)>,
    finer: FinerDigits,
}

impl<'a> ComputedFigures<'a> {
    /// Each population is sorted once.
    fn of(data: &PublishedData, hypotheses: Vec<Hypothesis>, claims: &'a [ScaledClaim<'a>]) -> ComputedFigures<'a> {
        let mut of_population: BTreeMap<PopulationRule, Vec<usize>> = BTreeMap::new();
        for (at, hypothesis) in hypotheses.iter().enumerate() {
            of_population.entry(hypothesis.population(data)).or_default().push(at);
        }
        let mut figures = vec![Vec::new(); hypotheses.len()];
        let (mut spans, mut exact) = (BTreeMap::new(), BTreeSet::new());
        for (rule, members) in of_population {
            let population = Population::of(data, rule);
            for own in members {
                let hypothesis = &hypotheses[own];
                for (at, claim) in claims.iter().enumerate() {
                    let claimed = claim.claim.figure;
                    let (figure, rules) = (hypothesis.computed(claimed), hypothesis.rules());
                    let factor = if claimed.is_of_values() { hypothesis.factor() } else { 1.0 };
                    figures[own].push(population.figure(figure, rules).map(|figure| figure * factor));
                    match population.span(figure, rules) {
                        Some(span) => spans.extend([((own, at), span.times(factor))]),
                        None if population.is_exact(figure, rules) => exact.extend([(own, at)]),
                        None => {}
                    }
                }
            }
        }
        ComputedFigures { claims, hypotheses, figures, spans, exact, finer: data.finer }
    }

    /// Whether the correct figure has the digits of a claim.
    fn holds(&self, claim: usize) -> bool {
        self.claims[claim].matched(self.figures[0][claim]).is_some()
    }

    /// Whether the figure of a hypothesis has the digits of a claim; `None` if rounding decides that.
    fn is_matched(&self, hypothesis: usize, claim: usize) -> Option<bool> {
        let at = (hypothesis, claim);
        let known = || self.figures[hypothesis][claim].map(FigureSpan::at);
        let Some(span) = self.spans.get(&at).copied().or_else(known) else { return Some(false) };
        let finer = if self.exact.contains(&at) { FinerDigits::Absent } else { self.finer };
        self.claims[claim].is_matched(span, finer, self.hypotheses[hypothesis].rounding_factor())
    }

    /// Whether rounding decides neither whether the correct figure has the digits of a claim, nor which hypothesis is the first
    /// that has them. Figures that depend on which values were equal before they were rounded come behind those of other
    /// hypotheses with as many mistakes.
    fn is_decided(&self, claim: usize) -> bool {
        let mut order: Vec<usize> = (0..self.hypotheses.len()).collect();
        order.sort_by_key(|own| (self.hypotheses[*own].mistakes.len(), self.spans.contains_key(&(*own, claim))));
        order.into_iter().map(|own| self.is_matched(own, claim)).find(|matched| *matched != Some(false)) != Some(None)
    }

    /// Of each hypothesis the figures of the `judged` claims. Of a claim that does not hold, none is taken for known whose digits
    /// depend on which values were equal before they were rounded.
    fn known(&self, judged: &[usize]) -> Vec<Vec<Option<f64>>> {
        let is_known = |own: usize, claim: usize| {
            !self.spans.contains_key(&(own, claim)) || self.holds(claim) || self.is_matched(own, claim) == Some(true)
        };
        let of = |own: usize| judged.iter().map(move |at| self.figures[own][*at].filter(|_| is_known(own, *at)));
        (0..self.hypotheses.len()).map(|own| of(own).collect()).collect()
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
    claims: Vec<&'a ScaledClaim<'a>>,
    /// Of each claim the number of its figure: a figure that is claimed twice is one piece of evidence.
    figure_numbers: Vec<usize>,
    hypotheses: &'a [Hypothesis],
    /// Of each hypothesis the figure of each claim.
    figures: Vec<Vec<Option<f64>>>,
    /// Indices of the claims that do not hold.
    failing: Vec<usize>,
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
        let mut remaining = self.failing.clone();
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
        let scaled = self.claims[at];
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

#[cfg(test)]
#[path = "rounding_tests.rs"]
mod rounding_tests;
