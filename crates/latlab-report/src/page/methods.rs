//! How the figures of a page were computed, in plain words, as far as they apply to it. docs/statistics.md has formulas,
//! sources and measured properties.

use super::input::PageInput;
use crate::analysis::Kind;
use crate::analysis::comparison::QuestionScope;
use crate::recipe;
use crate::units::human::percent;

/// A paragraph, and whether it applies.
struct Paragraph {
    applies: bool,
    text: String,
}

/// The paragraphs that apply to `input`.
pub(super) fn methods(input: &PageInput<'_>) -> Vec<String> {
    let is_of = |kind: Kind| input.summaries.iter().any(|summary| summary.kind == kind);
    let several = input.summaries.len() > 1;
    let is_of_one_condition = several && input.experiment.is_some_and(|it| it.report.single_condition.is_some());
    let paragraph = |applies: bool, text: &str| Paragraph { applies, text: text.into() };
    let mut all: Vec<Paragraph> = recipe_paragraphs(input);
    all.extend([
        paragraph(is_of(Kind::Ping), PING),
        paragraph(is_of(Kind::Wakeup), WAKEUP),
        paragraph(is_of(Kind::Stream), STREAM),
        paragraph(!input.summaries.is_empty(), FIGURES),
        paragraph(!input.summaries.is_empty(), INTERVALS),
        Paragraph { applies: input.comparisons.is_some(), text: comparison(input) },
        paragraph(is_of_one_condition, SINGLE_CONDITION),
        paragraph(several, RUNS),
        paragraph(!input.figures.is_empty(), PLOTS),
        paragraph(input.summaries.iter().any(|summary| !summary.loads.is_empty()), LOADS),
    ]);
    all.into_iter().filter(|paragraph| paragraph.applies).map(|paragraph| paragraph.text).collect()
}

/// What was published, and what it teaches.
fn recipe_paragraphs(input: &PageInput<'_>) -> Vec<Paragraph> {
    let facts = input.experiment.and_then(|it| it.report.recipe.as_ref());
    let Some(recipe) = facts.and_then(|facts| recipe::find(&facts.name)) else { return Vec::new() };
    let texts = [format!("First measured as: {}.", recipe.origin), recipe.lesson.clone()];
    texts.map(|text| Paragraph { applies: true, text }).into()
}

const PING: &str = "The round trip delay counts from the clock reading before a probe is sent until the one after its answer \
    was received, both on the sender's clock; it includes the time at the reflector, and it is not halved (RFC 2681). A probe \
    without an answer within its time-out is lost, and one that is answered later is late: both count as infinite delays in n \
    and in every quantile, but not in minimum, mean, standard deviation and maximum.";

const WAKEUP: &str = "The wake-up latency counts from the instant at which a thread was due to run until it read the clock. A \
    thread that overslept a slot of its schedule is counted for each of them.";

const STREAM: &str = "Rates are payload per time, in intervals of about 100 ms, or in those of an imported log: the offered rate is what the kernel of the sender \
    accepted, the delivered rate what arrived. Intervals count with their length. Packets that were sent and did not arrive \
    are lost.";

const FIGURES: &str = "A quantile such as p99 is computed from all values of a run, sorted by size and not rounded into bins. \
    Between two neighbouring values it is interpolated linearly, as in most statistical software (type 7 in the list of Hyndman \
    and Fan, 1996). A quantile in parentheses has too few independent values beyond it: another run may well give another one. \
    Its lower bound, after `≥` or `at least`, holds with a confidence of 95 %. The standard deviation divides by n − 1.";

const INTERVALS: &str = "An interval of a single run is a 95 % confidence interval which allows for the dependence of successive \
    probes. It is about that run: how much runs differ is not in it, so that it does not decide whether two runs differ.";

const RUNS: &str = "Where a figure shows several runs of a condition, each run has one curve or one point: a curve is the median of \
    the runs at each quantile, and its band is their range. Probes of several runs are never pooled. Where a table has a row for \
    each condition, its figures are medians of the figures of the runs, and minimum and maximum are those of all runs. From six \
    runs of one condition on such a median has a 95 % interval between two of the runs (order statistics), which assumes no \
    distribution; runs that differ in another factor have their range instead.";

const SINGLE_CONDITION: &str = "The means of the condition are geometric means of the figures of its runs; of ratios such as \
    losses, and where a figure of a run is not above 0, they are arithmetic. Their 95 % intervals are t intervals from the spread \
    of the runs within their blocks, and hold for these blocks. A statistic that is infinite in one run has no mean. Tables and \
    plots have medians of the runs, with intervals of their own: a mean and a median may differ.";

const PLOTS: &str = "No curve is smoothed. Tails, percentiles and histograms end at the extreme values. Points of the tail and of \
    the quantiles of a run are its measured delays (order statistics); the tables interpolate between two of them. Delay over time shows counts \
    in cells, and a cell with one probe is drawn as dark as can be seen, so that an outlier does not vanish. Losses are part of \
    the picture: a tail ends at the share of lost probes.";

const LOADS: &str = "Loads were generated by latlab while the runs were measured. The achieved figure is the mean over the \
    measuring phase, of several runs the mean of theirs; minimum and maximum are those of windows of 100 ms. A load is read \
    every 100 ms: one that was measured for less has no achieved figure.";

/// How runs were compared; empty if they were not.
fn comparison(input: &PageInput<'_>) -> String {
    let Some(options) = input.comparisons.map(|comparisons| &comparisons.options) else { return String::new() };
    let test = match options.scope {
        QuestionScope::Blocks => {
            "the larger p value of a permutation test, which exchanges runs within their blocks, and of Welch's t; it holds for \
             the blocks that were measured"
        }
        QuestionScope::Boots => "the larger p value of a sign permutation test over boots and of a paired t",
    };
    format!(
        "A comparison has runs as its observations, not probes. A difference is decided by {test}. The p values of all \
         comparisons are adjusted together (Holm). Intervals of changes have a confidence of {}. `lower` and `higher` are \
         decided, `equivalent` means that the difference is proven to lie within the margin, and `undecided` that the runs show \
         neither: it does not mean that there is no difference. If probes were lost, each claim must also hold when each of \
         them counts as its time-out. The figures of a comparison are geometric means of the figures of the runs, and their \
         ratio is the change; of ratios such as losses, and where a figure of a run is not above 0, they are means. Tables of \
         conditions and plots of conditions have medians of the runs: the ratio of two medians may differ from the change.",
        percent(options.confidence)
    )
}
