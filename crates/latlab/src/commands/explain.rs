//! `latlab explain REC…`: why probes were slow.

use super::Outcome;
use super::summary::recordings;
use crate::analysis::explain::explain;
use crate::cli::args::ExplainArgs;
use crate::console::{Console, Verbosity};
use crate::diagnostics::Failure;
use crate::plan::defaults::WORST_EPISODES;
use crate::recording::Recording;
use crate::report::{explain as shown, planned_heading, text};

/// Explains each of the recordings in `typed`; those of other kinds are left out, if others remain.
pub(super) fn run(typed: &ExplainArgs, console: &Console) -> Result<Outcome, Failure> {
    let (mut explanations, mut texts, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let in_full = console.verbosity() > Verbosity::Usual;
    for path in recordings(&typed.recordings, false, console)?.paths {
        let recording = Recording::open(&path)?;
        recording.note().into_iter().for_each(|note| console.note(note));
        let worst = typed.worst.map_or(WORST_EPISODES, usize::from);
        let Some(found) = explain(&recording, worst)? else {
            others.push(format!("`{}` is of `{}`", path.display(), recording.manifest().kind.word()));
            continue;
        };
        let heading = planned_heading([&recording.manifest().spec]);
        texts.push(text::render(&shown::parts(&found, &heading, in_full), console.data_style()));
        explanations.push(found);
    }
    if explanations.is_empty() {
        return Err(Failure::request(format!("cannot explain: {}", others.join(", ")))
            .because("only round trips and wake-ups have single delays to explain")
            .hint("`latlab summary` shows their figures, `latlab report` their course"));
    }
    others.iter().for_each(|other| console.note(&format!("left out: {other}")));
    match typed.json.json {
        true => console.document(&shown::json(&explanations))?,
        false => console.data(&texts.join("\n"))?,
    }
    Ok(Outcome::Done)
}
