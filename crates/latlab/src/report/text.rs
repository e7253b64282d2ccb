//! The view as text, in 80 columns, the same with and without colour.

use super::paint::{Style, width, wrap};
use super::view::{CaveatView, ReportView};
use super::{histogram, table};
use crate::diagnostics::Severity;

/// Columns of the labels of remarks.
const LABEL: usize = 13;

/// The whole report, ending in a newline.
pub fn render(view: &ReportView, style: Style) -> String {
    let mut sections: Vec<Vec<String>> = vec![wrap(&view.heading, style.width)];
    sections.extend(view.tables.iter().map(|each| table::draw(each, style)));
    sections.push(view.alike.clone());
    sections.extend(view.histogram.iter().map(|each| histogram::draw(each, style)));
    let mut closing: Vec<String> = Vec::new();
    closing.extend(view.remarks.iter().flat_map(|remark| labelled(&remark.label, "", &remark.text, style)));
    closing.extend(view.caveats.iter().flat_map(|caveat| caveat_lines(caveat, style)));
    let recordings = view.recordings.iter().enumerate();
    closing.extend(recordings.map(|(number, path)| {
        let label = if number > 0 { "" } else { "recording" };
        format!("{}{path}", style.quiet(&format!("{label:<LABEL$}")))
    }));
    sections.push(closing);
    let sections = sections.into_iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// `label        mark  text`, the text wrapped under itself.
fn labelled(label: &str, mark: &str, text: &str, style: Style) -> Vec<String> {
    let mark_width = if mark.is_empty() { 0 } else { width(mark) + 2 };
    let lines = wrap(text, style.width.saturating_sub(LABEL + mark_width).max(20));
    let numbered = lines.iter().enumerate().map(|(number, line)| {
        let first = number == 0;
        let label = format!("{:<LABEL$}", if first { label } else { "" });
        let mark = format!("{:<mark_width$}", if first { mark } else { "" });
        format!("{}{mark}{line}", style.quiet(&label))
    });
    numbered.collect()
}

/// A caveat: what was seen, what it does to the figures, what to do.
pub(super) fn caveat_lines(caveat: &CaveatView, style: Style) -> Vec<String> {
    let label = if caveat.number == 1 { "caveats" } else { "" };
    let number = caveat.number.to_string();
    let (word, painted) = match caveat.severity {
        Severity::Note => ("", String::new()),
        Severity::Warning => ("warning: ", style.warn("warning:") + " "),
        Severity::Fatal => ("fatal: ", style.alarm("fatal:") + " "),
    };
    let mut lines = labelled(label, &number, &format!("{word}{}", caveat.message), style);
    if let Some(first) = lines.first_mut().filter(|_| !word.is_empty()) {
        *first = first.replacen(word, &painted, 1);
    }
    let mark = " ".repeat(width(&number));
    // a note's effect is small: what to do says enough
    let effect = (caveat.severity > Severity::Note).then_some(("effect", &caveat.effect));
    for (word, text) in effect.into_iter().chain([("hint", &caveat.hint)]) {
        lines.extend(labelled("", &mark, &format!("{word}: {text}"), style));
    }
    lines
}
