//! One HTML file: question, verdict, tables, plots, caveats, conditions, methods, and how to reproduce them. The file
//! needs neither a network nor scripts. Its content security policy forbids every request and every script but the one
//! of latlab: texts of recordings may have been written by others.

mod tables;
mod words;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figure::{self, Figure};
use super::view::{CaveatView, Part, RemarkView, TextBlock};
use crate::diagnostics::Severity;
use words::{MOST_PARTS, block, first, omitted, plain, words};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of [`SCRIPT`] in base64; `scripts/report_page.py` prints it where it differs.
const SCRIPT_HASH: &str = "noSoeAOsg2eXtxMiOpLCP+Z79nlz9bfAhFztViDqLgI=";

/// What the head of every page has.
pub const GENERATOR: &str = r#"<meta name="generator" content="latlab">"#;

/// The most caveats and lines of a list.
const MOST_NOTES: usize = 200;

/// Content of a page. Sections without content are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageView {
    /// Title of the page: kind of measurement and path.
    pub title: String,
    /// What was asked, in one sentence.
    pub question: String,
    /// What was found, in one sentence.
    pub verdict: String,
    pub gates: Vec<String>,
    pub sections: Vec<PageSection>,
    /// Version of latlab and UTC time of the recordings; not the time of rendering, so that the same recordings give the same
    /// page.
    pub made: String,
}

/// A part of the page with a heading and an entry in the list of contents.
#[derive(Clone, Debug, PartialEq)]
pub struct PageSection {
    pub id: &'static str,
    pub title: &'static str,
    pub parts: Vec<Part>,
}

/// Renders a page. The same view gives the same bytes.
pub fn page(view: &PageView) -> String {
    let bodies = view.sections.iter().map(|section| (section, parts(&section.parts)));
    let sections: Vec<(&PageSection, Markup)> = bodies.filter(|(_, body)| !body.0.is_empty()).collect();
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
                        @for (section, _) in &sections { li { a href={ "#" (section.id) } { (section.title) } } }
                    } }
                    @for (section, body) in &sections {
                        section id=(section.id) aria-labelledby={ (section.id) "-heading" } {
                            h2 id={ (section.id) "-heading" } { (section.title) }
                            (body)
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
    let caveats = view.sections.iter().flat_map(|section| &section.parts).find_map(|part| match part {
        Part::Caveats(caveats) => Some(caveats.as_slice()),
        _ => None,
    });
    let numbered = caveats.unwrap_or_default().iter().take(MOST_NOTES).zip(1..);
    let serious: Vec<usize> =
        numbered.filter(|(caveat, _)| caveat.severity > Severity::Note).map(|(_, number)| number).take(9).collect();
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
                ul.gates { (first(&view.gates, MOST_NOTES, "gates", |gate| html! { li { (words(gate)) } })) }
            }
        }
    }
}

/// The first parts of a section.
fn parts(parts: &[Part]) -> Markup {
    let figures = || parts.iter().filter_map(|part| if let Part::Figure(figure) = part { Some(figure) } else { None });
    html! {
        @for part in parts.iter().take(MOST_PARTS) {
            @match part {
                Part::Heading(heading) => { @if !heading.is_empty() { h3 { (words(heading)) } } }
                Part::Notes(notes) => (first(notes, MOST_NOTES, "notes", |note| html! { p.note { (words(note)) } })),
                Part::Table(table) => (tables::table(table)),
                Part::Text(block) => (text(block)),
                // A page has it as a figure.
                Part::Histogram(_) => {}
                Part::Figure(figure) => {
                    (plot(figure, figures().take_while(|other| !std::ptr::eq(*other, figure)).filter(|other| other.name == figure.name).count()))
                }
                Part::Remarks(rows) => (remarks(rows)),
                Part::Caveats(caveats) => (footnotes(caveats)),
                Part::Recordings { paths, .. } => {
                    ul.recordings { (first(paths, MOST_NOTES, "recordings", |path| html! { li { code { (plain(path)) } } })) }
                }
                Part::Details(title, inner) => { details { summary { (words(title)) } (self::parts(inner)) } }
            }
        }
        (omitted(parts.len(), MOST_PARTS, "parts"))
    }
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

/// A plot with its caption and the values behind it, behind so many plots of the same name.
fn plot(figure: &Figure, before: usize) -> Markup {
    let number = if before == 0 { String::new() } else { format!("-{}", before + 1) };
    html! {
        figure.plot id={ "figure-" (figure.name) (number) } data-figure=(figure.name) {
            h3 { (words(&figure.title)) }
            (figure::svg::inline(figure))
            figcaption { (words(&figure.caption)) }
            details.values { summary { "Values" } (tables::behind_plot(figure)) }
        }
    }
}

fn footnotes(caveats: &[CaveatView]) -> Markup {
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
    let row = |row: &RemarkView| html! { div { dt { (words(&row.label)) } dd { (words(&row.text)) } } };
    html! { @if !rows.is_empty() { dl { (first(rows, MOST_NOTES, "lines", row)) } } }
}

#[cfg(test)]
mod tests;
