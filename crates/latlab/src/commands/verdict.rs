//! From recordings to what is printed and how the command ends: the same for a run just made and an old one.

use crate::analysis::{Summary, SummaryOptions, summarise};
use crate::console::{Console, Verbosity};
use crate::diagnostics::Failure;
use crate::diagnostics::{Caveat, Severity};
use crate::metric::Metric;
use crate::recording::Recording;
use crate::report::view::{ReportView, Showing};
use crate::report::{Style, json, text};

/// The metrics to describe: all of them for a document, those that are shown for a person.
pub(super) fn metrics(all: bool) -> Vec<Metric> {
    if all { Metric::PING.to_vec() } else { Metric::USUAL.to_vec() }
}

/// Summarises `recording` as `wishes` says.
pub(super) fn summary_of(recording: &Recording, wishes: &SummaryOptions) -> Result<Summary, Failure> {
    Ok(summarise(recording, wishes)?)
}

/// Prints `summaries`, as one JSON document or as text.
pub(super) fn show(summaries: &[Summary], showing: Showing, as_json: bool, console: &Console) -> Result<(), Failure> {
    if summaries.is_empty() {
        return Ok(());
    }
    if as_json {
        tell(summaries, console);
        return console.data(&json::render(summaries, showing));
    }
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    console.data(&text::render(&ReportView::of(summaries, showing), style))
}

/// What a person who keeps the document in a file must know: warnings on stderr, of several runs with the one they are
/// about. The document holds them as well, so that quiet is quiet.
fn tell(summaries: &[Summary], console: &Console) {
    let serious = |caveat: &&Caveat| caveat.severity != Severity::Note;
    for summary in summaries.iter().filter(|_| console.verbosity() > Verbosity::Quiet) {
        for caveat in summary.caveats.iter().filter(serious) {
            let message = match summaries {
                [_] => caveat.message.clone(),
                _ => format!("`{}`: {}", summary.recording, caveat.message),
            };
            console.caveat(&Caveat { message, ..caveat.clone() });
        }
    }
}
