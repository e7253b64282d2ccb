//! What is in the store, as text and as `latlab.list/1`.

use serde::Serialize;

use super::json::pretty;
use super::paint::Style;
use super::table;
use super::view::{ColumnView, GroupView, RowView, TableView};
use crate::units::human::{ABSENT, grouped};

/// One directory of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListingView {
    /// Its path.
    pub recording: String,
    /// `ping`; null where the manifest does not say.
    pub kind: Option<String>,
    /// UTC start, RFC 3339.
    pub started_at: Option<String>,
    /// What was measured, in one line.
    pub heading: Option<String>,
    /// Rows, once the run is finished.
    pub rows: Option<u64>,
    /// `completed`, `interrupted`, `failed`, `recovered`, `measuring`, `unfinished` or `damaged`.
    pub state: String,
    /// Why it is in that state, where there is more to say.
    pub reason: Option<String>,
}

#[derive(Serialize)]
struct ListDocument<'a> {
    schema: &'static str,
    store: &'a str,
    recordings: &'a [ListingView],
}

/// The document.
pub fn render_json(store: &str, listings: &[ListingView]) -> String {
    pretty(&ListDocument { schema: "latlab.list/1", store, recordings: listings })
}

/// The table for people, in the order given.
pub fn render_text(store: &str, listings: &[ListingView], style: Style) -> String {
    if listings.is_empty() {
        return format!("no recordings in {store}\n");
    }
    let base = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned();
    let rows = listings.iter().map(|listing| RowView { label: base(&listing.recording), quiet: false }).collect();
    let column = |heading: &str, cell: &dyn Fn(&ListingView) -> String| ColumnView {
        heading: heading.into(),
        cells: listings.iter().map(cell).collect(),
    };
    let columns = vec![
        column("rows", &|listing| listing.rows.map_or_else(|| ABSENT.into(), grouped)),
        column("state", &|listing| listing.state.clone()),
        column("what", &|listing| listing.heading.clone().unwrap_or_else(|| ABSENT.into())),
    ];
    let table = TableView {
        title: store.into(),
        note: String::new(),
        corner: "recording".into(),
        rows,
        groups: columns.into_iter().map(|column| GroupView { heading: String::new(), columns: vec![column] }).collect(),
    };
    table::draw(&table, style).join("\n") + "\n"
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

    #[test]
    fn every_recording_has_a_line() {
        let text = render_text("runs", &listings(), Style::PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[2].starts_with("20261121T021500Z-ping-7f3a") && lines[2].contains("203,118"), "{text}");
        assert!(lines[3].contains("damaged") && lines[3].contains(ABSENT), "{text}");
        assert!(lines.iter().all(|line| super::super::paint::width(line) <= 80), "{text}");
        assert_eq!(render_text("runs", &[], Style::PLAIN), "no recordings in runs\n");
    }

    #[test]
    fn a_name_longer_than_the_line_keeps_its_row_whole() {
        let mut listings = listings();
        listings[0].recording = format!("runs/{}", "n".repeat(100));
        let text = render_text("runs", &listings, Style::PLAIN);
        let rows: Vec<_> = text.lines().filter(|line| line.contains(&"n".repeat(100))).collect();
        assert!(matches!(rows[..], [row, ..] if row.contains("203,118") && row.contains("completed")), "{text}");
    }

    #[test]
    fn the_document_keeps_to_its_schema() {
        crate::report::schemas::check("list", &render_json("runs", &listings()));
        crate::report::schemas::check("list", &render_json("runs", &[]));
    }
}
