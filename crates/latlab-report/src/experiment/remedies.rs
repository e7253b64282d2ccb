//! Rendering of the gains of remedies as a table and as `latlab.remedies/1`. Schema: docs/schemas/remedies-1.json.

use serde::Serialize;

use crate::analysis::Condition;
use crate::analysis::experiment::{Gain, GainVerdict, RemedyGains};
use crate::diagnostics::Caveat;
use crate::report::json::pretty;
use crate::report::summary_view::caveat_views;
use crate::report::text::caveat_lines;
use crate::report::text::{Style, width, wrap};
use crate::units::human::{ABSENT, TimeUnit};

/// The remedies that were tried, with their gains.
#[derive(Clone, Debug, PartialEq)]
pub struct RemediesView<'a> {
    /// The unchanged run, in one line.
    pub heading: String,
    /// The factors of the unchanged run.
    pub condition: &'a Condition,
    /// Runs of each condition, the fewest.
    pub runs: usize,
    /// Blocks in which the conditions were interleaved.
    pub blocks: u32,
    pub confidence: f64,
    /// The gains of each remedy that was tried.
    pub gains: Vec<RemedyGains>,
    /// The remedies that were not tried.
    pub untried: &'a [UntriedRemedy],
    pub caveats: &'a [Caveat],
    /// All recordings, in the order in which they were made.
    pub recordings: Vec<String>,
}

/// A remedy that is impossible here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntriedRemedy {
    pub remedy: String,
    /// Why it was not tried.
    pub reason: String,
}

pub fn text(view: &RemediesView<'_>, style: Style) -> String {
    let RemediesView { heading, runs, blocks, .. } = view;
    let heading = format!("{heading} · {runs} runs each in {blocks} blocks, interleaved, 95 % intervals");
    let mut lines = wrap(&heading, style.width);
    lines.push(String::new());
    if !view.gains.is_empty() {
        lines.extend(table(&view.gains, style));
    }
    if !view.untried.is_empty() {
        lines.push(String::new());
        lines.push(style.strong("not tried"));
        let widest = view.untried.iter().map(|one| width(&one.remedy)).max().unwrap_or_default();
        let columns = style.width.saturating_sub(widest + 4).max(20);
        for UntriedRemedy { remedy, reason } in view.untried {
            for (number, line) in wrap(reason, columns).iter().enumerate() {
                let label = if number == 0 { remedy } else { "" };
                lines.push(format!("  {label}{}  {line}", " ".repeat(widest - width(label))));
            }
        }
    }
    lines.push(String::new());
    lines.extend(wrap(footnote(view), style.width).iter().map(|line| style.quiet(line)));
    lines.extend(caveat_lines(&caveat_views(view.caveats), style));
    lines.join("\n") + "\n"
}

fn footnote(view: &RemediesView<'_>) -> &'static str {
    let decided = |gain: &Gain| gain.verdict != GainVerdict::Undecided;
    match view.gains.iter().flat_map(|one| &one.gains).all(decided) {
        true => "verdicts: permutation test and Welch's t within blocks, Holm over the table",
        false => {
            "verdicts: permutation test and Welch's t within blocks, Holm over the table; undecided: a longer `-d` may decide"
        }
    }
}

fn table(gains: &[RemedyGains], style: Style) -> Vec<String> {
    let head = ["", "as asked", "with it", "gain", ""].map(str::to_owned);
    let rows: Vec<Vec<[String; 5]>> = gains.iter().map(|one| one.gains.iter().map(cells).collect()).collect();
    let widest = |column: usize| {
        let all = rows.iter().flatten().chain([&head]);
        all.map(|row| width(&row[column])).max().unwrap_or_default()
    };
    let widths: [usize; 5] = std::array::from_fn(widest);
    let line = |row: &[String; 5]| {
        let cell = |column: usize| {
            let gap = " ".repeat(widths[column] - width(&row[column]));
            // Labels and verdicts are aligned left, figures right.
            if matches!(column, 0 | 4) { format!("  {}{gap}", row[column]) } else { format!("  {gap}{}", row[column]) }
        };
        (0..5).map(cell).collect::<String>().trim_end().to_owned()
    };
    let fits = 2 * widths.len() + widths.iter().sum::<usize>() <= style.width;
    let below = |[statistic, asked, with, gain, verdict]: &[String; 5]| {
        vec![format!("  {statistic}  {asked} → {with}"), format!("    gain {gain}"), format!("    {verdict}")]
    };
    let mut lines = if fits { vec![style.quiet(&line(&head))] } else { Vec::new() };
    for (one, rows) in gains.iter().zip(&rows) {
        lines.push(style.strong(&one.remedy));
        lines.extend(rows.iter().flat_map(|row| if fits { vec![line(row)] } else { below(row) }));
    }
    lines
}

fn cells(gain: &Gain) -> [String; 5] {
    // One unit for the whole row.
    let unit = TimeUnit::suiting(gain.asked_ns.unwrap_or_default().max(gain.with_ns.unwrap_or_default()));
    let figure = |ns: Option<f64>| ns.map_or_else(|| ABSENT.into(), |ns| unit.figure(ns));
    let time =
        |ns: Option<f64>| ns.map_or_else(|| ABSENT.into(), |ns| format!("{} {}", unit.figure(ns), unit.symbol()));
    let interval = format!("[{}, {}]", figure(gain.low_ns), figure(gain.high_ns));
    [
        gain.statistic.clone(),
        time(gain.asked_ns),
        time(gain.with_ns),
        format!("{} {interval}", time(gain.gain_ns)),
        gain.verdict.word().into(),
    ]
}

#[derive(Serialize)]
struct RemediesDocument<'a> {
    schema: &'static str,
    condition: &'a Condition,
    runs: usize,
    blocks: u32,
    confidence: f64,
    remedies: Vec<RemedyDocument<'a>>,
    recordings: &'a [String],
    caveats: &'a [Caveat],
}

#[derive(Serialize)]
struct RemedyDocument<'a> {
    remedy: &'a str,
    tried: bool,
    reason: Option<&'a str>,
    gains: Vec<GainDocument<'a>>,
}

#[derive(Serialize)]
struct GainDocument<'a> {
    metric: &'static str,
    statistic: &'a str,
    unit: &'static str,
    as_asked: Option<f64>,
    with_remedy: Option<f64>,
    gain: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: &'static str,
    adjusted_p_value: Option<f64>,
    runs_needed: Option<u32>,
}

pub fn json(view: &RemediesView<'_>) -> String {
    let tried = view.gains.iter().map(|one| RemedyDocument {
        remedy: &one.remedy,
        tried: true,
        reason: None,
        gains: one.gains.iter().map(GainDocument::of).collect(),
    });
    let untried = view.untried.iter().map(|one| RemedyDocument {
        remedy: &one.remedy,
        tried: false,
        reason: Some(&one.reason),
        gains: Vec::new(),
    });
    pretty(&RemediesDocument {
        schema: "latlab.remedies/1",
        condition: view.condition,
        runs: view.runs,
        blocks: view.blocks,
        confidence: view.confidence,
        remedies: tried.chain(untried).collect(),
        recordings: &view.recordings,
        caveats: view.caveats,
    })
}

impl<'a> GainDocument<'a> {
    fn of(gain: &'a Gain) -> GainDocument<'a> {
        GainDocument {
            metric: "wakeup_latency",
            statistic: &gain.statistic,
            unit: "ns",
            as_asked: gain.asked_ns,
            with_remedy: gain.with_ns,
            gain: gain.gain_ns,
            low: gain.low_ns,
            high: gain.high_ns,
            verdict: gain.verdict.word(),
            adjusted_p_value: gain.adjusted_p_value,
            runs_needed: gain.runs_needed,
        }
    }
}
