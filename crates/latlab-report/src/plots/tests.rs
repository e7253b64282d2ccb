//! Figures of runs in memory: which ones appear, and the numbers of their marks.

use super::*;
use crate::analysis::Estimand;
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, Comparisons, ObservedRun, Quantity, RunGroups, compare, default_estimands,
};
use crate::analysis::distribution::{RunDistribution, distribution};
use crate::analysis::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, scheduled, stream_interval};
use crate::facts::{CpuReadings, HostReadings, HostSample, IntervalCounts};
use crate::figure::axis::Scale;
use crate::figure::table::csv;
use crate::figure::{Mark, Shape};
use crate::metric::Metric;
use crate::plan::{Kind, Side};
use crate::probe::Fate;

/// A closed loop with a probe each ms of these delays in µs; 0 is a lost probe.
fn source(delays_us: impl IntoIterator<Item = i64>) -> InMemory {
    let row = |(seq, delay): (usize, i64)| {
        let row = closed(seq as u64, seq as i64 * 1_000, delay);
        if delay == 0 { but(row, Fate::Lost) } else { row }
    };
    InMemory { batch: 1_000, ..InMemory::of(CLOSED, delays_us.into_iter().enumerate().map(row).collect()) }
}

fn plots_of(source: &InMemory) -> Vec<Figure> {
    let run = distribution(source, source.manifest.metric()).expect("rows in memory");
    plots(vec![condition("a", &[], vec![run])])
}

fn run(delays_us: impl IntoIterator<Item = i64>) -> RunDistribution {
    distribution(&source(delays_us), Metric::RoundTripDelay).expect("rows in memory")
}

fn condition(name: &str, levels: &[(&str, &str)], runs: Vec<RunDistribution>) -> PlotCondition {
    let levels = levels.iter().map(|(factor, level)| ((*factor).to_owned(), (*level).to_owned())).collect();
    PlotCondition { name: name.into(), levels, runs }
}

fn plots(conditions: Vec<PlotCondition>) -> Vec<Figure> {
    let figures = figures(&PlotInput { conditions, comparisons: None, recipe: None });
    figures.iter().for_each(expect_drawable);
    figures
}

fn names(figures: &[Figure]) -> Vec<&str> {
    figures.iter().map(|figure| figure.name.as_str()).collect()
}

fn named<'a>(figures: &'a [Figure], name: &str) -> &'a Figure {
    figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no {name}: {:?}", names(figures)))
}

/// The values of marks: those of x, then those of y.
fn numbers(marks: &[Mark]) -> Vec<Vec<f64>> {
    marks.iter().map(|mark| [&mark.x[..], &mark.y].concat()).collect()
}

/// Values that are numbers, ascending limits, positive ones where an axis is logarithmic, and no more marks than a page can hold.
fn expect_drawable(figure: &Figure) {
    for scale in [&figure.x.scale, &figure.y.scale] {
        match scale {
            Scale::Linear(from, to) => assert!(from.is_finite() && from < to, "{}: {scale:?}", figure.name),
            Scale::Log(from, to) => assert!(*from > 0.0 && *to > 0.0 && from != to, "{}: {scale:?}", figure.name),
            Scale::Categories(names) => assert!(!names.is_empty() && names.len() <= 60, "{}", figure.name),
        }
    }
    assert!(!figure.series.is_empty() && !figure.caption.contains("  "), "{}: {}", figure.name, figure.caption);
    let marks: Vec<Vec<f64>> = figure.series.iter().flat_map(|series| numbers(&series.marks)).collect();
    assert!(!marks.is_empty() && marks.len() <= 10_000, "{}: {}", figure.name, marks.len());
    assert!(!marks.iter().flatten().any(|value| value.is_nan()), "{}", figure.name);
}

#[test]
fn one_run_has_its_tail_its_histogram_and_its_time() {
    let figures = plots(vec![condition("a", &[], vec![run([20, 10, 0, 40])])]);
    assert_eq!(names(&figures), ["tail", "percentiles", "histogram", "over-time"]);
    let tail = named(&figures, "tail");
    let steps = numbers(&tail.series[0].marks);
    assert_eq!(steps[1..], [[40_000.0, 0.5], [20_000.0, 0.75], [10_000.0, 1.0]].map(Vec::from));
    assert_eq!((&steps[0], numbers(&tail.series[1].marks).len()), (&vec![f64::INFINITY, 0.25], 3));
    assert!(matches!(tail.y.scale, Scale::Log(least, 1.0) if least == 0.125));
    assert!(
        tail.caption.starts_with("1 run: 4 probes, 1 of them lost or late. Round trips are not halved."),
        "{}",
        tail.caption
    );
    let percentiles = numbers(&named(&figures, "percentiles").series[0].marks);
    // The line ends where the lost probe begins.
    assert_eq!(percentiles, [[1.0, 10_000.0], [0.75, 20_000.0], [0.5, 40_000.0], [0.25, 40_000.0]].map(Vec::from));
    let histogram = named(&figures, "histogram");
    let [delays, lost] = histogram.series.as_slice() else { panic!("{histogram:?}") };
    assert_eq!(numbers(&delays.marks).iter().map(|bar| bar[2]).collect::<Vec<_>>(), [1.0, 1.0, 1.0]);
    assert_eq!(numbers(&lost.marks), [[f64::INFINITY, f64::INFINITY, 1.0]].map(Vec::from));
    // A lost probe has no delay in the data.
    assert!(csv(histogram).ends_with(",,,1\n") && csv(tail).contains("\n,0.25\n"), "{}{}", csv(histogram), csv(tail));
    let over_time = named(&figures, "over-time");
    assert_eq!((numbers(&over_time.series[0].marks).len(), numbers(&over_time.series[1].marks).len()), (3, 1));
    assert!(csv(over_time).ends_with(",1 probe\n"), "{}", csv(over_time));
    let lost = &over_time.series[1].marks[0];
    assert_eq!((lost.y[0], lost.text.as_str()), (f64::INFINITY, "1 probe"));
}

#[test]
fn several_runs_are_a_mean_with_their_range_and_points() {
    let runs = (0..5).map(|index| run([10 + index, 20 + index, 30 + index, 40 + index])).collect();
    let figures = plots(vec![condition("a", &[], runs)]);
    assert_eq!(names(&figures), ["tail", "percentiles", "histogram", "box-plots", "box-plots-p99"]);
    // The bins of 10 to 14 µs and so on: a probe of one run each, and none of the median run.
    let [largest] = named(&figures, "histogram").series.as_slice() else { panic!("no bar of a median") };
    assert_eq!((largest.name.as_str(), numbers(&largest.marks)[0][2]), ("largest of the runs", 1.0));
    let [band, line] = named(&figures, "percentiles").series.as_slice() else { panic!("a band and a line") };
    assert_eq!(numbers(&band.marks)[0], [1.0, 10_000.0, 14_000.0]);
    expect_mean(&line.marks[0].y, 11_916.0);
    // The largest of four probes.
    assert_eq!(line.marks.last().expect("marks").x, [0.25]);
    let [boxes, points] = named(&figures, "box-plots").series.as_slice() else { panic!("boxes and points") };
    assert_eq!(numbers(&boxes.marks), [vec![26_000.0, 27_000.0, 28_000.0, 25_000.0, 29_000.0, 0.0]]);
    assert_eq!(numbers(&points.marks).len(), 5);
    let tail = named(&figures, "tail");
    let range =
        numbers(&tail.series[0].marks).into_iter().find(|range| range[0] == 30_000.0).expect("a delay of a run");
    assert_eq!(range, [30_000.0, 0.5, 0.5]);
    let range =
        numbers(&tail.series[0].marks).into_iter().find(|range| range[0] == 22_000.0).expect("a delay of a run");
    assert_eq!(range, [22_000.0, 0.5, 0.75]);
    let line = &tail.series[1].marks;
    expect_mean(&line[0].x, 11_916.0);
    assert_eq!((line[0].y[0], line.last().expect("marks").y[0]), (1.0, 0.25));
}

/// A geometric mean.
fn expect_mean(value: &[f64], mean: f64) {
    assert!((value[0] / mean - 1.0).abs() < 1e-5, "{value:?} {mean}");
}

#[test]
fn captions_of_curves_depend_on_losses_and_on_the_number_of_runs() {
    let captions = |runs: Vec<RunDistribution>| {
        let figures = plots(vec![condition("a", &[], runs)]);
        ["tail", "percentiles"].map(|name| named(&figures, name).caption.clone())
    };
    for (runs, tail, percentiles) in [
        (vec![run([10, 20])], "a line runs along the lower edge.", "Lines end with the largest delay."),
        (vec![run([10, 0])], "a line shows the share without a delay.", "infinite delays are not drawn."),
        (
            vec![run([10, 12]), run([20, 22])],
            "a line runs along the lower edge.",
            "the rarest quantile that every run has.",
        ),
        (vec![run([10, 20]), run([20, 0])], "A line ends where a run has infinite delays.", "reaches infinite delays."),
    ] {
        let [of_tail, of_percentiles] = captions(runs);
        assert!(of_tail.ends_with(tail) && of_percentiles.ends_with(percentiles), "{of_tail} {of_percentiles}");
        assert!(of_percentiles.matches("medians").count() <= 1, "{of_percentiles}");
    }
}

#[test]
fn figures_of_wake_ups_do_not_name_probes() {
    let rows = (0..9).map(|seq| scheduled(seq, seq as i64 * 1_000, 0, 60 + seq as i64)).collect();
    let mut source = InMemory::of(EVERY_MS, rows);
    source.manifest.kind = Kind::Wakeup;
    let figures = plots_of(&source);
    assert_eq!(names(&figures), ["tail", "percentiles", "histogram", "over-time"]);
    for figure in &figures {
        let words = [&figure.caption, &figure.x.label, &figure.y.label];
        assert!(words.iter().all(|words| !words.contains("probe")) && !csv(figure).contains("probe"), "{figure:?}");
    }
    assert_eq!(named(&figures, "over-time").x.label, "time since the first measured wake-up");
}

#[test]
fn a_numeric_factor_is_swept() {
    let of = |size: &str, load: &str, delay: i64| {
        let runs = (0..3).map(|index| run([delay + index; 4])).collect();
        condition(&format!("{size} {load}"), &[("size", size), ("load", load), ("wait", "block")], runs)
    };
    let conditions =
        vec![of("64", "none", 10), of("1024", "none", 20), of("8192", "none", 40), of("64", "cpu=80%", 30)];
    let figures = plots(conditions);
    let sweep = named(&figures, "sweep");
    let lines: Vec<_> = sweep.series.iter().filter(|series| series.shape == Shape::Line).collect();
    assert_eq!(lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["load=none", "load=cpu=80%"]);
    for (mark, mean) in lines[0].marks.iter().zip([10_969.6, 20_984.1, 40_991.9]) {
        expect_mean(&mark.y, mean);
    }
    assert_eq!(numbers(&sweep.series[0].marks)[0], [64.0, 10_000.0, 12_000.0]);
    assert!(matches!(sweep.x.scale, Scale::Log(..)));
}

/// The comparison of two groups of runs, the second `shift` µs slower.
fn compared(shift: i64) -> Comparisons {
    let mut request = ComparisonRequest::default();
    default_estimands(Metric::RoundTripDelay).into_iter().for_each(|it| request.include(it));
    request.shift(Metric::RoundTripDelay);
    let estimands = request.estimands();
    let group = |shift: i64| -> Vec<ObservedRun> {
        let delays = |index: i64| (0..2_000).map(move |probe| 100 + shift + index + (probe * 7) % 50);
        (0..6).map(|index| ObservedRun::of(&source(delays(index)), &estimands).expect("rows in memory")).collect()
    };
    let groups = RunGroups::named(vec![("old".into(), group(0)), ("new".into(), group(shift))]).expect("two groups");
    compare(groups, &request, &ComparisonOptions::at(0.95)).expect("two groups")
}

#[test]
fn a_comparison_has_its_forest_and_its_shift_function() {
    let comparisons = compared(20);
    let input = PlotInput { conditions: Vec::new(), comparisons: Some(&comparisons), recipe: None };
    let figures = figures(&input);
    figures.iter().for_each(expect_drawable);
    assert_eq!(names(&figures), ["forest", "shift"]);
    let forest = named(&figures, "forest");
    assert_eq!(forest.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["no change", "higher"]);
    let marks = numbers(&forest.series[1].marks);
    assert_eq!(marks.len(), comparisons.rows.len());
    let change = comparisons.rows[0].relative.expect("a change");
    assert_eq!(
        marks[0],
        [change.value, change.interval.low.expect("an end"), change.interval.high.expect("an end"), 0.0]
    );
    assert!(matches!(&forest.y.scale, Scale::Categories(names) if names[0].ends_with("old → new")), "{:?}", forest.y);
    let shift = named(&figures, "shift");
    assert_eq!(shift.series.len(), 4, "no change, band, line, points");
    assert_eq!((shift.series[0].name.as_str(), &shift.series[0].marks), ("no change", &vec![Mark::at([], [0.0])]));
    for figure in [forest, shift] {
        assert!(figure.caption.ends_with(" Compared values: geometric means of the runs."), "{}", figure.caption);
    }
    let line = numbers(&shift.series[2].marks);
    assert_eq!((line.len(), line[0][0]), (11, 0.9));
    assert!(line.iter().all(|point| (0.1..0.25).contains(&point[1])), "{line:?}");
}

#[test]
fn rows_of_a_forest_plot_name_their_metric_where_there_are_several() {
    let mut comparisons = compared(20);
    let mut other = comparisons.rows[0].clone();
    let Quantity::Of(Estimand::Statistic(_, statistic)) = other.quantity else { panic!("{other:?}") };
    other.quantity = Quantity::Of(Estimand::Statistic(Metric::ResponseTime, statistic));
    comparisons.rows.push(other);
    let figures = figures(&PlotInput { conditions: Vec::new(), comparisons: Some(&comparisons), recipe: None });
    let Scale::Categories(names) = &named(&figures, "forest").y.scale else { panic!("an axis of names") };
    assert!(names[0].starts_with("round_trip_delay ") && names[0].ends_with("old → new"), "{names:?}");
    assert!(names.last().is_some_and(|name| name.starts_with("response_time ")), "{names:?}");
}

#[test]
fn extreme_runs_are_drawn_on_axes_that_hold_them() {
    let cases: [(&str, Vec<i64>, &[&str]); 4] = [
        ("all lost", vec![0; 300], &["over-time"]),
        ("one probe", vec![42], &[]),
        ("all equal", vec![42; 300], &["tail", "percentiles", "histogram", "over-time"]),
        ("negative", vec![-40, 10, 30, 0], &["tail", "percentiles", "histogram", "over-time"]),
    ];
    for (case, delays, expected) in cases {
        let figures = plots(vec![condition(case, &[], vec![run(delays)])]);
        assert_eq!(names(&figures), expected, "{case}");
        let is_linear =
            figures.iter().all(|figure| figure.name != "tail" || matches!(figure.x.scale, Scale::Linear(..)));
        assert_eq!(is_linear, case != "all equal", "{case}");
    }
    let losses = plots(vec![condition("a", &[], vec![run([0, 0])])]);
    assert_eq!(losses[0].title, "Losses over time");
    let bars = numbers(&losses[0].series[0].marks);
    assert_eq!(bars, [[0.0, 4_167.0, 1.0], [995_913.0, 1_000_080.0, 1.0]].map(Vec::from));
    // Equal delays are one step from the smallest quantile to half a probe.
    let figures = plots(vec![condition("a", &[], vec![run([42; 50])])]);
    let line = numbers(&named(&figures, "percentiles").series[0].marks);
    assert_eq!(line, [[1.0, 42_000.0], [0.01, 42_000.0]].map(Vec::from));
    // No probe took longer.
    let tail = numbers(&named(&figures, "tail").series[0].marks);
    assert_eq!(tail, [[f64::INFINITY, 0.0], [42_000.0, 1.0]].map(Vec::from));
    assert!(plots(Vec::new()).is_empty() && plots(vec![condition("a", &[], Vec::new())]).is_empty());
    assert!(plots(vec![condition("a", &[], vec![run([])])]).is_empty());
    let both = plots(vec![condition("a", &[], vec![run([0, 0])]), condition("b", &[], vec![run([5, 5, 0])])]);
    // Each condition has one run.
    assert_eq!(names(&both), ["tail", "percentiles", "histogram"]);
    let caption = &named(&both, "tail").caption;
    assert!(caption.ends_with("Without a line, since a run has infinite delays only: a."), "{caption}");
    // The probes of the condition without a line count too.
    assert!(caption.starts_with("2 runs: 5 probes, 3 of them lost or late. "), "{caption}");
}

#[test]
fn infinite_figures_are_the_largest_of_their_condition() {
    let of = |size: &str, load: &str, runs: [i64; 5]| {
        let runs = runs.into_iter().map(|delay| run([delay; 4])).collect();
        condition(&format!("{size} {load}"), &[("size", size), ("load", load)], runs)
    };
    let conditions = vec![
        of("64", "none", [10, 20, 30, 40, 50]),
        of("128", "none", [10, 20, 0, 0, 0]),
        of("256", "none", [10, 20, 30, 0, 0]),
        of("64", "cpu=80%", [0; 5]),
    ];
    let figures = plots(conditions);
    let rows = named(&figures, "box-plots");
    let Scale::Categories(names) = &rows.y.scale else { panic!("{rows:?}") };
    assert_eq!(
        names[1..],
        ["128 none (3 of 5 runs infinite)", "256 none (2 of 5 runs infinite)", "64 cpu=80% (5 of 5 runs infinite)"]
    );
    let [boxes, points, infinite] = rows.series.as_slice() else { panic!("{rows:?}") };
    let lost = f64::INFINITY;
    assert_eq!(
        numbers(&boxes.marks),
        [
            [20_000.0, 30_000.0, 40_000.0, 10_000.0, 50_000.0, 0.0],
            [20_000.0, lost, lost, 10_000.0, lost, 1.0],
            [20_000.0, 30_000.0, lost, 10_000.0, lost, 2.0]
        ]
        .map(Vec::from)
    );
    assert_eq!((numbers(&points.marks).len(), numbers(&infinite.marks).len()), (10, 3));
    assert!(rows.caption.contains(" Of 10 of 20 runs the p50 is infinite"), "{}", rows.caption);
    let sweep = named(&figures, "sweep");
    let [band, line, points, lost_band, lost_line] = sweep.series.as_slice() else { panic!("{sweep:?}") };
    assert_eq!(numbers(&lost_band.marks), [[64.0, lost, lost]].map(Vec::from));
    assert_eq!(numbers(&lost_line.marks), [[64.0, lost]].map(Vec::from));
    assert_eq!(numbers(&band.marks)[1], [128.0, 10_000.0, lost]);
    expect_mean(&line.marks[0].y, 26_051.7);
    assert_eq!(numbers(&line.marks)[1..], [[128.0, lost], [256.0, lost]].map(Vec::from));
    assert_eq!(numbers(&points.marks).len(), 1);
    assert!(sweep.caption.contains("An infinite mean has no point"), "{}", sweep.caption);
    // Points that only repeat the line are not in the data again.
    assert_eq!(csv(sweep).lines().filter(|line| line.starts_with("load=none,64,")).count(), 2, "{}", csv(sweep));
}

#[test]
fn one_bad_run_ends_the_curve_of_its_condition_and_not_its_band() {
    let good = || run((1..=100).map(|delay| delay * 10));
    let figures = plots(vec![
        condition("a", &[], vec![good(), good(), run([0; 100])]),
        condition("b", &[], vec![good(), run([0; 100]), run([0; 100])]),
    ]);
    let percentiles = named(&figures, "percentiles");
    let [band, other] = percentiles.series.as_slice() else { panic!("{percentiles:?}") };
    assert!(numbers(&band.marks).iter().all(|range| range[2].is_infinite()), "{band:?}");
    assert!(other.shape == Shape::Band && other.marks.len() > 20, "{other:?}");
    assert!(percentiles.caption.ends_with("Without a line, since a run has infinite delays only: a; b."));
}

#[test]
fn only_numbers_of_one_kind_make_a_line() {
    let swept = |factor: &str, levels: [&str; 3]| {
        let of = |level: &str| condition(level, &[(factor, level)], vec![run([10, 20])]);
        let figures = plots(levels.map(of).into());
        figures.into_iter().find(|figure| figure.name == "sweep").map(|figure| figure.x.label)
    };
    for (factor, levels, label) in [
        ("size", ["64", "1kB", "8192"], Some("size")),
        ("interval", ["1 ms", "10ms", "1,500 µs"], Some("interval")),
        ("rate", ["10Mbit/s", "1Mbit/s", "2Mbit/s"], Some("rate")),
        ("load", ["none", "cpu=20%@peer", "cpu=80%@peer"], Some("load cpu@peer")),
        ("load", ["none", "mem=1GB/s", "mem=2GB/s"], Some("load mem")),
        ("load", ["none", "cpu=20%", "cpu=80%@peer"], None),
        ("load", ["none", "cpu=20%:cpus=0", "cpu=80%:cpus=1"], None),
        ("load", ["none", "net=20Mbit/s", "cpu=80%"], None),
        ("load", ["none", "heaters=1", "heaters=1 + cpu=80%"], None),
        ("interval", ["none", "1ms", "2ms"], None),
        ("rate", ["10Mbit/s", "10kpps", "max"], None),
        ("tag:build", ["1", "2", "3"], None),
        ("source-port", ["1000", "2000", "3000"], None),
    ] {
        assert_eq!(swept(factor, levels).as_deref(), label, "{factor} {levels:?}");
    }
}

#[test]
fn many_levels_and_many_runs_are_bounded_and_counted() {
    let one = run([10, 20, 30]);
    let of = |index: usize| condition("a", &[("size", &index.to_string())], vec![one.clone()]);
    let figures = plots((1..=10_000).map(of).collect());
    let sweep = named(&figures, "sweep");
    let [_, line, _] = sweep.series.as_slice() else { panic!("a line") };
    let line = numbers(&line.marks);
    assert_eq!((line.len(), line[0][0], line[239][0]), (240, 1.0, 10_000.0));
    assert!(sweep.caption.contains(" 9,760 condition"), "{}", sweep.caption);
    // 998 equal runs, one far below and one far above.
    let runs = [1, 900].into_iter().chain(std::iter::repeat_n(20, 998)).map(|delay| run([delay])).collect();
    let figures = plots(vec![condition("a", &[], runs)]);
    let rows = named(&figures, "box-plots");
    let points = numbers(&rows.series[1].marks);
    assert_eq!(points.len(), 202);
    assert!([1_000.0, 900_000.0].iter().all(|x| points.iter().any(|point| point[0] == *x)), "{points:?}");
}

/// A factor with its levels.
type Factor<'a> = (&'a str, &'a [&'a str]);

/// Conditions of these factors, each with two runs of delays of its number.
fn factorial(factors: &[Factor]) -> Vec<PlotCondition> {
    let all = factors.iter().fold(vec![Vec::new()], |all: Vec<Vec<(&str, &str)>>, (factor, levels)| {
        all.iter().flat_map(|one| levels.iter().map(move |level| [&one[..], &[(*factor, *level)]].concat())).collect()
    });
    let runs = |number: i64| vec![run([number, number + 1]), run([number, number + 2])];
    all.iter().zip(10..).map(|(levels, number)| condition(&format!("{levels:?}"), levels, runs(number))).collect()
}

#[test]
fn every_condition_of_several_factors_has_a_place_of_its_own() {
    let cases: [(&[Factor], usize, usize); 5] = [
        (&[("load", &["none", "cpu=20%", "cpu=80%"])], 0, 3),
        (&[("load", &["none", "cpu=20%", "cpu=50%", "cpu=80%"]), ("transport", &["tcp", "udp"])], 2, 4),
        (&[("size", &["1", "2", "3", "4", "5", "6", "7", "8", "9"])], 2, 9),
        (&[("a", &["1", "2", "3"]), ("b", &["1", "2", "3"]), ("c", &["1", "2", "3", "4"])], 9, 4),
        (&[("a", &["1", "2", "3", "4", "5", "6", "7"]), ("b", &["1", "2", "3", "4", "5", "6"])], 6, 7),
    ];
    for (factors, panels, most) in cases {
        let conditions = factorial(factors);
        let count = conditions.len();
        let tail = figures(&PlotInput { conditions, comparisons: None, recipe: None }).swap_remove(0);
        let mut places: Vec<_> =
            tail.series.iter().filter(|it| !it.name.is_empty()).map(|it| (it.panel, it.colour)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!((tail.panels.len(), places.len()), (panels, count), "{factors:?}: {:?}", tail.panels);
        let names: std::collections::BTreeSet<&str> = tail.series.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.len() - 1, most, "{names:?}");
        assert!(!tail.caption.contains("not shown"), "{}", tail.caption);
    }
}

#[test]
fn a_recipe_has_its_words_its_published_lines_and_its_prediction() {
    let sweep = |name: &str, factors: &[Factor]| {
        let recipe = crate::recipe::find(name);
        let all = figures(&PlotInput { conditions: factorial(factors), comparisons: None, recipe });
        named(&all, "sweep").clone()
    };
    let dds = sweep(
        "dds-pingpong",
        &[
            ("keyed", &["false", "true"]),
            ("reliability", &["best-effort", "reliable"]),
            ("size", &["32", "1024", "63000"]),
            ("transport", &["dds"]),
        ],
    );
    assert_eq!(dds.panels, ["unkeyed", "keyed"]);
    let published: Vec<_> = dds.series.iter().filter(|series| series.beside > 0).collect();
    assert_eq!((published.len(), published[0].name.as_str()), (8, "best effort, Xeon, 1 GbE"));
    // Halves in µs, doubled.
    assert_eq!(numbers(&published[0].marks)[0], [32.0, 50e3]);
    assert!(csv(&dds).contains("\nkeyed,\"reliable, Pi 4, 1 GbE\",63000,,,1730000\n"), "{}", csv(&dds));
    let wakeups = sweep("wakeup-governor", &[("interval", &["10ms", "100ms", "1s"]), ("via", &["select"])]);
    let predicted = wakeups.series.last().expect("series");
    assert_eq!(numbers(&predicted.marks), [[1e7, 5e4], [5e7, 5e4], [1e9, 1e6]].map(Vec::from));
}

/// Samples of the host each 100 ms, in which CPU 0 is busy for a quarter of the time.
fn host_samples() -> Vec<(Side, HostSample)> {
    let cpu = |seq: i64| CpuReadings { busy_ns: Some(seq * 25_000_000), ..CpuReadings::default() };
    let sample = |seq: i64| HostSample {
        seq: seq as u64,
        start_ns: seq * 100_000_000,
        end_ns: seq * 100_000_000,
        sampler_cpu: None,
        host: HostReadings::default(),
        cpus: vec![(0, cpu(seq))],
    };
    (0..4).map(|seq| (Side::Local, sample(seq))).collect()
}

#[test]
fn a_stream_and_its_host_share_a_time_axis() {
    let offered =
        |start_ms, packets| stream_interval(start_ms, IntervalCounts::Offered { packets, refused: 0, skipped: 0 });
    let mut source = InMemory::of_stream(1, vec![offered(0, 200), offered(100, 100), offered(200, 100)]);
    source.hosts = host_samples();
    let figures = plots_of(&source);
    assert_eq!(names(&figures), ["rates", "host-busy"]);
    let rates = named(&figures, "rates");
    assert_eq!(numbers(&rates.series[0].marks)[..2], [vec![0.0, 2e6], vec![1e8, 1e6]]);
    assert_eq!(rates.x.label, "time since the first measured interval");
    let busy = named(&figures, "host-busy");
    assert_eq!((busy.series[0].name.as_str(), &busy.x.scale), ("CPU 0", &rates.x.scale));
    assert!(numbers(&busy.series[0].marks).iter().all(|point| (point[1] - 0.25).abs() < 1e-12));
    assert!(busy.caption.ends_with("Shown are the busiest CPUs."), "{}", busy.caption);
}
