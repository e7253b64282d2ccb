use super::png::png;
use super::scale::{AxisScale, AxisSide, Tick, text_width};
use super::svg::{inline, standalone};
use super::table::{TABLE_ROWS, csv, table};
use super::{
    Axis, AxisUnit, Bar, BoxMark, Cell, Figure, InfiniteMark, IntervalMark, Marks, Point, Range, Scale, Series,
};

fn axis(scale: Scale, unit: AxisUnit) -> Axis {
    Axis { label: "round trip delay".into(), scale, unit }
}

fn names(names: &[&str]) -> Scale {
    Scale::Categories(names.iter().map(|name| (*name).to_owned()).collect())
}

fn figure(x: Axis, y: Axis, marks: Vec<Marks>) -> Figure {
    let series = |(colour, marks)| Series { name: format!("series {colour}"), colour, marks };
    Figure {
        name: "tail",
        title: "Tail".into(),
        caption: "n 3".into(),
        x,
        y: Axis { label: "probes".into(), ..y },
        series: marks.into_iter().enumerate().map(series).collect(),
    }
}

fn points(values: &[(f64, f64)]) -> Vec<Point> {
    values.iter().map(|(x, y)| Point { x: *x, y: *y }).collect()
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

fn count(text: &str, class: &str) -> usize {
    text.matches(&format!("class=\"{class}")).count()
}

fn ticks(scale: Scale, unit: AxisUnit) -> Vec<Tick> {
    AxisScale::new(&axis(scale, unit), AxisSide::Bottom).ticks(480.0)
}

fn labels(scale: Scale, unit: AxisUnit) -> String {
    let labelled = ticks(scale, unit).into_iter().filter(|tick| !tick.is_minor);
    labelled.map(|tick| tick.label).collect::<Vec<_>>().join(" ")
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
        (Scale::Linear(0.0, 250e3), AxisUnit::PacketRate, "0 20 40 60 80 100 120 140 160 180 200 220 240"),
        (names(&["a", "b"]), AxisUnit::Plain, "a b"),
    ];
    for (scale, unit, expected) in cases {
        assert_eq!(labels(scale.clone(), unit), expected, "{scale:?}");
    }
}

#[test]
fn every_axis_has_distinct_labels_that_do_not_overlap() {
    let limits = [
        (1.0, 1.0),
        (0.0, 0.0),
        (-5.0, -5.0),
        (-1e9, 1e9),
        (1e-9, 1.0),
        (1.0, 1e-9),
        (1e-300, 1e300),
        (1e18, 1e18 + 1e4),
        (f64::NAN, 1.0),
        (0.0, f64::INFINITY),
        (0.0, 1e5),
        (999.0, 1001.0),
        (-3.0, 0.0),
        (1e9, 1e9 + 1.0),
        (7.0, 8.0),
    ];
    for (from, to) in limits {
        for unit in [AxisUnit::Time, AxisUnit::Tail, AxisUnit::Share, AxisUnit::Change, AxisUnit::Bytes] {
            for scale in [Scale::Linear(from, to), Scale::Log(from, to)] {
                let mut ticks = ticks(scale.clone(), unit);
                ticks.retain(|tick| !tick.is_minor);
                ticks.sort_by(|a, b| a.position.total_cmp(&b.position));
                assert!(!ticks.is_empty(), "{scale:?} {unit:?}");
                for tick in &ticks {
                    assert!(!tick.label.contains("NaN") && !tick.label.contains("inf"), "{scale:?}: {tick:?}");
                    assert!((-1e-6..=1.000_001).contains(&tick.position), "{scale:?}: {tick:?}");
                }
                for pair in ticks.windows(2) {
                    let widths = text_width(&pair[0].label, 11.0) / 2.0 + text_width(&pair[1].label, 11.0) / 2.0;
                    assert!((pair[1].position - pair[0].position) * 480.0 > widths, "{scale:?} {unit:?}: {pair:?}");
                }
            }
        }
    }
}

#[test]
fn the_extreme_end_of_a_tail_is_at_the_end_of_the_axis() {
    let tails = tails();
    let scale = AxisScale::new(&tails, AxisSide::Left);
    assert_eq!([1.0, 1e-5].map(|tail| scale.position(tail)), [Some(0.0), Some(1.0)]);
    assert_eq!([scale.edge(0.0), scale.edge(2.0)], [1.0, 0.0]);
    assert_eq!(scale.position(0.0), None);
    let rows = axis(names(&["first", "last"]), AxisUnit::Plain);
    let scale = AxisScale::new(&rows, AxisSide::Left);
    assert_eq!([scale.position(0.0), scale.position(1.0)], [Some(0.75), Some(0.25)]);
}

#[test]
fn ten_thousand_names_have_a_few_labels() {
    let many = Scale::Categories((0..10_000).map(|index| format!("condition {index} with a long name")).collect());
    let many = axis(many, AxisUnit::Plain);
    let intervals = |row| IntervalMark { row: f64::from(row), estimate: Some(2e3), low: None, high: Some(3e3) };
    let text =
        inline(&figure(times(), many, vec![Marks::Intervals((0..10_000).map(intervals).collect())])).into_string();
    assert_eq!(count(&text, "interval"), 10_000);
    assert!(count(&text, "tick") < 160, "{}", count(&text, "tick"));
    assert!(text.len() < 4_000_000, "{}", text.len());
}

#[test]
fn every_kind_of_mark_is_drawn() {
    let line = || points(&[(2e3, 0.5), (3e3, 0.1), (4e3, 0.01)]);
    let tail = inline(&figure(
        times(),
        tails(),
        vec![
            Marks::Steps(line()),
            Marks::Line(line()),
            Marks::Points(line()),
            Marks::Band(vec![Range { x: 2e3, low: 0.5, high: 0.1 }, Range { x: 3e3, low: 0.2, high: 0.0 }]),
            Marks::Rule(5e3),
            Marks::Level(0.1),
        ],
    ))
    .into_string();
    assert_eq!(["dot\"", "rule\""].map(|class| count(&tail, class)), [3 + 1, 2 + 2], "{tail}");
    assert!(tail.contains("\"kind\":\"level\",\"marks\":[[0.1]]"), "{tail}");
    assert_eq!(["line\"", "band\""].map(|class| count(&tail, class)), [2 + 2, 1 + 1], "with the legend: {tail}");
    assert!(tail.contains(">series 2: round trip delay 2.00 µs, probes p50<"), "{tail}");

    let bars = vec![Bar { from: 2e3, to: 3e3, y: 1.0 }, Bar { from: 3e3, to: 4e3, y: 121_730.0 }];
    let histogram = inline(&figure(times(), counts(), vec![Marks::Bars(bars)])).into_string();
    assert_eq!((count(&histogram, "bar\""), count(&histogram, "legend")), (2, 0));
    assert!(histogram.contains(">series 0: round trip delay from 3.00 µs to 4.00 µs, probes 121,730<"), "{histogram}");

    let boxes = vec![BoxMark { row: 0.0, quartiles: [2e3, 3e3, 4e3], whiskers: [1e3, 9e3] }];
    let intervals = vec![IntervalMark { row: 1.0, estimate: Some(2e3), low: None, high: Some(3e3) }];
    let rows = axis(names(&["a", "b"]), AxisUnit::Plain);
    let rows = inline(&figure(times(), rows, vec![Marks::Boxes(boxes), Marks::Intervals(intervals)])).into_string();
    let classes = ["box\"", "quartiles\"", "median\"", "interval\"", "estimate\""];
    assert_eq!(classes.map(|class| count(&rows, class)), [1, 2, 1, 1, 1], "{rows}");
    assert!(rows.contains("\"marks\":[[1,2000,null,3000]]"), "{rows}");

    let cell = |x, darkness| Cell { x, width: 1.0, y: 0.0, y_to: 1.0, darkness, text: "3 probes".into() };
    let (columns, rows) = (axis(names(&["a", "b"]), AxisUnit::Plain), axis(names(&["c"]), AxisUnit::Plain));
    let map = inline(&figure(columns, rows, vec![Marks::Cells(vec![cell(0.0, 0.0), cell(1.0, 1.0)])])).into_string();
    assert_eq!(["cell d0\"", "cell d7\"", "value"].map(|class| count(&map, class)), [1, 1, 2], "{map}");
    assert!(
        map.contains("\"texts\":[\"3 probes\"],\"marks\":[0,0]") && map.contains(">series 0: a, c, 3 probes<"),
        "{map}"
    );
}

#[test]
fn marks_without_a_place_are_neither_drawn_nor_listed() {
    let hostile = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0];
    let hostile: Vec<(f64, f64)> = hostile.iter().flat_map(|value| [(*value, 0.5), (2e3, *value)]).collect();
    let marks = || {
        let line = points(&[hostile.as_slice(), &[(2e3, 0.1)]].concat());
        let range = |(x, low): &(f64, f64)| Range { x: *x, low: *low, high: *low };
        let bar = |(from, y): &(f64, f64)| Bar { from: *from, to: *from, y: *y };
        let interval =
            |(x, _): &(f64, f64)| IntervalMark { row: *x, estimate: Some(*x), low: Some(*x), high: Some(*x) };
        let plot = |(x, _): &(f64, f64)| BoxMark { row: *x, quartiles: [*x; 3], whiskers: [*x; 2] };
        let cell = |(x, y): &(f64, f64)| Cell { x: *x, width: *x, y: *y, y_to: *y, darkness: *y, text: String::new() };
        vec![
            Marks::Points(line.clone()),
            Marks::Steps(line.clone()),
            Marks::Line(line),
            Marks::Rule(f64::NAN),
            Marks::Level(0.0),
            Marks::Band(hostile.iter().map(range).collect()),
            Marks::StepBand(hostile.iter().map(range).collect()),
            Marks::Bars(hostile.iter().map(bar).collect()),
            Marks::Boxes(hostile.iter().map(plot).collect()),
            Marks::Intervals(hostile.iter().map(interval).collect()),
            Marks::Cells(hostile.iter().map(cell).collect()),
        ]
    };
    for y in [tails(), axis(Scale::Linear(0.0, 1.0), AxisUnit::Share), axis(names(&[]), AxisUnit::Plain)] {
        let figure = figure(times(), y, marks());
        assert!(png(&figure).is_some());
        for text in [inline(&figure).into_string(), standalone(&figure), csv(&figure)] {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
    let text = inline(&figure(times(), tails(), marks())).into_string();
    assert!(text.contains("\"kind\":\"points\",\"marks\":[[2000,0.1]]"), "{text}");
    assert_eq!(count(&text, "dot\""), 1 + 3, "the legend has the rule and the level too: {text}");
}

#[test]
fn what_is_infinite_is_drawn_at_the_end_of_its_axis_without_a_number() {
    let lost = f64::INFINITY;
    let mark = |x, y| InfiniteMark { x, y, text: "3 probes".into() };
    let times = times();
    let y = axis(Scale::Log(1e3, 1e6), AxisUnit::Time);
    let lines = vec![
        Marks::Infinite(vec![mark(2e3, lost), mark(lost, 2e3), mark(2e3, 2e3)]),
        Marks::Bars(vec![Bar { from: lost, to: lost, y: 5e3 }]),
        Marks::Line(points(&[(2e3, 2e3), (3e3, lost), (4e3, 2e3)])),
        Marks::Steps(points(&[(lost, 2e3), (3e3, 4e3)])),
        Marks::Band(vec![Range { x: 2e3, low: f64::NEG_INFINITY, high: lost }, Range { x: lost, low: 2e3, high: 3e3 }]),
    ];
    let figure = figure(times, y, lines);
    let text = inline(&figure).into_string();
    for json in [
        r#""kind":"infinite","marks":[[2000,null,"3 probes"],[null,2000,"3 probes"]]"#,
        r#""kind":"bars","marks":[[null,null,5000]]"#,
        r#""kind":"line","marks":[[2000,2000],[3000,null],[4000,2000]]"#,
        r#""kind":"steps","marks":[[null,2000],[3000,4000]]"#,
        r#""kind":"band","marks":[[2000,null,null],[null,2000,3000]]"#,
    ] {
        assert!(text.contains(json), "{json}: {text}");
    }
    assert_eq!(count(&text, "dot\""), 1 + 2, "the legend and two marks: {text}");
    let line = text.split("class=\"line\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    assert_eq!(line.matches('M').count(), 2, "a gap: {line}");
    assert!(csv(&figure).contains("\nseries 1,,5000,"), "{}", csv(&figure));
    let boxes = vec![BoxMark { row: 0.0, quartiles: [2e3, lost, lost], whiskers: [1e3, lost] }];
    let text = inline(&self::figure(self::times(), axis(names(&["a"]), AxisUnit::Plain), vec![Marks::Boxes(boxes)]));
    let text = text.into_string();
    assert_eq!(["quartiles\"", "median\""].map(|class| count(&text, class)), [1, 0], "{text}");
    assert!(text.contains("\"marks\":[[0,2000,null,null,1000,null]]"), "{text}");
}

/// The commands of the first path of `class`.
fn path_of<'a>(svg: &'a str, class: &str) -> &'a str {
    let path = svg.split(&format!("class=\"{class}\" d=\"")).nth(1);
    path.and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

#[test]
fn a_band_of_steps_has_no_slopes() {
    let ranges = [(4e3, 0.01, 0.02), (3e3, 0.1, 0.2), (2e3, 0.5, 0.6)];
    let ranges = ranges.map(|(x, low, high)| Range { x, low, high }).to_vec();
    let drawn = |marks: Marks| inline(&figure(times(), tails(), vec![marks])).into_string();
    let [steps, slopes] = [Marks::StepBand(ranges.clone()), Marks::Band(ranges)].map(drawn);
    let [steps, slopes] = [&steps, &slopes].map(|svg| path_of(svg, "band"));
    assert!(!steps.contains('L') && slopes.matches('L').count() == 4, "{steps} {slopes}");
}

#[test]
fn a_band_has_a_gap_where_its_whole_range_is_infinite() {
    let lost = f64::INFINITY;
    let of = |values: &[(f64, f64, f64)]| {
        let ranges = values.iter().map(|(x, low, high)| Range { x: *x, low: *low, high: *high }).collect();
        figure(times(), axis(Scale::Log(1e3, 1e6), AxisUnit::Time), vec![Marks::Band(ranges)])
    };
    let gap = of(&[(1e3, 2e3, 3e3), (1e4, 2e3, lost), (2e4, lost, lost), (1e5, 2e3, 3e3)]);
    let svg = inline(&gap).into_string();
    let band = path_of(&svg, "band");
    assert_eq!(["M", "z"].map(|command| band.matches(command).count()), [2, 2], "{band}");
    // The range at the end has no neighbour: it is as wide as a point.
    let lone = band.rsplit('M').next().unwrap_or_default();
    let begin = lone.split(' ').next().and_then(|x| x.parse::<f64>().ok()).expect("a number");
    let end = lone.split(['H', 'V']).nth(1).and_then(|x| x.parse::<f64>().ok()).expect("a number");
    assert!((end - begin - 6.0).abs() < 0.2, "{lone}");
    assert!(svg.contains("[20000,null,null],[100000,2000,3000]") && png(&gap).is_some(), "{svg}");
    let svg = inline(&of(&[(1e3, lost, lost)])).into_string();
    assert_eq!(count(&svg, "band"), 0, "{svg}");
}

#[test]
fn many_bands_are_faint() {
    let band = Marks::Band(vec![Range { x: 2e3, low: 0.5, high: 0.1 }, Range { x: 3e3, low: 0.2, high: 0.1 }]);
    let classes = |bands: usize| {
        let svg = standalone(&figure(times(), tails(), vec![band.clone(); bands]));
        ["band\" d", "band faint\" d"].map(|class| count(&svg, class))
    };
    // The legend has a sample of each.
    assert_eq!([classes(4), classes(5)], [[4 + 4, 0], [5, 5]]);
}

#[test]
fn points_that_repeat_values_of_their_line_are_listed_once() {
    let line = points(&[(4e3, 0.25), (3e3, 0.5), (2e3, 1.0)]);
    let mut figure = figure(times(), tails(), vec![Marks::Steps(line.clone()), Marks::Points(line[..2].to_vec())]);
    let counts = |figure: &Figure| [table(figure).rows.len(), csv(figure).lines().count()];
    assert_eq!(counts(&figure), [5, 1 + 5], "series of their own: {}", csv(&figure));
    (figure.series[1].name, figure.series[1].colour) = (String::new(), 0);
    assert_eq!(counts(&figure), [3, 1 + 3], "{}", csv(&figure));
    // The line of a single run has no name.
    figure.series[0].name = String::new();
    assert_eq!(counts(&figure), [3, 1 + 3], "{}", csv(&figure));
    // A range that is infinite as a whole says no more than the infinite point of the line.
    let lost = f64::INFINITY;
    figure.y = axis(Scale::Log(1e3, 1e6), AxisUnit::Time);
    figure.series[0].marks = Marks::Line(points(&[(2e3, 2e3), (3e3, lost)]));
    figure.series[1].marks =
        Marks::Band(vec![Range { x: 2e3, low: 2e3, high: lost }, Range { x: 3e3, low: lost, high: lost }]);
    assert_eq!(counts(&figure), [3, 1 + 3], "{}", csv(&figure));
    // Another line of the same colour is not a repetition.
    figure.series[1].marks = figure.series[0].marks.clone();
    assert_eq!(counts(&figure), [4, 1 + 4], "{}", csv(&figure));
}

#[test]
fn hostile_names_are_escaped() {
    let hostile = "</script><script>alert(1)</script>\"'&\u{1}\n=1";
    let mut figure =
        figure(times(), axis(names(&[hostile]), AxisUnit::Plain), vec![Marks::Points(points(&[(2e3, 0.0)])); 2]);
    figure.title = hostile.into();
    figure.caption = hostile.into();
    figure.x.label = hostile.into();
    figure.series[0].name = hostile.into();
    for text in [inline(&figure).into_string(), standalone(&figure)] {
        assert!(!text.contains("<script>") && !text.contains('\u{1}'), "{text}");
        assert!(text.matches("</script>").count() <= 1, "{text}");
        assert!(text.contains("&lt;/script&gt;"), "{text}");
    }
    let line = csv(&figure).lines().nth(1).unwrap_or_default().to_owned();
    assert!(line.starts_with("\"</script><script>alert(1)</script>\"\"'&"), "{line}");
}

#[test]
fn bands_and_points_belong_to_the_entry_of_their_colour() {
    let points = Marks::Points(points(&[(2e3, 0.5)]));
    let mut figure = figure(times(), tails(), vec![points; 6]);
    // The first has neither a name nor the colour of one that has; two conditions with a band, a line and a point.
    for (series, (name, colour)) in
        figure.series.iter_mut().zip([("", 8), ("", 0), ("a", 0), ("", 1), ("b", 1), ("", 1)])
    {
        (series.name, series.colour) = (name.into(), colour);
    }
    let text = inline(&figure).into_string();
    let owners: Vec<&str> = text.split("data-owner=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(owners, ["0", "2", "2", "4", "4", "4"], "{text}");
}

#[test]
fn a_density_of_many_cells_is_small_and_has_no_texts_of_its_own() {
    let cell = |index: u32| {
        let (x, y) = (f64::from(index % 240) * 1e7, f64::from(index / 240));
        Cell { x, width: 1e7, y, y_to: y + 1.0, darkness: 0.3, text: format!("{} probes", index % 9) }
    };
    let (x, y) = (axis(Scale::Linear(0.0, 2.4e9), AxisUnit::Time), axis(Scale::Linear(0.0, 96.0), AxisUnit::Plain));
    let figure = figure(x, y, vec![Marks::Cells((0..240 * 96).map(cell).collect())]);
    let text = inline(&figure).into_string();
    assert_eq!(count(&text, "cell"), 240 * 96);
    assert_eq!(text.matches("<title").count(), 1);
    assert!(text.len() < 1_300_000, "{}", text.len());
    let table = table(&figure);
    assert_eq!((table.rows.len(), table.omitted), (TABLE_ROWS, 240 * 96 - TABLE_ROWS));
    assert_eq!(csv(&figure).lines().count(), 1 + 240 * 96);
}

#[test]
fn a_table_has_a_column_for_each_value_and_csv_names_units() {
    let boxes = vec![BoxMark { row: 0.0, quartiles: [2e3, 3e3, 4e3], whiskers: [1e3, 9e3] }];
    let rows = axis(names(&["a, b"]), AxisUnit::Plain);
    let boxes = figure(times(), rows, vec![Marks::Boxes(boxes), Marks::Points(points(&[(5e3, 0.1)]))]);
    let shown = table(&boxes);
    assert_eq!(shown.columns[1..3], ["round trip delay first quartile", "round trip delay median"]);
    assert_eq!(shown.rows[0], ["series 0", "2.00 µs", "3.00 µs", "4.00 µs", "1.00 µs", "9.00 µs", "–", "a, b"]);
    let expected = "series,round_trip_delay_first_quartile_ns,round_trip_delay_median_ns,\
        round_trip_delay_third_quartile_ns,round_trip_delay_lower_whisker_ns,round_trip_delay_upper_whisker_ns,\
        round_trip_delay_ns,probes\nseries 0,2000,3000,4000,1000,9000,,\"a, b\"\nseries 1,,,,,,5000,\"a, b\"\n";
    assert_eq!(csv(&boxes), expected);
    let tail = csv(&figure(times(), tails(), vec![Marks::Steps(points(&[(48_700.0, 0.001)]))]));
    assert_eq!(tail, "series,round_trip_delay_ns,quantile\nseries 0,48700,0.999\n");
}

#[test]
fn a_png_has_the_colours_of_its_marks() {
    let bars = vec![Bar { from: 1e3, to: 1e6, y: 1e4 }];
    let picture = png(&figure(times(), counts(), vec![Marks::Bars(bars)])).unwrap();
    let picture = tiny_skia::Pixmap::decode_png(&picture).unwrap();
    assert_eq!(picture.width(), 1_680);
    let pixel = picture.pixel(840, 400).unwrap();
    // #0072b2 with an opacity of 0.85 on white.
    let differences = [pixel.red().abs_diff(38), pixel.green().abs_diff(135), pixel.blue().abs_diff(190)];
    assert!(differences.iter().all(|difference| *difference <= 2), "{pixel:?}");
    assert_eq!(picture.pixel(1_670, 5).map(|pixel| pixel.red()), Some(255));
}

#[test]
fn values_on_a_narrow_axis_are_distinguished() {
    let narrow = axis(Scale::Linear(1e6, 1e6 + 200.0), AxisUnit::Time);
    let bars = vec![Bar { from: 1e6, to: 1e6 + 1.0, y: 5.0 }];
    let text = inline(&figure(narrow, counts(), vec![Marks::Bars(bars)])).into_string();
    assert!(text.contains("from 1.000000 ms to 1.000001 ms"), "{text}");
    assert!(text.contains("\"marks\":[[1000000,1000001,5]]"), "{text}");
}

#[test]
fn a_long_name_beside_an_axis_has_lines_and_is_whole_in_its_title() {
    let long = "p99  cpu=20%@peer, 1,472 B → cpu=80%@peer, 1,472 B";
    let longer = "p99  1ms, size 64, clock_nanosleep → 10ms, size 64, select";
    let endless = "x".repeat(90);
    let marks = Marks::Points(points(&[(2e3, 0.0)]));
    let svg = inline(&figure(times(), axis(names(&["p50", long, longer, &endless]), AxisUnit::Plain), vec![marks]))
        .into_string();
    let of_longer = [">p99  1ms, size 64,<", ">clock_nanosleep → 10ms, size<", ">64, select<"];
    let others = [">p99  cpu=20%@peer, 1,472 B →<", ">cpu=80%@peer, 1,472 B<", ">p50<", "xxx…<"];
    for part in of_longer.iter().chain(&others) {
        assert!(svg.contains(part), "`{part}` is not in {svg}");
    }
    assert!(svg.contains(&format!("<title>{endless}</title>")), "{svg}");
}
