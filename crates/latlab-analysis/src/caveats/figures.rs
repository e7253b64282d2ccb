//! Caveats of what a single run does not show: quantiles of few probes, and, however many there are, what a slow change does
//! next, and how frequent rare bursts are (docs/statistics.md, "What no single run can know").

use super::rule::Rule;
use super::run::Run;
use crate::diagnostics::Severity::{Note, Warning};
use crate::plan::{Kind, defaults};
use crate::stats::{DescribedFigure, Description};
use crate::units::Nanos;
use crate::units::human::{grouped, percent, quantile, significant, span};

/// Fewer hits are too few to call them a burst.
const HITS_MIN: u64 = 10;
/// Fewer bursts do not show how frequent they are.
const BURSTS_MIN: f64 = 3.5;
/// An interval of at most so many steps of the clock is half that of its coarseness.
const WIDENED: f64 = 4.0;
/// Values that are worth more than this share of their number are not said to be worth less.
const NEARLY_ALL: f64 = 0.95;

/// The remedy of dependence within a run.
const SEVERAL_RUNS: &str = "measure several runs (`latlab run`) and compare them (`latlab compare`): they show how much runs differ; `--window` shows \
     the change within this one";

/// Of the main metric only: more metrics would raise more by chance.
pub(super) const RULES: &[Rule<Run<'_>>] = &[
    Rule {
        code: "slow-changes",
        raise: |run| {
            let (figure, effective_n) = run.described?.slow_changes?;
            let described = run.described?;
            let values = match figure {
                DescribedFigure::Mean => described.n - described.lost,
                DescribedFigure::Quantile(_) => described.n,
            };
            let (figure, metric) = (word(figure), run.manifest.spec.metric().title());
            let seen = if effective_n < NEARLY_ALL * values as f64 {
                format!("{} values count as {} for {figure}", grouped(values), significant(effective_n))
            } else {
                format!("seen in {figure}")
            };
            let is_supported = described.quantiles.iter().all(|quantile| quantile.supported);
            let message =
                format!("the {metric} changed slowly: long parts of the run differ more than short ones do ({seen})");
            Some((if is_supported { Note } else { Warning }, message))
        },
        effect: "a quantile then needs 100 effective observations beyond it; the intervals hold for this run, not for the next one",
        hint: |_| SEVERAL_RUNS.into(),
    },
    Rule {
        code: "rare-bursts",
        raise: |run| {
            Some((
                Warning,
                format!(
                    "{} probes without an answer in time came in {}",
                    lost_in_bursts(run)?.0,
                    about(lost_in_bursts(run)?.1)
                ),
            ))
        },
        effect: "so few bursts do not show how often they occur: the interval of the loss ratio may be too narrow, and the \
                 next run may lose none or many more",
        hint: |_| SEVERAL_RUNS.into(),
    },
    Rule {
        code: "rare-bursts",
        raise: |run| {
            // Slow changes look like bursts, and have the same remedy.
            let described = run.described.filter(|described| described.slow_changes.is_none())?;
            let (figure, bursts) = described.rare_bursts.filter(|_| lost_in_bursts(run).is_none())?;
            let metric = run.manifest.spec.metric().title();
            Some((Warning, format!("{} of the {metric} comes from {}", word(figure), about(bursts))))
        },
        effect: "so few bursts do not show how often they occur: its interval may be too narrow",
        hint: |_| SEVERAL_RUNS.into(),
    },
    Rule {
        code: "few-observations",
        // Slow changes have a caveat of their own: more probes are no remedy.
        raise: |run| {
            let described = run.described.filter(|one| one.slow_changes.is_none() && !run.is_imported())?;
            let weak = unsupported(described);
            (described.n > described.lost && !weak.is_empty()).then(|| (Note, too_few_beyond(&weak)))
        },
        effect: "the table shows these quantiles in parentheses, with a lower bound after `≥`, or with `n/a`",
        hint: |run| {
            let enough = run.described.and_then(Description::n_for_support).unwrap_or_default();
            let seconds = enough * defaults::STREAM_WINDOW.as_secs_f64();
            match run.manifest.kind {
                // The duration of a search is not that of the run.
                Kind::Stream if run.manifest.run.search.is_some() => "a longer `--duration`".into(),
                Kind::Stream if seconds > defaults::DURATION_MAX.as_secs_f64() => {
                    "quantiles nearer to p50: no run may take as long as these need".into()
                }
                Kind::Stream => format!("about `-d {}s` would support all of them", rounded_up(seconds)),
                _ => format!("about `-n {}` would support all of them", rounded_up(enough)),
            }
        },
    },
    Rule {
        code: "few-observations",
        // Delays cannot have a mean below the smallest of them, which symmetric intervals do not know. A shorter interval
        // would hide that the sample does not bound the mean from below.
        raise: |run| {
            let described = run.described.filter(|described| described.slow_changes.is_none())?;
            let interval = described.mean_interval.filter(|_| !run.manifest.spec.metric().is_rate())?;
            let (confidence, metric) = (percent(interval.confidence), run.manifest.spec.metric().title());
            let message = format!(
                "the {confidence} interval of the mean {metric} begins below the smallest value: too few independent \
                 values for so long a tail"
            );
            (interval.low? < described.min? - described.step).then_some((Note, message))
        },
        effect: "no mean is so low; the upper end may be too low as well",
        hint: |_| "more values; p50 depends less on the largest of them".into(),
    },
    Rule {
        code: "coarse-clock",
        raise: |run| {
            let described = run.described.filter(|_| run.is_imported())?;
            let (interval, step) = (described.mean_interval?, described.step);
            let message = || format!("all values are multiples of {}", span(Nanos(step as i64)));
            (step > 0.0 && interval.high? - interval.low? <= WIDENED * step).then(|| (Note, message()))
        },
        effect: "a delay may lie up to one such step from its value: intervals and lower bounds reach one step farther",
        hint: |_| "a finer clock, or a log with more digits".into(),
    },
];

fn word(figure: DescribedFigure) -> String {
    match figure {
        DescribedFigure::Mean => "the mean".into(),
        DescribedFigure::Quantile(q) => quantile(q),
    }
}

/// The number of lost probes and of the bursts in which they were lost; `None` if these are many, or nothing was lost.
fn lost_in_bursts(run: &Run<'_>) -> Option<(String, f64)> {
    let lost = run.lost?;
    let rarer = lost.hits.min(lost.n - lost.hits);
    let bursts = lost.effective_n? * rarer as f64 / lost.n as f64;
    (rarer >= HITS_MIN && bursts < BURSTS_MIN).then(|| (grouped(lost.hits), bursts))
}

/// Bursts differ in length, which makes their number a rough figure.
fn about(bursts: f64) -> String {
    match bursts.round() {
        ..2.0 => "about one burst".into(),
        several => format!("about {several:.0} bursts"),
    }
}

/// Rounded up to two digits.
fn rounded_up(number: f64) -> f64 {
    let scale = 10f64.powf(number.log10().floor() - 1.0).max(1.0);
    (number / scale).ceil() * scale
}

fn unsupported(described: &Description) -> Vec<f64> {
    described.quantiles.iter().filter(|one| !one.supported).map(|one| one.q).collect()
}

/// Of these unsupported quantiles only the ones nearest to the median are known to have too few observations beyond
/// them; further out there may be enough, but those quantiles are not supported either.
fn too_few_beyond(weak: &[f64]) -> String {
    let side = |upper: bool| weak.iter().copied().filter(move |q| (*q >= 0.5) == upper);
    let nearest: Vec<f64> = side(false).reduce(f64::max).into_iter().chain(side(true).reduce(f64::min)).collect();
    let names = |wanted: bool| {
        let chosen = weak.iter().filter(|q| nearest.contains(q) == wanted);
        chosen.map(|q| quantile(*q)).collect::<Vec<_>>().join(", ")
    };
    let message = format!("fewer than 10 effective observations lie beyond {}", names(true));
    match names(false) {
        rest if rest.is_empty() => message,
        rest => format!("{message}; also not supported: {rest}"),
    }
}
