//! Publications as tables, and drawn as text.

use super::*;
use crate::facts::{XdpEnds, XdpFacts};
use crate::metric::Metric;
use crate::plan::Factors;
use crate::recipe::Column;
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
        sources: ["published", "raw data"].map(Into::into),
        whole: None,
        figures_of: FiguresOf::Singletons,
        columns: vec![Column::Mean, Column::Quantile(0.99), Column::Max],
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
    PublishedRow { label: label.into(), factors: Factors::new(), published, recomputed, against_first }
}

#[test]
fn rows_without_a_figure_share_a_line() {
    let pi = of_probes(vec![
        row("UDP", &[Some(1.8), None, Some(14.7)], &[], None),
        row("AF_XDP, no load", &[], &[], None),
        row("AF_XDP, CPU load", &[], &[], None),
    ]);
    let text = drawn(&publication(&pi), 80);
    assert!(text.ends_with("\nnot published: AF_XDP, no load; AF_XDP, CPU load\n"), "{text}");
    assert_eq!(text.matches("AF_XDP").count(), 2, "{text}");
}

#[test]
fn the_columns_are_those_of_the_publication() {
    const PUBLISHED: &[Option<f64>] = &[Some(1.821), None, Some(14.723)];
    const RECOMPUTED: &[Option<f64>] = &[Some(3.636), Some(7.162), Some(14.723)];
    let rows = vec![row("no load", PUBLISHED, RECOMPUTED, None), row("CPU load", PUBLISHED, RECOMPUTED, None)];
    let pi = kept(of_probes(rows.clone()));
    let figures = vec![
        ColumnFigure::Known(0.021),
        ColumnFigure::Unsupported { value: Some(0.15), bound: Some(0.1) },
        ColumnFigure::Lost,
    ];
    let at = |interface: &str, queue| XdpFacts { interface: interface.into(), queue, native: false, zero_copy: false };
    let ends =
        XdpEnds { sender: Some(at("a0", Some(1))), reflector: Some(XdpFacts { native: true, ..at("b0", None) }) };
    let xdp = [ends].into();
    let here = MeasuredRow { figures, against_first: None, runs: 9, singletons: 10_000, lost: 3, xdp };
    let results = || vec![Ok(here.clone()), Err("not measured yet".into())];
    let expected = "\
round trip without reflector dwell, halved, ms
             mean      p99     max
no load
 published  1.821        –  14.723
 raw data   3.636    7.162  14.723
 here       0.021   (0.150)   lost
                   ≥ 0.100
            mean of 9 runs, 10,000 probes each, 3 lost in all
            sender: AF_XDP, generic, queue 1 of a0 · reflector: XDP_TX, native,
            at b0
CPU load
 published  1.821        –  14.723
 raw data   3.636    7.162  14.723
 here           –        –       –
            not measured yet
( ) too few effective observations beyond it · ≥ lower bound (95 %)
lost: infinite, since the figure of a run or more lies among its lost probes
here, of several runs: geometric means of their figures, as in comparisons
";
    assert_eq!(drawn(&tables(&PublishedResults { published: pi, rows: results() }), 80), expected);
    let halves = kept(Published { whole: Some("round trip".into()), ..of_probes(rows) });
    let shown = drawn(&tables(&PublishedResults { published: halves, rows: results() }), 80);
    let expected = "
round trip, ms
        mean     p99   max  sample
no load
 here  0.042  (0.300) lost  mean of 9 runs, 10,000 probes each, 3 lost in all
";
    assert!(shown.ends_with(expected), "{shown}");
    let wakeups = Published { metric: Metric::WakeupLatency, ..of_probes(Vec::new()) };
    for (runs, singletons, expected) in
        [(4, 1, "mean of 4 runs, 1 wake-up each"), (1, 1_000, "1 run, 1,000 wake-ups each")]
    {
        assert_eq!(basis(&MeasuredRow { runs, singletons, ..here.clone() }, &wakeups), expected);
    }
}

#[test]
fn a_figure_among_the_lost_has_no_bound_and_is_explained() {
    let pi = kept(of_probes(vec![row("CPU load", &[Some(1.8), None, Some(14.7)], &[], None)]));
    let figures = vec![
        ColumnFigure::Known(0.06),
        ColumnFigure::Unsupported { value: None, bound: Some(0.07) },
        ColumnFigure::Lost,
    ];
    let here = MeasuredRow { figures, against_first: None, runs: 5, singletons: 60, lost: 5, xdp: [].into() };
    let text = drawn(&tables(&PublishedResults { published: pi, rows: vec![Ok(here)] }), 80);
    assert!(
        text.contains("\n here       0.060  lost    lost  mean of 5 runs") && text.contains("\nlost: infinite"),
        "{text}"
    );
    assert!(!text.contains('≥') && !text.contains("( )"), "{text}");
}

/// `tables` below each other in lines of `width` characters.
fn drawn(tables: &[TableView], width: usize) -> String {
    let style = Style { width, ..Style::PLAIN };
    let texts: Vec<String> = tables.iter().map(|table| draw_table(table, style).join("\n") + "\n").collect();
    texts.join("\n")
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
        ..of_probes(rows)
    });
    let measured = |figure: f64, against_first| {
        let figures = [figure, 88.0].map(ColumnFigure::Known).into();
        Ok(MeasuredRow { figures, against_first, runs: 30, singletons: 1_234_567, lost: 8, xdp: [].into() })
    };
    let lower = Some(MeanDifference::Proven { percent: -19.04, margin_percent: 0.22 });
    let not_yet = || Err("not measured yet".to_owned());
    let reason = format!("{IMPOSSIBLE}{}", "such is `lo` ".repeat(7));
    let rows = vec![measured(21_000.0, None), measured(17_000.5, lower), Err(reason), not_yet(), not_yet()];
    let expected = "\
delivered rate, 10⁶ bit/s
             median  stdev  ministat's test
v4, no checksum
 published   6137.8  256.3
 here       21000.0   88.0
            30 runs, at most 1,234,567 packets each, 8 lost in all
v4, no offload
 published   3697.9  256.3  −39.6 % ± 6.8 %
 here       17000.5   88.0  −19.0 % ± 0.2 %
            30 runs, at most 1,234,567 packets each, 8 lost in all
v4
 published   6528.8  256.3      none proven
 here             –      –
            not possible here (1)
(1) such is `lo` such is `lo` such is `lo` such is `lo` such is `lo` such is
`lo` such is `lo`
not measured yet: v6; v6, no offload
";
    assert_eq!(drawn(&tables(&PublishedResults { published: matrix, rows }), 80), expected);
}
