//! One HTML file: question, verdict, tables, plots, caveats, conditions, methods, and how to reproduce them. The file
//! needs neither a network nor scripts. Its content security policy forbids every request and every script but the one
//! of latlab: texts of recordings may have been written by others.

mod tables;
mod words;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::comparison::ComparisonView;
use super::figure::{self, Figure};
use super::view::{CaveatView, RemarkView, TableView};
use crate::diagnostics::Severity;
use words::{MOST_PARTS, block, first, omitted, plain, words};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of [`SCRIPT`] in base64; `scripts/report_page.py` prints it where it differs.
const SCRIPT_HASH: &str = "JX478EjhD0GXv21gpsAUYhvsJUhgkibcEBxTgCX1KKw=";

/// What the head of every page has.
pub const GENERATOR: &str = r#"<meta name="generator" content="latlab">"#;

/// The most caveats and gates.
const MOST_NOTES: usize = 200;

/// Content of a page. Sections without content are left out. Texts may hold `code` between grave accents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageView {
    /// Title of the page: kind of measurement and path.
    pub title: String,
    /// What was asked, in one sentence.
    pub question: String,
    /// What was found, in one sentence.
    pub verdict: String,
    pub gates: Vec<String>,
    /// Tables of figures, most important first: published figures beside measured ones, then conditions or runs.
    pub tables: Vec<TableView>,
    /// Tables with a row for each run, which the reader opens, where [`PageView::tables`] have one for each condition.
    pub every_run: Vec<TableView>,
    /// Results as text of fixed width.
    pub texts: Vec<TextBlock>,
    /// Comparisons of conditions. Their caveats are shown with [`PageView::caveats`], each once.
    pub comparisons: Vec<ComparisonView>,
    /// The metric of the tables, if the comparisons are of another one; else empty.
    pub metric_of_tables: String,
    pub metric_of_plots: String,
    /// Plots in order of display.
    pub figures: Vec<Figure>,
    /// The reason why plots of delays are missing; empty if there are some.
    pub without_plots: String,
    /// Caveats, those that spoil the figures most first.
    pub caveats: Vec<CaveatView>,
    /// Conditions of the measurement: path, schedule, instrument.
    pub remarks: Vec<RemarkView>,
    pub hosts: Vec<HostFactsView>,
    pub loads: Vec<TableView>,
    /// How figures, intervals and verdicts were computed, a paragraph each.
    pub methods: Vec<String>,
    /// Experiment file, command lines and versions.
    pub reproduce: Vec<TextBlock>,
    pub recordings: Vec<String>,
    /// Version of latlab and UTC time of the recordings; not the time of rendering, so that the same recordings give the same
    /// page.
    pub made: String,
}

/// A titled text of fixed width, whose lines are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextBlock {
    pub title: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFactsView {
    pub name: String,
    /// Facts in order of display.
    pub rows: Vec<RemarkView>,
}

/// A part of the page with a heading and an entry in the list of contents.
struct PageSection {
    id: &'static str,
    title: &'static str,
    body: Markup,
}

/// Renders a page. The same view gives the same bytes.
pub fn page(view: &PageView) -> String {
    let sections = sections(view);
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                (PreEscaped(GENERATOR))
                title { (plain(&view.title)) }
                style { (PreEscaped(figure::svg::css())) (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                main id="content" {
                    (head(view))
                    nav aria-label="contents" { ol {
                        @for section in &sections { li { a href={ "#" (section.id) } { (section.title) } } }
                    } }
                    @for section in &sections {
                        section id=(section.id) aria-labelledby={ (section.id) "-heading" } {
                            h2 id={ (section.id) "-heading" } { (section.title) }
                            (section.body)
                        }
                    }
                }
                @if !view.made.is_empty() { footer { p { (words(&view.made)) } } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Title, question, verdict with the numbers of the caveats that spoil it, and gates.
fn head(view: &PageView) -> Markup {
    let caveats = caveats(view);
    let serious = caveats
        .iter()
        .take(MOST_NOTES)
        .zip(1..)
        .filter(|(caveat, _)| caveat.severity > Severity::Note)
        .map(|(_, number)| number);
    let serious: Vec<usize> = serious.take(9).collect();
    html! {
        header {
            h1 { (words(&view.title)) }
            @if !view.question.is_empty() { p.question { (words(&view.question)) } }
            @if !view.verdict.is_empty() {
                p.verdict {
                    strong { (words(&view.verdict)) }
                    @for number in serious {
                        " " sup { a href={ "#caveat-" (number) } aria-label={ "caveat " (number) } { (number) } }
                    }
                }
            }
            @if !view.gates.is_empty() {
                ul.gates { @for gate in view.gates.iter().take(MOST_NOTES) { li { (words(gate)) } } }
                (omitted(view.gates.len(), MOST_NOTES, "gates"))
            }
        }
    }
}

/// The parts that have content, in their order.
fn sections(view: &PageView) -> Vec<PageSection> {
    let results = html! {
        @if !view.metric_of_tables.is_empty() { p.note { (words(&view.metric_of_tables)) } }
        (tables::several(&view.tables))
        @if !view.every_run.is_empty() {
            details { summary { "Every run" } (tables::several(&view.every_run)) }
        }
        (first(&view.texts, "texts", text))
    };
    let conditions = html! {
        (remarks(&view.remarks))
        (hosts(&view.hosts))
        (tables::several(&view.loads))
    };
    let methods = first(&view.methods, "paragraphs", |paragraph| html! { p { (words(paragraph)) } });
    let sections = [
        PageSection { id: "results", title: "Results", body: results },
        PageSection {
            id: "comparison",
            title: "Comparison",
            body: first(&view.comparisons, "comparisons", tables::comparison),
        },
        PageSection { id: "plots", title: "Plots", body: plots(view) },
        PageSection { id: "caveats", title: "Caveats", body: footnotes(&caveats(view)) },
        PageSection { id: "conditions", title: "Conditions and hosts", body: conditions },
        PageSection { id: "methods", title: "Methods", body: methods },
        PageSection { id: "reproduce", title: "How to reproduce", body: reproduce(view) },
    ];
    sections.into_iter().filter(|section| !section.body.0.is_empty()).collect()
}

/// A text of fixed width, which scrolls in its own box.
fn text(part: &TextBlock) -> Markup {
    html! {
        section.text {
            @if !part.title.is_empty() { h3 { (words(&part.title)) } }
            (tables::boxed(&part.title, html! { pre { (block(&part.text)) } }))
        }
    }
}

/// Plots with their captions and the values behind them, and why some are missing.
fn plots(view: &PageView) -> Markup {
    let figures: &[Figure] = &view.figures;
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    let mut id = |name: &'_ str| {
        let count = named.entry(name.to_owned()).or_default();
        *count += 1;
        if *count == 1 { format!("figure-{name}") } else { format!("figure-{name}-{count}") }
    };
    html! {
        @if !view.metric_of_plots.is_empty() && !figures.is_empty() { p.note { (words(&view.metric_of_plots)) } }
        @if !view.without_plots.is_empty() { p { (words(&view.without_plots)) } }
        @for figure in figures.iter().take(MOST_PARTS) {
            figure.plot id=(id(&figure.name)) data-figure=(figure.name) {
                h3 { (words(&figure.title)) }
                div.canvas { (figure::svg::inline(figure)) }
                figcaption { (words(&figure.caption)) }
                details.values { summary { "Values" } (tables::behind_plot(figure)) }
            }
        }
        (omitted(figures.len(), MOST_PARTS, "plots"))
    }
}

/// The caveats of the page and those of its comparisons, each once, most severe first.
fn caveats(view: &PageView) -> Vec<&CaveatView> {
    let mut known = HashSet::new();
    let of_comparisons = view.comparisons.iter().flat_map(|comparison| &comparison.caveats);
    let all = view.caveats.iter().chain(of_comparisons);
    let mut all: Vec<_> = all.filter(|caveat| known.insert([&caveat.message, &caveat.effect, &caveat.hint])).collect();
    all.sort_by_key(|caveat| Reverse(caveat.severity));
    all
}

fn footnotes(caveats: &[&CaveatView]) -> Markup {
    let class = |severity: Severity| match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Fatal => "fatal",
    };
    html! {
        @if !caveats.is_empty() {
            ol.caveats {
                @for (caveat, number) in caveats.iter().take(MOST_NOTES).zip(1..) {
                    li id={ "caveat-" (number) } class=(class(caveat.severity)) {
                        @if caveat.severity > Severity::Note { strong { (class(caveat.severity)) ":" } " " }
                        (words(&caveat.message))
                        @if !caveat.effect.is_empty() { div { span.label { "effect" } " " (words(&caveat.effect)) } }
                        @if !caveat.hint.is_empty() { div { span.label { "hint" } " " (words(&caveat.hint)) } }
                    }
                }
            }
            (omitted(caveats.len(), MOST_NOTES, "caveats"))
        }
    }
}

fn remarks(rows: &[RemarkView]) -> Markup {
    html! {
        @if !rows.is_empty() {
            dl {
                @for row in rows.iter().take(MOST_NOTES) {
                    div { dt { (words(&row.label)) } dd { (words(&row.text)) } }
                }
            }
            (omitted(rows.len(), MOST_NOTES, "lines"))
        }
    }
}

fn hosts(hosts: &[HostFactsView]) -> Markup {
    html! {
        @if !hosts.is_empty() {
            div.hosts {
                @for host in hosts.iter().take(MOST_PARTS) { section { h3 { (words(&host.name)) } (remarks(&host.rows)) } }
            }
            (omitted(hosts.len(), MOST_PARTS, "hosts"))
        }
    }
}

fn reproduce(view: &PageView) -> Markup {
    html! {
        (first(&view.reproduce, "texts", text))
        @if !view.recordings.is_empty() {
            h3 { "Recordings" }
            ul.recordings { @for path in view.recordings.iter().take(MOST_NOTES) { li { code { (plain(path)) } } } }
            (omitted(view.recordings.len(), MOST_NOTES, "recordings"))
        }
    }
}

#[cfg(test)]
mod tests;
