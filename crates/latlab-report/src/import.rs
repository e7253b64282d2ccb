//! The result of an import as text and as `latlab.import/1`.

use serde_json::json;

use super::json::pretty;
use crate::diagnostics::Caveat;
use crate::recording::manifest::Manifest;
use crate::units::human::counted;

#[derive(Debug)]
pub struct ImportView<'a> {
    pub manifest: &'a Manifest,
    /// The path of the recording that was made.
    pub recording: &'a str,
    pub log: &'a str,
    /// The format of the log, for people.
    pub title: &'a str,
    /// The sum of the counts of its values; 0 of other rows.
    pub values: u64,
    /// Lines without a row that the format does not know.
    pub others: u64,
    /// The first of each kind of them, with its number.
    pub first_others: &'a [(u64, String)],
    /// What the log does not say, or says wrongly.
    pub caveats: &'a [Caveat],
}

impl ImportView<'_> {
    /// Renders the JSON document with a final newline.
    pub fn json(&self) -> String {
        let import = self.manifest.spec.import();
        pretty(&json!({
            "schema": "latlab.import/1",
            "recording": self.recording,
            "format": import.map_or("", |import| &import.format),
            "rows": self.manifest.rows.unwrap_or(0),
            "skipped": self.others + self.manifest.run.import.as_ref().map_or(0, |facts| facts.skipped_lines),
            "caveats": self.caveats,
        }))
    }

    pub fn text(&self) -> String {
        let (rows, noun) = (self.manifest.rows.unwrap_or(0), self.noun());
        let of_values = self.manifest.spec.import().and_then(|import| import.metric);
        let metric = of_values.map(|metric| format!(" of {}", metric.title())).unwrap_or_default();
        // The bins of a histogram have many values each.
        let (count, bins) = match self.values {
            0 => (rows, String::new()),
            values if values == rows => (rows, String::new()),
            values => (values, format!(" in {}", counted(rows as usize, "row"))),
        };
        format!(
            "imported {}{metric}{bins} from `{}` ({})\n{}recording {}\n",
            counted(count as usize, noun.trim_end_matches('s')),
            self.log,
            self.title,
            self.skipped(),
            self.recording
        )
    }

    /// The lines without a row, the first of each kind.
    fn skipped(&self) -> String {
        if self.others == 0 {
            return String::new();
        }
        let first = self.first_others.iter().map(|(number, text)| format!("line {number} `{text}`"));
        let lines = counted(self.others as usize, "line");
        format!("skipped {lines} without a row: {}\n", first.collect::<Vec<_>>().join(", "))
    }

    fn noun(&self) -> &'static str {
        match self.manifest.interval_rows {
            Some(_) => "intervals",
            None => self.manifest.kind.rows(),
        }
    }
}
