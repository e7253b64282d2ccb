//! Rendering of the contents of a store as text and as `latlab.list/1`.

use serde::Serialize;

use super::json::pretty;
use super::text::Style;
use super::text::draw_table;
use super::view::{ColumnView, GroupView, RowView, TableView};
use crate::units::human::{ABSENT, grouped};

/// A recording of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListingView {
    /// Path of the directory.
    pub recording: String,
    /// Kind of run, such as `ping`; null if unknown.
    pub kind: Option<String>,
    /// Start time in UTC, RFC 3339.
    pub started_at: Option<String>,
    /// One-line description of the measurement.
    pub heading: Option<String>,
    /// Number of rows; `None` if the run is unfinished.
    pub rows: Option<u64>,
    /// `completed`, `interrupted`, `failed`, `recovered`, `measuring`, `unfinished` or `damaged`.
    pub state: String,
    /// Reason for the state.
    pub reason: Option<String>,
}

/// An experiment of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedExperiment {
    /// Path of the directory.
    pub experiment: String,
    /// Name in the experiment file; null if the file is unreadable.
    pub name: Option<String>,
    /// Number of finished runs, including warm-up runs.
    pub runs_done: Option<u64>,
    /// Total number of runs; the maximum if a stopping rule depends on interval widths.
    pub runs_planned: Option<u64>,
    /// `finished`, `unfinished`, `measuring` or `damaged`.
    pub state: String,
    /// Reason for the state.
    pub reason: Option<String>,
}

/// Contents of a store, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreView {
    /// Path of the directory.
    pub store: String,
    /// Recordings outside experiments.
    pub recordings: Vec<ListingView>,
    /// Experiments with their own recordings.
    pub experiments: Vec<ListedExperiment>,
}

#[derive(Serialize)]
struct ListDocument<'a> {
    schema: &'static str,
    #[serde(flatten)]
    contents: &'a StoreView,
}

/// Renders the JSON document.
pub fn render_json(contents: &StoreView) -> String {
    pretty(&ListDocument { schema: "latlab.list/1", contents })
}

/// Renders as text, in the given order.
pub fn render_text(contents: &StoreView, style: Style) -> String {
    let StoreView { store, recordings, experiments } = contents;
    let mut tables = Vec::new();
    if !experiments.is_empty() {
        tables.push(table(store, "experiment", &experiments_of(experiments)));
    }
    if !recordings.is_empty() {
        tables.push(table(store, "recording", &recordings_of(recordings)));
    }
    if tables.is_empty() {
        return format!("no recordings in {store}\n");
    }
    tables.iter().map(|table| draw_table(table, style).join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// Row labels, and columns of a heading with a cell for each row.
struct Lines {
    labels: Vec<String>,
    columns: Vec<(&'static str, Vec<String>)>,
}

fn recordings_of(listings: &[ListingView]) -> Lines {
    let each = |cell: fn(&ListingView) -> String| listings.iter().map(cell).collect();
    Lines {
        labels: each(|listing| base(&listing.recording)),
        columns: vec![
            ("rows", each(|listing| listing.rows.map_or_else(|| ABSENT.into(), grouped))),
            ("state", each(|listing| listing.state.clone())),
            ("what", each(|listing| listing.heading.clone().unwrap_or_else(|| ABSENT.into()))),
        ],
    }
}

fn experiments_of(experiments: &[ListedExperiment]) -> Lines {
    let each = |cell: fn(&ListedExperiment) -> String| experiments.iter().map(cell).collect();
    let count = |runs: Option<u64>| runs.map_or_else(|| ABSENT.to_owned(), grouped);
    let runs = |one: &ListedExperiment| format!("{} of {}", count(one.runs_done), count(one.runs_planned));
    Lines {
        labels: each(|one| base(&one.experiment)),
        columns: vec![
            ("runs", experiments.iter().map(runs).collect()),
            ("state", each(|one| one.state.clone())),
            ("what", each(|one| one.name.clone().or_else(|| one.reason.clone()).unwrap_or_else(|| ABSENT.into()))),
        ],
    }
}

/// Returns the last component of a path.
fn base(path: &str) -> String {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned()
}

fn table(store: &str, corner: &str, lines: &Lines) -> TableView {
    let group = |(heading, cells): &(&str, Vec<String>)| GroupView {
        heading: String::new(),
        columns: vec![ColumnView { heading: (*heading).into(), cells: cells.clone() }],
    };
    TableView {
        title: store.into(),
        note: String::new(),
        corner: corner.into(),
        rows: lines.labels.iter().map(|label| RowView { label: label.clone(), quiet: false }).collect(),
        groups: lines.columns.iter().map(group).collect(),
        legend: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listings() -> Vec<ListingView> {
        let listing = |name: &str, state: &str, rows| ListingView {
            recording: format!("runs/{name}"),
            kind: Some("ping".into()),
            started_at: Some("2026-11-21T02:15:00Z".into()),
            heading: Some("ping local · 64 B".into()),
            rows,
            state: state.into(),
            reason: None,
        };
        let mut broken = listing("20261120T000000Z-ping-0001", "damaged", None);
        (broken.kind, broken.started_at, broken.heading) = (None, None, None);
        broken.reason = Some("the manifest has 0 bytes".into());
        vec![listing("20261121T021500Z-ping-7f3a", "completed", Some(203_118)), broken]
    }

    fn contents(recordings: Vec<ListingView>) -> StoreView {
        StoreView { store: "runs".into(), recordings, experiments: Vec::new() }
    }

    fn with_experiments() -> StoreView {
        let experiment = |name: &str, state: &str, done| ListedExperiment {
            experiment: format!("runs/{name}"),
            name: Some("pi4 to pi3 under load".into()),
            runs_done: done,
            runs_planned: Some(66),
            state: state.into(),
            reason: None,
        };
        let mut broken = experiment("20261122T000000Z-experiment-0002", "damaged", None);
        (broken.name, broken.runs_planned) = (None, None);
        let experiments = vec![broken, experiment("20261121T000000Z-experiment-0001", "unfinished", Some(12))];
        StoreView { experiments, ..contents(listings()) }
    }

    #[test]
    fn every_recording_has_a_line() {
        let text = render_text(&contents(listings()), Style::PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[2].starts_with("20261121T021500Z-ping-7f3a") && lines[2].contains("203,118"), "{text}");
        assert!(lines[3].contains("damaged") && lines[3].contains(ABSENT), "{text}");
        assert!(lines.iter().all(|line| super::super::text::width(line) <= 80), "{text}");
        assert_eq!(render_text(&contents(Vec::new()), Style::PLAIN), "no recordings in runs\n");
    }

    #[test]
    fn experiments_are_listed_first_with_their_progress() {
        let text = render_text(&with_experiments(), Style::PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 9, "{text}");
        assert!(lines[2].contains("– of –") && lines[2].contains("damaged"), "{text}");
        assert!(lines[3].contains("12 of 66") && lines[3].contains("pi4 to pi3 under load"), "{text}");
        assert!(lines[7].contains("203,118"), "{text}");
        assert!(lines.iter().all(|line| super::super::text::width(line) <= 80), "{text}");
        let alone = render_text(&StoreView { recordings: Vec::new(), ..with_experiments() }, Style::PLAIN);
        assert_eq!(alone.lines().count(), 4, "{alone}");
    }

    #[test]
    fn a_name_longer_than_the_line_does_not_split_its_row() {
        let mut listings = listings();
        listings[0].recording = format!("runs/{}", "n".repeat(100));
        let text = render_text(&contents(listings), Style::PLAIN);
        let rows: Vec<_> = text.lines().filter(|line| line.contains(&"n".repeat(100))).collect();
        assert!(matches!(rows[..], [row, ..] if row.contains("203,118") && row.contains("completed")), "{text}");
    }

    #[test]
    fn the_document_conforms_to_its_schema() {
        for contents in [contents(listings()), contents(Vec::new()), with_experiments()] {
            crate::report::schemas::check("list", &render_json(&contents));
        }
    }
}
