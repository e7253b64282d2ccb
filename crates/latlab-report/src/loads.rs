//! Rendering of generated loads as text and as `latlab.load/1`.

use serde_json::json;

use super::Style;
use super::json::pretty;
use super::summary_view::caveat_views;
use super::text;
use super::view::{ColumnView, GroupView, Part, RowView, TableView};
use crate::analysis::unreached_loads;
use crate::diagnostics::Caveat;
use crate::facts::LoadReport;
use crate::units::human::{ABSENT, load_figure, span};

/// Reports of generated loads with their caveats.
#[derive(Debug)]
pub struct LoadsView<'a> {
    loads: &'a [LoadReport],
    caveats: Vec<Caveat>,
}

impl<'a> LoadsView<'a> {
    pub fn of(loads: &'a [LoadReport]) -> LoadsView<'a> {
        LoadsView { loads, caveats: unreached_loads(loads) }
    }

    pub fn caveats(&self) -> &[Caveat] {
        &self.caveats
    }

    /// Renders the JSON document with a final newline.
    pub fn json(&self) -> String {
        pretty(&json!({ "schema": "latlab.load/1", "loads": self.loads, "caveats": self.caveats }))
    }

    pub fn text(&self, style: Style) -> String {
        if self.loads.is_empty() {
            return "no load was made\n".into();
        }
        let mut names: Vec<&str> = self.loads.iter().map(|load| load.load.as_str()).collect();
        names.dedup();
        let longest = self.loads.iter().filter_map(|load| load.measured_ns).max();
        let heading = longest.map(|held| format!(" · {}", span(held))).unwrap_or_default();
        let mut parts = vec![Part::Heading(format!("load {}{heading}", names.join(" · ")))];
        parts.extend(loads_table(self.loads).map(Part::Table));
        parts.push(Part::Caveats(caveat_views(&self.caveats)));
        text::render(&parts, style)
    }
}

/// Offered beside achieved loads; `None` without a load.
pub(super) fn loads_table(loads: &[LoadReport]) -> Option<TableView> {
    let column = |heading: &str, figure: fn(&LoadReport) -> Option<f64>| {
        ColumnView::figures(heading, loads.iter().map(|load| worded_figure(load, figure(load))))
    };
    let row = |load: &LoadReport| RowView::of(format!("{} at {}", load.load, load.at));
    let group = |heading: &str, columns| GroupView { heading: heading.into(), columns };
    (!loads.is_empty()).then(|| TableView {
        title: "what was reached".into(),
        note: String::new(),
        corner: "load".into(),
        rows: loads.iter().map(row).collect(),
        groups: vec![
            group("", vec![column("offered", |load| load.offered), column("achieved", |load| load.achieved)]),
            group("over 100 ms", vec![column("min", |load| load.min), column("max", |load| load.max)]),
        ],
        legend: if loads.iter().any(is_too_short) { TOO_SHORT.into() } else { String::new() },
    })
}

/// Below a table with such a load.
const TOO_SHORT: &str = "– too short to be measured: a load is read every 100 ms";

/// Whether the load has no achieved figure because it was measured for less than a window. One that ended early, or without
/// a report, has a caveat.
fn is_too_short(load: &LoadReport) -> bool {
    let is_counted = load.measured_ns.is_some() || load.stream.is_some();
    load.achieved.is_none() && load.ended_early.is_none() && is_counted
}

fn worded_figure(load: &LoadReport, figure: Option<f64>) -> String {
    figure.map_or(ABSENT.to_owned(), |figure| load_figure(&load.unit, figure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::load::{BYTES_PER_SECOND, SHARE};
    use crate::facts::{StreamReport, WindowedRate};
    use crate::remarks::load_line;
    use crate::units::Nanos;

    fn reports() -> Vec<LoadReport> {
        let cpu = LoadReport {
            load: "cpu=80%".into(),
            kind: "cpu".into(),
            at: "local".into(),
            unit: SHARE.into(),
            offered: Some(0.8),
            achieved: Some(0.7983),
            min: Some(0.7811),
            max: Some(0.8122),
            five_seconds: Some([0.7979, 0.7988]),
            measured_ns: Some(Nanos::from_millis(10_002)),
            period_ns: Some(Nanos::from_micros(16_180)),
            cpus: vec![0, 1],
            ended_early: None,
            stream: None,
        };
        let memory = LoadReport {
            load: "mem=2GB/s".into(),
            kind: "mem".into(),
            unit: BYTES_PER_SECOND.into(),
            offered: Some(2e9),
            achieved: Some(1.4e9),
            min: None,
            max: None,
            five_seconds: None,
            ..cpu.clone()
        };
        vec![cpu, memory]
    }

    #[test]
    fn the_table_says_why_a_load_has_no_achieved_figure() {
        let of = |measured_ns| {
            let load = LoadReport { achieved: None, min: None, max: None, measured_ns, ..reports()[0].clone() };
            LoadsView::of(&[load]).text(Style::PLAIN)
        };
        assert!(of(Some(Nanos::from_millis(20))).contains(TOO_SHORT));
        assert!(!of(None).contains("too short"));
    }

    #[test]
    fn the_document_conforms_to_its_schema() {
        let unknown =
            LoadReport { achieved: None, measured_ns: None, period_ns: None, offered: None, ..reports()[1].clone() };
        for loads in [vec![], reports(), vec![unknown]] {
            crate::schemas::check("load", &LoadsView::of(&loads).json());
        }
    }

    #[test]
    fn a_share_of_the_path_is_shown_as_a_rate() {
        let stream = StreamReport {
            size_bytes: 1_400,
            wire: false,
            offered_bps: Some(90e6),
            searched_bps: Some(100e6),
            search_trials: 9,
            sent: None,
            delivered: Some(WindowedRate { mean_bps: 89.7e6, min_bps: 80e6, max_bps: 95e6 }),
            windows: 99,
            measured_ns: Some(Nanos::from_secs(10)),
            sent_packets: 80_000,
            skipped_packets: 0,
            refused_packets: 0,
            delivered_packets: 80_000,
            lost_packets: 0,
            reordered_packets: 0,
            duplicate_packets: 0,
            socket_drops: Some(0),
        };
        let searched = stream.as_load("net=90%".into(), "peer".into());
        let line = "net=90% at peer (90.0 Mbit/s of 100 Mbit/s) → 89.7 Mbit/s (80.0 Mbit/s to 95.0 Mbit/s over 100 ms)";
        assert_eq!(load_line(&searched), line);
        let stated = StreamReport { searched_bps: None, ..stream }.as_load("net=90Mbit/s".into(), "local".into());
        assert!(load_line(&stated).starts_with("net=90Mbit/s → 89.7 Mbit/s"), "{}", load_line(&stated));
    }
}
