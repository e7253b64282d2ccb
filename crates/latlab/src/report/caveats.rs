//! Caveats of one or several runs, numbered once.

use super::view::{CaveatView, names};
use crate::analysis::Summary;
use crate::caveat::Caveat;

/// Every caveat once, worst first, with the runs it is about where it is not about all of them.
pub(super) fn caveats(summaries: &[Summary]) -> Vec<CaveatView> {
    let names = names(summaries);
    let mut seen: Vec<(&Caveat, Vec<&str>)> = Vec::new();
    for (summary, name) in summaries.iter().zip(&names) {
        for caveat in &summary.caveats {
            match seen.iter_mut().find(|(known, _)| *known == caveat) {
                Some((_, runs)) => runs.push(name),
                None => seen.push((caveat, vec![name])),
            }
        }
    }
    seen.sort_by_key(|(caveat, _)| std::cmp::Reverse(caveat.severity));
    let worded = seen.into_iter().zip(1..).map(|((caveat, runs), number)| {
        let whole = runs.len() == summaries.len();
        let prefix = if whole { String::new() } else { format!("{}: ", runs.join(", ")) };
        CaveatView {
            number,
            severity: caveat.severity,
            message: format!("{prefix}{}", caveat.message),
            effect: caveat.effect.clone(),
            hint: caveat.hint.clone(),
        }
    });
    worded.collect()
}
