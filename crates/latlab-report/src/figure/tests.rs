use super::axis::{Axis, AxisUnit, Scale, Tick};
use super::svg::{css, inline, standalone};
use super::table::{csv, table};
use super::{Figure, Mark, Series, Shape};

fn axis(scale: Scale, unit: AxisUnit) -> Axis {
    Axis::new("round trip delay", scale, unit)
}

fn names(names: &[&str]) -> Axis {
    Axis::of_names("probes", names.iter().map(|name| (*name).to_owned()).collect())
}

fn figure(x: Axis, y: Axis, series: Vec<(Shape, Vec<Mark>)>) -> Figure {
    let series = series.into_iter().enumerate();
    Figure {
        name: "tail".into(),
        title: "Tail".into(),
        caption: "n 3".into(),
        panels: Vec::new(),
        x,
        y: Axis { label: "probes".into(), ..y },
        series: series
            .map(|(colour, (shape, marks))| Series::new(format!("series {colour}"), colour, shape, marks))
            .collect(),
    }
}

fn points(values: &[(f64, f64)]) -> Vec<Mark> {
    values.iter().map(|(x, y)| Mark::point(*x, *y)).collect()
}

fn times() -> Axis {
    axis(Scale::Log(1e3, 1e6), AxisUnit::Time)
}

fn tails() -> Axis {
    axis(Scale::Log(1.0, 1e-5), AxisUnit::Tail)
}

fn counts() -> Axis {
    axis(Scale::Log(0.8, 1e4), AxisUnit::Count)
}

fn drawn(figure: &Figure) -> String {
    inline(figure).into_string()
}

fn count(text: &str, class: &str) -> usize {
    text.matches(&format!("class=\"{class}")).count()
}

fn labelled(scale: Scale, unit: AxisUnit) -> Vec<Tick> {
    let mut ticks = axis(scale, unit).ticks(480.0, |label| label.len() as f64 * 7.0 + 8.0);
    ticks.retain(|tick| !tick.label.is_empty());
    ticks
}

#[test]
fn ticks_are_round_values_in_one_unit() {
    let cases = [
        (Scale::Linear(0.0, 10e9), AxisUnit::Time, "0 1 2 3 4 5 6 7 8 9 10"),
        (Scale::Linear(-0.1, 0.2), AxisUnit::Change, "−10 −5 0 +5 +10 +15 +20"),
        (Scale::Linear(0.0, 1.0), AxisUnit::Share, "0 10 20 30 40 50 60 70 80 90 100"),
        (Scale::Log(1e3, 1e6), AxisUnit::Time, "1 10 100 1,000"),
        (Scale::Log(1e3, 1e9), AxisUnit::Time, "0.001 0.01 0.1 1 10 100 1,000"),
        (Scale::Log(40e3, 2e6), AxisUnit::Time, "50 100 200 500 1,000 2,000"),
        (Scale::Log(1.0, 1e-5), AxisUnit::Tail, "p0 p50 p90 p99 p99.9 p99.99 p99.999"),
        (Scale::Log(44e3, 52e3), AxisUnit::Time, "44 45 46 47 48 49 50 51 52"),
        (Scale::Log(32.0, 9000.0), AxisUnit::Bytes, "50 100 200 500 1,000 2,000 5,000"),
        (Scale::Linear(1.2e9, 3.6e9), AxisUnit::Frequency, "1.2 1.4 1.6 1.8 2.0 2.2 2.4 2.6 2.8 3.0 3.2 3.4 3.6"),
        (Scale::Log(0.5, 1.5), AxisUnit::Count, "1"),
    ];
    for (scale, unit, expected) in cases {
        let labels: Vec<String> = labelled(scale.clone(), unit).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels.join(" "), expected, "{scale:?}");
    }
}

#[test]
fn every_axis_has_distinct_labels_that_do_not_overlap() {
    let limits = [(-1e9, 1e9), (1e-9, 1.0), (1e-3, 1e15), (0.0, 1e5), (999.0, 1001.0), (7.0, 8.0)];
    for (from, to) in limits {
        for unit in [AxisUnit::Time, AxisUnit::Share, AxisUnit::Change, AxisUnit::Bytes] {
            let logarithmic = (from > 0.0).then_some(Scale::Log(from, to));
            for scale in [Scale::Linear(from, to)].into_iter().chain(logarithmic) {
                let ticks = labelled(scale.clone(), unit);
                assert!(!ticks.is_empty(), "{scale:?} {unit:?}");
                for pair in ticks.windows(2) {
                    let widths = (pair[0].label.len() + pair[1].label.len()) as f64 * 3.5;
                    let distance = (pair[1].position - pair[0].position).abs() * 480.0;
                    assert!(distance > widths && pair[0].label != pair[1].label, "{scale:?} {unit:?}: {pair:?}");
                }
            }
        }
    }
}

#[test]
fn every_value_has_a_position() {
    let [tails, times, rows] = [tails(), times(), names(&["first", "last"])];
    assert_eq!([1.0, 1e-5, 0.0, 2.0].map(|tail| tails.scale.position(tail)), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(
        [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0].map(|at| times.scale.position(at)),
        [1.0, 0.0, 0.0, 0.0]
    );
    assert_eq!([0.0, 1.0].map(|index| rows.scale.position(index)), [0.25, 0.75]);
}

#[test]
fn every_shape_is_drawn() {
    let tail = points(&[(2e3, 1.0), (3e3, 0.5), (9e3, 0.001)]);
    let band = vec![Mark::at([2e3], [0.9, 1.0]), Mark::at([4e3], [0.3, 0.5])];
    let tail = figure(
        times(),
        tails(),
        vec![
            (Shape::Band, band),
            (Shape::Steps, tail.clone()),
            (Shape::Line, tail.clone()),
            (Shape::Points, tail),
            (Shape::Rule, vec![Mark::at([5e3], [])]),
        ],
    );
    let text = drawn(&tail);
    // The legend has a sample of each.
    let classes = ["band\"", "line\"", "dot\"", "rule\"", "entry s"].map(|class| count(&text, class));
    assert_eq!(classes, [1 + 1, 2 + 2, 3 + 1, 1 + 1, 5], "{text}");
    assert!(text.contains(">round trip delay, µs<") && text.contains(">p99<"), "{text}");
    assert!(standalone(&tail).contains("<rect") && standalone(&tail).contains(".s7 { color: #"));

    let bars = vec![Mark::at([1e3, 2e3], [5.0]), Mark::at([3e3, 4e3], [121_730.0])];
    let text = drawn(&figure(times(), counts(), vec![(Shape::Bars, bars)]));
    assert_eq!((count(&text, "bar\""), count(&text, "legend")), (2, 0));
    assert!(text.contains("\"from 3.00 µs to 4.00 µs\",\"121,730\""), "{text}");

    let boxes = vec![Mark::at([2e3, 3e3, 4e3, 1e3, 9e3], [0.0])];
    let intervals = vec![Mark::at([2e3, f64::NEG_INFINITY, 3e3], [1.0]), Mark::at([2e3], [1.0])];
    let rows = figure(times(), names(&["a", "b"]), vec![(Shape::Boxes, boxes), (Shape::Intervals, intervals)]);
    let text = drawn(&rows);
    let classes = ["box\"", "quartiles\"", "median\"", "interval\"", "estimate\"", "whisker\""];
    assert_eq!(classes.map(|class| count(&text, class)), [1, 2, 1, 2, 2, 3], "{text}");
    assert!(text.contains("2.00 µs from −∞ to 3.00 µs"), "{text}");

    let cell = |x: f64, darkness| Mark { darkness, text: "3 probes".into(), ..Mark::at([x, 2.0 * x], [1.0, 2.0]) };
    let text = drawn(&figure(times(), counts(), vec![(Shape::Cells, vec![cell(1e3, 0.0), cell(2e3, 1.0)])]));
    assert_eq!(["cell d0\"", "cell d7\""].map(|class| count(&text, class)), [1, 1], "{text}");
}

#[test]
fn what_is_infinite_is_at_the_end_of_its_axis_without_a_number() {
    let lost = f64::INFINITY;
    let text = |mark| Mark { text: "3 probes".into(), ..mark };
    let shapes = vec![
        (Shape::Points, vec![text(Mark::point(2e3, lost)), text(Mark::point(lost, 2e3))]),
        (Shape::Bars, vec![Mark::at([lost; 2], [5e3])]),
        (Shape::Line, points(&[(2e3, 2e3), (3e3, lost), (4e3, 2e3)])),
        (Shape::Steps, points(&[(lost, 2e3), (3e3, 4e3)])),
        (Shape::Band, vec![Mark::at([2e3], [f64::NEG_INFINITY, lost]), Mark::at([lost], [2e3, 3e3])]),
    ];
    let figure = figure(times(), axis(Scale::Log(1e3, 1e6), AxisUnit::Time), shapes);
    let text = drawn(&figure);
    assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    assert_eq!(count(&text, "dot\""), 1 + 2, "the legend and two marks: {text}");
    assert_eq!(path_of(&text, "line").matches('M').count(), 2, "a gap: {text}");
    assert!(csv(&figure).contains("\nseries 1,,5000,,,\n"), "{}", csv(&figure));
    let boxes = vec![Mark::at([2e3, lost, lost, 1e3, lost], [0.0])];
    let text = drawn(&self::figure(times(), names(&["a"]), vec![(Shape::Boxes, boxes)]));
    assert_eq!(["quartiles\"", "median\""].map(|class| count(&text, class)), [1, 0], "{text}");
}

/// The commands of the first path of `class`.
fn path_of<'a>(svg: &'a str, class: &str) -> &'a str {
    let path = svg.split(&format!("class=\"{class}\" d=\"")).nth(1);
    path.and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

#[test]
fn a_band_of_steps_has_no_slopes() {
    let ranges: Vec<Mark> =
        [(4e3, 0.01, 0.02), (3e3, 0.1, 0.2), (2e3, 0.5, 0.6)].map(|(x, low, high)| Mark::at([x], [low, high])).into();
    let of = |shape: Shape| drawn(&figure(times(), tails(), vec![(shape, ranges.clone())]));
    let [steps, slopes] = [Shape::StepBand, Shape::Band].map(of);
    let [steps, slopes] = [&steps, &slopes].map(|svg| path_of(svg, "band"));
    assert!(!steps.contains('L') && slopes.matches('L').count() == 4, "{steps} {slopes}");
}

#[test]
fn a_band_has_a_gap_where_its_whole_range_is_infinite() {
    let lost = f64::INFINITY;
    let of = |values: &[(f64, f64, f64)]| {
        let ranges = values.iter().map(|(x, low, high)| Mark::at([*x], [*low, *high])).collect();
        drawn(&figure(times(), axis(Scale::Log(1e3, 1e6), AxisUnit::Time), vec![(Shape::Band, ranges)]))
    };
    let svg = of(&[(1e3, 2e3, 3e3), (1e4, 2e3, lost), (2e4, lost, lost), (1e5, 2e3, 3e3)]);
    let band = path_of(&svg, "band");
    assert_eq!(["M", "z"].map(|command| band.matches(command).count()), [2, 2], "{band}");
    // The range at the end has no neighbour: it is as wide as a point.
    let lone = band.rsplit('M').next().unwrap_or_default();
    let begin = lone.split(' ').next().and_then(|x| x.parse::<f64>().ok()).expect("a number");
    let end = lone.split(['H', 'V']).nth(1).and_then(|x| x.parse::<f64>().ok()).expect("a number");
    assert!((end - begin - 6.0).abs() < 0.2, "{lone}");
    assert_eq!(count(&of(&[(1e3, lost, lost)]), "band"), 0);
}

#[test]
fn points_that_repeat_values_of_their_line_are_listed_once() {
    let line = points(&[(4e3, 0.25), (3e3, 0.5), (2e3, 1.0)]);
    let band = vec![Mark::at([2e3], [0.5, f64::INFINITY]), Mark::at([3e3], [f64::INFINITY; 2])];
    let series = vec![(Shape::Steps, line.clone()), (Shape::Points, line[..2].to_vec()), (Shape::Band, band)];
    let mut figure = figure(times(), tails(), series);
    let counts = |figure: &Figure| [table(figure).rows.len(), csv(figure).lines().count()];
    assert_eq!(counts(&figure), [6, 1 + 6], "series of their own, and a band without an end: {}", csv(&figure));
    (figure.series[1].name, figure.series[1].colour) = (String::new(), 0);
    assert_eq!(counts(&figure), [4, 1 + 4], "{}", csv(&figure));
    // The line of a single run has no name.
    figure.series[0].name = String::new();
    assert_eq!(counts(&figure), [4, 1 + 4], "{}", csv(&figure));
}

#[test]
fn hostile_names_are_escaped() {
    let hostile = "</script><script>alert(1)</script>\"'&\u{1}\n=1";
    let mut figure = figure(times(), names(&[hostile]), vec![(Shape::Points, points(&[(2e3, 0.0)])); 2]);
    figure.title = hostile.into();
    figure.caption = hostile.into();
    figure.x.label = hostile.into();
    figure.series[0].name = hostile.into();
    for text in [drawn(&figure), standalone(&figure)] {
        assert!(!text.contains("<script>") && !text.contains('\u{1}'), "{text}");
        assert!(text.matches("</script>").count() <= 1, "{text}");
        assert!(text.contains("&lt;/script&gt;"), "{text}");
    }
    let line = csv(&figure).lines().nth(1).unwrap_or_default().to_owned();
    assert!(line.starts_with("\"</script><script>alert(1)</script>\"\"'&"), "{line}");
}

#[test]
fn a_table_has_a_column_for_each_value_and_csv_names_units() {
    let boxes = vec![Mark::at([2e3, 3e3, 4e3, 1e3, 9e3], [0.0])];
    let boxes = figure(times(), names(&["a, b"]), vec![(Shape::Boxes, boxes), (Shape::Points, points(&[(5e3, 0.1)]))]);
    let shown = table(&boxes);
    assert_eq!(shown.columns[1..3], ["round trip delay first quartile", "round trip delay median"]);
    assert_eq!(shown.rows[0], ["series 0", "2.00 µs", "3.00 µs", "4.00 µs", "1.00 µs", "9.00 µs", "–", "a, b"]);
    let expected = "series,round_trip_delay_first_quartile_ns,round_trip_delay_median_ns,\
        round_trip_delay_third_quartile_ns,round_trip_delay_lower_whisker_ns,round_trip_delay_upper_whisker_ns,\
        round_trip_delay_ns,probes\nseries 0,2000,3000,4000,1000,9000,,\"a, b\"\nseries 1,,,,,,5000,\"a, b\"\n";
    assert_eq!(csv(&boxes), expected);
    let tail = csv(&figure(times(), tails(), vec![(Shape::Steps, points(&[(48_700.0, 0.001)]))]));
    assert_eq!(tail, "series,round_trip_delay_ns,quantile\nseries 0,48700,0.999\n");
}

#[test]
fn values_on_a_narrow_axis_are_distinguished() {
    let narrow = axis(Scale::Linear(1e6, 1e6 + 200.0), AxisUnit::Time);
    assert_eq!([1e6, 1e6 + 1.0].map(|value| narrow.words(value)), ["1.000000 ms", "1.000001 ms"]);
}

#[test]
fn a_long_name_beside_an_axis_has_lines_and_is_whole_in_its_title() {
    let long = "p99  cpu=20%@peer, 1,472 B → cpu=80%@peer, 1,472 B";
    let longer = "p99  1ms, size 64, clock_nanosleep → 10ms, size 64, select";
    let endless = "x".repeat(90);
    let named = names(&["p50", long, longer, &endless]);
    let svg = drawn(&figure(times(), named, vec![(Shape::Points, points(&[(2e3, 0.0)]))]));
    let of_longer = [">p99  1ms, size 64,<", ">clock_nanosleep → 10ms, size<", ">64, select<"];
    let others = [">p99  cpu=20%@peer, 1,472 B →<", ">cpu=80%@peer, 1,472 B<", ">p50<", "xxx…<"];
    for part in of_longer.iter().chain(&others) {
        assert!(svg.contains(part), "`{part}` is not in {svg}");
    }
    assert!(svg.contains(&format!("<title>{endless}</title>")), "{svg}");
}

#[test]
fn only_a_page_has_variables_and_each_has_a_light_colour() {
    let figure = figure(times(), tails(), vec![(Shape::Points, points(&[(2e3, 0.5)]))]);
    assert!(!standalone(&figure).contains("var("));
    for variable in css().split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(css().contains(&format!("{variable}: #")), "{variable}");
    }
}

#[test]
fn panels_have_their_own_axes_and_one_legend_where_colours_agree() {
    let tail = || points(&[(2e3, 1.0), (9e3, 0.001)]);
    let mut one =
        figure(times(), tails(), vec![(Shape::Steps, tail()), (Shape::Steps, tail()), (Shape::Steps, tail())]);
    one.panels = vec!["UDP".into(), "AF_XDP".into()];
    one.series.push(Series { panel: 1, beside: 1, ..one.series[0].clone() });
    for text in [drawn(&one), standalone(&one)] {
        assert_eq!(
            ["area\"", "axis x\"", "panel\"", "legend\"", "entry s"].map(|class| count(&text, class)),
            [2, 2, 2, 1, 4]
        );
        assert!(text.contains("class=\"series s0 beside b1\""), "{text}");
    }
    assert!(csv(&one).starts_with("panel,series,") && csv(&one).contains("\nAF_XDP,series 0,2000,"), "{}", csv(&one));
    // A colour with another name in another panel.
    one.series[3] = Series { panel: 1, name: "else".into(), ..one.series[0].clone() };
    one.series.push(Series { panel: 1, ..one.series[1].clone() });
    assert_eq!(count(&drawn(&one), "legend\""), 2);
}
