//! Rendering of the contents of a store as text and as `latlab.list/1`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::experiment::disk_size;
use super::json::pretty;
use super::text::{Style, flush_left, flush_right, width, wrap};
use crate::units::human::{ABSENT, grouped};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListingView {
    pub recording: String,
    /// Path of the experiment that it belongs to.
    pub experiment: Option<String>,
    /// Kind of run, such as `ping`; null if unknown.
    pub kind: Option<String>,
    /// Start time in UTC, RFC 3339.
    pub started_at: Option<String>,
    /// One-line description of the measurement.
    pub heading: Option<String>,
    /// The level of each factor; null if unknown.
    pub condition: Option<Map<String, Value>>,
    /// True for a warm-up run of an experiment; null if unknown.
    pub warmup: Option<bool>,
    /// Number of rows; `None` if the run is unfinished.
    pub rows: Option<u64>,
    pub bytes: u64,
    /// `completed`, `interrupted`, `failed`, `recovered`, `measuring`, `unfinished` or `damaged`.
    pub state: String,
    pub reason: Option<String>,
    /// Name or path, as it is typed behind `latlab summary`.
    #[serde(skip)]
    pub word: String,
    /// Its condition among the runs of its experiment.
    #[serde(skip)]
    pub factors: Option<String>,
    /// Start time, from the manifest or the name.
    #[serde(skip)]
    pub start: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedExperiment {
    pub experiment: String,
    /// Name in the experiment file; null if the file is unreadable.
    pub name: Option<String>,
    /// Start time in UTC, RFC 3339.
    pub started_at: Option<String>,
    /// Number of finished runs, including warm-up runs.
    pub runs_done: Option<u64>,
    /// Total number of runs; the maximum if a stopping rule depends on interval widths; null if no condition is possible.
    pub runs_planned: Option<u64>,
    pub bytes: u64,
    /// `finished`, `unfinished`, `measuring` or `damaged`.
    pub state: String,
    pub reason: Option<String>,
    /// Kind with its target, and the factors that vary, as in `load × size`; empty if the file is unreadable.
    #[serde(skip)]
    pub what: Vec<String>,
    /// Name or path, as it is typed behind `latlab summary`.
    #[serde(skip)]
    pub word: String,
    #[serde(skip)]
    pub start: Option<Timestamp>,
}

/// Contents of a store, in order of display.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreView {
    pub store: String,
    /// Recordings, those of experiments included.
    pub recordings: Vec<ListingView>,
    pub experiments: Vec<ListedExperiment>,
    /// True if what is listed was removed, false if it would be; null if it was only listed.
    pub removed: Option<bool>,
    /// Whether the text shows sizes in place of rows.
    #[serde(skip)]
    pub with_sizes: bool,
    /// Whether the newest is first: the text then shows the runs of an experiment below it.
    #[serde(skip)]
    pub by_time: bool,
    /// Whether the filters pass nothing of a store that is not empty.
    #[serde(skip)]
    pub is_unmatched: bool,
}

#[derive(Serialize)]
struct ListDocument<'a> {
    schema: &'static str,
    #[serde(flatten)]
    contents: &'a StoreView,
}

pub fn render_json(contents: &StoreView) -> String {
    pretty(&ListDocument { schema: "latlab.list/1", contents })
}

/// Renders as text, a row for each recording and experiment.
pub fn render_text(contents: &StoreView, style: Style) -> String {
    let rows = rows(contents);
    if rows.is_empty() {
        let what = match contents.removed {
            Some(_) => "nothing to remove",
            None if contents.is_unmatched => "nothing matches",
            None => "no recordings",
        };
        return format!("{what} in {}\n", contents.store);
    }
    let title = title(contents, style.width);
    let lines = title.iter().map(|line| style.strong(line)).chain(draw(&rows, contents.with_sizes, style));
    lines.map(|line| line + "\n").collect()
}

/// The path of the store, and what is removed behind it, or below it if that is too long for the line.
fn title(contents: &StoreView, available: usize) -> Vec<String> {
    let StoreView { store, recordings, experiments, .. } = contents;
    let Some(removed) = contents.removed else { return vec![store.clone()] };
    let bytes: u64 = recordings.iter().map(|one| one.bytes).chain(experiments.iter().map(|one| one.bytes)).sum();
    let done = if removed { "removed" } else { "would be removed" };
    let things = grouped((recordings.len() + experiments.len()) as u64);
    let removal = format!("{things} {done}, {}", disk_size(bytes as f64));
    let whole = format!("{store} · {removal}");
    if width(&whole) <= available { vec![whole] } else { vec![store.clone(), removal] }
}

/// A recording or an experiment.
struct Row {
    indent: usize,
    word: String,
    /// Its amount as a cell of a column.
    amount: String,
    /// What `amount` counts, if the heading of the column does not say so.
    unit: &'static str,
    /// Its description, which is wrapped between these parts.
    parts: Vec<String>,
}

impl Row {
    fn of_recording(one: &ListingView, is_below: bool, with_size: bool) -> Row {
        let rows = || one.rows.map_or_else(|| ABSENT.into(), grouped);
        let factors = one.factors.as_ref().filter(|_| is_below).map(|factors| vec![factors.clone()]);
        let described = || one.heading.iter().flat_map(|heading| heading.split(" · ")).map(str::to_owned).collect();
        // The row names the directory.
        let reason = one.reason.as_ref().map(|reason| reason.replace(&format!("{}/", one.recording), ""));
        let warmup = (one.warmup == Some(true)).then(|| "warm-up".to_owned());
        Row {
            indent: if is_below { 2 } else { 0 },
            word: one.word.clone(),
            amount: if with_size { disk_size(one.bytes as f64) } else { rows() },
            unit: if with_size { "" } else { " rows" },
            parts: state_words(&one.state, reason.as_deref())
                .into_iter()
                .chain(factors.unwrap_or_else(described))
                .chain(warmup)
                .collect(),
        }
    }

    fn of_experiment(one: &ListedExperiment, with_size: bool) -> Row {
        let count = |runs: Option<u64>| runs.map_or_else(|| ABSENT.to_owned(), grouped);
        let noun = if one.runs_planned == Some(1) { "run" } else { "runs" };
        let runs = || format!("{} of {} {noun}", count(one.runs_done), count(one.runs_planned));
        let state = state_words(&one.state, one.reason.as_deref());
        Row {
            indent: 0,
            word: one.word.clone(),
            amount: if with_size { disk_size(one.bytes as f64) } else { runs() },
            unit: "",
            parts: state.into_iter().chain(one.name.clone()).chain(one.what.iter().cloned()).collect(),
        }
    }

    fn name_width(&self) -> usize {
        self.indent + width(&self.word)
    }
}

/// The state, unless it is the usual one, with its reason where that is not a matter of course.
fn state_words(state: &str, reason: Option<&str>) -> Option<String> {
    match (state, reason) {
        ("completed" | "finished", None) => None,
        // Only a silent target ends a run that counts as complete.
        ("completed", Some(_)) => Some("no answer".into()),
        ("measuring", Some(process)) => Some(format!("measuring {process}")),
        ("damaged" | "failed" | "finished", Some(reason)) => Some(format!("{state}: {reason}")),
        _ => Some(state.into()),
    }
}

/// The newest first, the runs of an experiment below it; in another order the experiments before the recordings.
fn rows(contents: &StoreView) -> Vec<Row> {
    let StoreView { recordings, experiments, with_sizes, by_time, .. } = contents;
    if !by_time {
        let experiments = experiments.iter().map(|one| Row::of_experiment(one, *with_sizes));
        return experiments.chain(recordings.iter().map(|one| Row::of_recording(one, false, *with_sizes))).collect();
    }
    let mut below: BTreeMap<&str, Vec<Row>> =
        experiments.iter().map(|experiment| (experiment.experiment.as_str(), Vec::new())).collect();
    let mut blocks = Vec::new();
    for one in recordings {
        match one.experiment.as_deref().and_then(|experiment| below.get_mut(experiment)) {
            Some(runs) => runs.push(Row::of_recording(one, true, *with_sizes)),
            None => blocks.push((one.start, vec![Row::of_recording(one, false, *with_sizes)])),
        }
    }
    for one in experiments {
        let runs = below.remove(one.experiment.as_str()).unwrap_or_default();
        let experiment = Row::of_experiment(one, *with_sizes);
        blocks.push((one.start, std::iter::once(experiment).chain(runs).collect()));
    }
    blocks.sort_by_key(|(start, _)| std::cmp::Reverse(*start));
    blocks.into_iter().flat_map(|(_, rows)| rows).collect()
}

/// Distance of adjacent columns in characters.
const GAP: usize = 2;
/// Width below which descriptions stand below the names.
const NARROWEST: usize = 24;

fn draw(rows: &[Row], with_sizes: bool, style: Style) -> Vec<String> {
    let (name, amount) = ("recording", if with_sizes { "size" } else { "rows" });
    let widest = |of: fn(&Row) -> usize, heading: &str| rows.iter().map(of).chain([width(heading)]).max().unwrap_or(0);
    let names = widest(Row::name_width, name);
    let amounts = widest(|row| width(&row.amount), amount);
    let left = names + GAP + amounts + GAP;
    if left + NARROWEST > style.width {
        return rows.iter().flat_map(|row| draw_below(row, style)).collect();
    }
    let mut lines = vec![style.quiet(&format!("{name:<names$}  {amount:>amounts$}  what"))];
    for row in rows {
        let label = format!("{:indent$}{}", "", row.word, indent = row.indent);
        let mut start = format!("{}  {}  ", flush_left(&label, names), flush_right(&row.amount, amounts));
        for line in packed(&row.parts, style.width - left) {
            lines.push(format!("{start}{line}").trim_end().to_owned());
            start = " ".repeat(left);
        }
    }
    lines
}

/// The name of `row` in a line of its own, and the rest indented below.
fn draw_below(row: &Row, style: Style) -> Vec<String> {
    let indent = " ".repeat(row.indent);
    let parts: Vec<String> =
        std::iter::once(format!("{}{}", row.amount, row.unit)).chain(row.parts.iter().cloned()).collect();
    let below = packed(&parts, style.width.saturating_sub(row.indent + GAP));
    let below = below.into_iter().map(|line| format!("{indent}{:GAP$}{line}", ""));
    std::iter::once(format!("{indent}{}", row.word)).chain(below).collect()
}

/// `parts` in lines of at most `available` columns, at least one line. Only a part that is longer is divided, at its spaces.
fn packed(parts: &[String], available: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + width(" · ") + width(part) <= available => *line += &format!(" · {part}"),
            _ if width(part) <= available => lines.push(part.clone()),
            _ => lines.extend(wrap(part, available)),
        }
    }
    if lines.is_empty() { vec![ABSENT.into()] } else { lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(name: &str, state: &str, rows: Option<u64>) -> ListingView {
        let start = crate::recording::start_in_name(name);
        ListingView {
            recording: format!("runs/{name}"),
            experiment: None,
            kind: Some("ping".into()),
            started_at: start.map(|start| start.to_string()),
            heading: Some("ping local · 64 B · every 10 ms · cpu=80% · build=4f2a".into()),
            condition: Some(condition()),
            warmup: Some(false),
            rows,
            bytes: 12_345,
            state: state.into(),
            reason: None,
            word: name.into(),
            factors: None,
            start,
        }
    }

    fn condition() -> Map<String, Value> {
        let source = crate::analysis::in_memory::InMemory::of(crate::analysis::in_memory::EVERY_MS, Vec::new());
        source.manifest.spec.condition()
    }

    fn listings() -> Vec<ListingView> {
        let mut broken = listing("20261120T000000Z-ping-0001", "damaged", None);
        (broken.kind, broken.started_at, broken.heading) = (None, None, None);
        (broken.condition, broken.warmup) = (None, None);
        broken.reason = Some("`runs/20261120T000000Z-ping-0001/manifest.json` has 0 bytes".into());
        vec![listing("20261121T021500Z-ping-7f3a", "completed", Some(203_118)), broken]
    }

    fn contents(recordings: Vec<ListingView>) -> StoreView {
        StoreView { store: "runs".into(), recordings, by_time: true, ..StoreView::default() }
    }

    fn with_experiments() -> StoreView {
        let experiment = |name: &str, state: &str, done| {
            let start = crate::recording::start_in_name(name);
            ListedExperiment {
                experiment: format!("runs/{name}"),
                name: Some("pi4 to pi3 under load".into()),
                started_at: start.map(|start| start.to_string()),
                runs_done: done,
                runs_planned: Some(66),
                bytes: 2_000_000,
                state: state.into(),
                reason: None,
                what: vec!["ping 10.0.0.3".into(), "load × size".into()],
                word: name.into(),
                start,
            }
        };
        let mut broken = experiment("20261119T000000Z-experiment-0002", "damaged", None);
        (broken.name, broken.runs_planned, broken.what) = (None, None, Vec::new());
        let experiments = vec![experiment("20261120T120000Z-experiment-0001", "unfinished", Some(12)), broken];
        let mut run = listing("20261120T120001Z-ping-0002", "completed", Some(50));
        run.experiment = Some(experiments[0].experiment.clone());
        run.factors = Some("load=none".into());
        run.warmup = Some(true);
        let recordings = [listings(), vec![run]].concat();
        StoreView { experiments, ..contents(recordings) }
    }

    fn lines(contents: &StoreView, width: usize) -> Vec<String> {
        let text = render_text(contents, Style { width, ..Style::PLAIN });
        assert!(text.lines().all(|line| super::width(line) <= width), "{text}");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_recording_and_experiment_has_a_row_in_the_order_of_time() {
        let expected = [
            "runs",
            "recording                                  rows  what",
            "20261121T021500Z-ping-7f3a              203,118  ping local · 64 B · every 10 ms",
            "                                                 cpu=80% · build=4f2a",
            "20261120T120000Z-experiment-0001  12 of 66 runs  unfinished",
            "                                                 pi4 to pi3 under load",
            "                                                 ping 10.0.0.3 · load × size",
            "  20261120T120001Z-ping-0002                 50  load=none · warm-up",
            "20261120T000000Z-ping-0001                    –  damaged: `manifest.json` has 0",
            "                                                 bytes",
            "20261119T000000Z-experiment-0002    – of – runs  damaged",
        ];
        assert_eq!(lines(&with_experiments(), 80), expected);
        assert_eq!(lines(&with_experiments(), 140).len(), 7, "each has one line");
        assert_eq!(render_text(&contents(Vec::new()), Style::PLAIN), "no recordings in runs\n");
        let unmatched = StoreView { is_unmatched: true, ..contents(Vec::new()) };
        assert_eq!(render_text(&unmatched, Style::PLAIN), "nothing matches in runs\n");
    }

    #[test]
    fn a_complete_run_without_an_answer_is_named_so() {
        let mut silent = listing("20261121T021500Z-ping-7f3a", "completed", Some(1_000));
        silent.reason = Some("no probe was answered in the first 10 s".into());
        let text = lines(&contents(vec![silent]), 80);
        assert!(text[2].contains("  1,000  no answer · ping local · 64 B"), "{text:#?}");
    }

    #[test]
    fn names_with_wide_characters_are_padded_by_columns() {
        let mut listings = listings();
        listings[0].word = "東京".into();
        let lines = lines(&contents(listings), 80);
        assert!(lines[2].starts_with(&format!("東京{:22}  203,118  ping local", "")), "{lines:#?}");
    }

    #[test]
    fn a_name_longer_than_the_line_is_not_divided() {
        let mut listings = listings();
        listings[0].word = "n".repeat(100);
        let text = render_text(&contents(listings), Style::PLAIN);
        assert!(text.contains(&format!("\n{}\n  203,118 rows · ping local", "n".repeat(100))), "{text}");
    }

    #[test]
    fn what_is_removed_is_counted_in_the_title() {
        let removed = |removed| {
            let contents = StoreView { removed: Some(removed), with_sizes: true, ..contents(listings()) };
            lines(&contents, 80).remove(0)
        };
        assert_eq!(removed(false), "runs · 2 would be removed, 25 kB");
        let store = "/var/lib/measurements";
        let elsewhere = StoreView { store: store.into(), removed: Some(false), ..contents(listings()) };
        assert_eq!(lines(&elsewhere, 40)[..2], [store, "2 would be removed, 25 kB"]);
        assert_eq!(removed(true), "runs · 2 removed, 25 kB");
        let nothing = StoreView { removed: Some(false), ..contents(Vec::new()) };
        assert_eq!(lines(&nothing, 80), ["nothing to remove in runs"]);
    }
}
