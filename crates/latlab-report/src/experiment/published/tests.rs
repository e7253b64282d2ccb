//! Publications as tables, and drawn as text.

use super::*;
use crate::facts::{RecipeFacts, XdpEnds, XdpFacts};
use crate::metric::Metric;
use crate::plan::Factors;
use crate::recipe::{Column, Lesson};
use crate::text::{Style, draw_table};

/// A publication of probes with these rows.
fn of_probes(rows: Vec<PublishedRow>) -> Published {
    Published {
        heading: "round trip without reflector dwell, halved".into(),
        metric: Metric::RoundTripDelay,
        own_units: 1e6,
        unit: "ms".into(),
        decimals: 3,
        half: true,
        sources: ["published", "recomputed"].map(Into::into),
        whole: None,
        figures_of: FiguresOf::Singletons,
        columns: vec![Column::Mean, Column::Quantile(0.99), Column::Max],
        headings: ["Ave", "99 %", "Max"].map(Into::into).to_vec(),
        lesson: Lesson::HalfRoundTrip,
        rows,
        implied: Factors::new(),
    }
}

/// As the publications are that belong to the program.
fn kept(published: Published) -> &'static Published {
    Box::leak(Box::new(published))
}

fn row(
    label: &str,
    published: &[Option<f64>],
    recomputed: &[Option<f64>],
    against_first: Option<MeanDifference>,
) -> PublishedRow {
    let (published, recomputed) = (published.to_vec(), recomputed.to_vec());
    let factors = Factors::from([("load".to_owned(), "cpu=80%".to_owned())]);
    PublishedRow { label: label.into(), factors, published, recomputed, against_first, note: String::new() }
}

#[test]
fn the_columns_are_those_of_the_publication() {
    const PUBLISHED: &[Option<f64>] = &[Some(1.821), None, Some(14.723)];
    const RECOMPUTED: &[Option<f64>] = &[Some(3.636), Some(7.162), Some(14.723)];
    let rows = vec![row("no load", PUBLISHED, RECOMPUTED, None), row("CPU load", PUBLISHED, RECOMPUTED, None)];
    let pi = kept(of_probes(rows.clone()));
    let figures = vec![
        ColumnFigure::Known(0.021),
        ColumnFigure::Unsupported { value: Some(0.15), bound: None, is_small: true },
        ColumnFigure::Lost,
    ];
    let at = |interface: &str, queue| XdpFacts { interface: interface.into(), queue, native: false, zero_copy: false };
    let ends =
        XdpEnds { sender: Some(at("a0", Some(1))), reflector: Some(XdpFacts { native: true, ..at("b0", None) }) };
    let xdp = [ends].into();
    let load = Some(ReachedLoad { unit: "share".into(), achieved: 0.47, is_reached: false });
    let here =
        MeasuredRow { figures, against_first: None, runs: 9, singletons: 10_000, lost: 3, xdp, load, mistaken: None };
    let results = |published, others| {
        let system = |name: &str, rows| MeasuredSystem { name: name.into(), rows };
        let here = system("here", vec![Ok(here.clone()), Err(Unmeasured::NotYet)]);
        PublishedResults { published, systems: [here].into_iter().chain(others).collect(), recipe: recipe("usual") }
    };
    let expected = "\
round trip without reflector dwell, halved, ms
                Ave    99 %     Max
no load
 published   1.821        –  14.723
 recomputed  3.636    7.162  14.723
 here        0.0210  (0.150)   lost
             mean of 9 runs, 10,000 probes each, 3 lost in all; `cpu=80%`
             reached only 47 %
             sender: AF_XDP, generic, queue 1 of a0 · reflector: XDP_TX, native,
             at b0
CPU load
 published   1.821        –  14.723
 recomputed  3.636    7.162  14.723
not measured yet: CPU load
not possible here: `xdp`
( ) too few values beyond it, or of one run too few independent ones; `--full`
has more
lost: infinite, since the value of a run or more lies among its lost probes
of several runs: geometric means of their values, of minima and maxima too, as
in comparisons
";
    let not_possible = || Some("not possible here: `xdp`".to_owned());
    assert_eq!(drawn(&table(&results(pi, None), not_possible())), expected);
    // The rows of a further pair of hosts stand in the same table, and doubled figures below those of their row.
    let halves = kept(Published { whole: Some("round trip".into()), ..of_probes(rows) });
    let second = MeasuredSystem { name: "ssh:pi3".into(), rows: vec![Ok(here.clone()), Ok(here.clone())] };
    let shown = drawn(&table(&results(halves, Some(second)), None));
    let expected = "
CPU load
 published   1.821        –  14.723
 recomputed  3.636    7.162  14.723
 ssh:pi3     0.0210  (0.150)   lost
             sender: AF_XDP, generic, queue 1 of a0 · reflector: XDP_TX, native,
             at b0
 round trip  0.0420  (0.300)   lost
measured: mean of 9 runs, 10,000 probes each, 3 lost in all; `cpu=80%` reached
only 47 %
";
    assert!(shown.contains(expected), "{shown}");
    let wakeups = Published { metric: Metric::WakeupLatency, ..of_probes(Vec::new()) };
    for (runs, singletons, expected) in
        [(4, 1, "mean of 4 runs, 1 wake-up each"), (1, 1_000, "1 run, 1,000 wake-ups each")]
    {
        assert_eq!(sample(&MeasuredRow { runs, singletons, ..here.clone() }, &wakeups), expected);
    }
}

#[test]
fn a_figure_among_the_lost_has_no_bound_and_is_explained() {
    let pi = kept(of_probes(vec![row("CPU load", &[Some(1.8), None, Some(14.7)], &[], None)]));
    let figures = vec![ColumnFigure::Known(0.06), ColumnFigure::Lost, ColumnFigure::Lost];
    let here = MeasuredRow { figures, runs: 5, singletons: 60, lost: 5, ..bare() };
    let text = drawn(&table(&measured(pi, vec![Ok(here)]), None));
    assert!(
        text.contains("\n here       0.0600  lost  lost  mean of 5 runs") && text.contains("\nlost: infinite"),
        "{text}"
    );
    assert!(!text.contains('≥') && !text.contains("( )"), "{text}");
}

/// `table` in lines of 80 characters.
fn drawn(table: &TableView) -> String {
    draw_table(table, Style { width: 80, ..Style::PLAIN }).join("\n") + "\n"
}

fn recipe(scale: &str) -> RecipeFacts {
    RecipeFacts { name: "x".into(), scale: scale.into(), target: "local".into() }
}

fn bare() -> MeasuredRow {
    let (figures, against_first, load, mistaken) = (Vec::new(), None, None, None);
    MeasuredRow { figures, against_first, runs: 30, singletons: 1_234_567, lost: 8, xdp: [].into(), load, mistaken }
}

fn measured(published: &'static Published, rows: Vec<Result<MeasuredRow, Unmeasured>>) -> PublishedResults {
    PublishedResults { published, systems: vec![MeasuredSystem { name: "here".into(), rows }], recipe: recipe("quick") }
}

#[test]
fn figures_over_runs_are_tested_against_the_first_row() {
    const LOWER: Option<MeanDifference> = Some(MeanDifference::Proven { percent: -39.6, margin_percent: 6.8 });
    let rows = vec![
        row("v4, no checksum", &[Some(6137.8), Some(256.3195)], &[], None),
        row("v4, no offload", &[Some(3697.94), Some(256.3195)], &[], LOWER),
        row("v4", &[Some(6528.77), Some(256.3195)], &[], Some(MeanDifference::NotProven)),
        row("v6", &[], &[], None),
        row("v6, no offload", &[], &[], None),
    ];
    let matrix = kept(Published {
        heading: "delivered rate".into(),
        metric: Metric::DeliveredRate,
        unit: "10⁶ bit/s".into(),
        decimals: 1,
        figures_of: FiguresOf::Runs,
        columns: vec![Column::Median, Column::Stddev],
        headings: ["Median", "Stddev"].map(Into::into).to_vec(),
        ..of_probes(rows)
    });
    let row = |figure: f64, against_first| {
        Ok(MeasuredRow { figures: [figure, 88.0].map(ColumnFigure::Known).into(), against_first, ..bare() })
    };
    let lower = Some(MeanDifference::Proven { percent: -19.04, margin_percent: 0.22 });
    // Of a rehearsal rows that are none of its conditions are left out.
    let rows = vec![
        row(21_000.0, None),
        row(17_000.5, lower),
        Err(Unmeasured::Impossible("such is `lo`".into())),
        Err(Unmeasured::NoCondition),
        Err(Unmeasured::NotYet),
    ];
    let expected = "\
delivered rate, 10⁶ bit/s
             Median  Stddev  ministat's test
v4, no checksum
 published   6137.8   256.3
 here       21000.0    88.0
v4, no offload
 published   3697.9   256.3  −39.6 % ± 6.8 %
 here       17000.5    88.0  −19.0 % ± 0.2 %
v4
 published   6528.8   256.3      none proven
measured: 30 runs, at most 1,234,567 packets each, 8 lost in all
not measured yet: v6, no offload
";
    assert_eq!(drawn(&table(&measured(matrix, rows), None)), expected);
}

#[test]
fn a_figure_below_its_decimals_keeps_its_own() {
    for (figure, shown) in [(1e-6, "0.000001"), (0.0, "0.000"), (0.0006, "0.001"), (1.4419, "1.442")] {
        assert_eq!(number(figure, 3), shown);
    }
}
