//! What happens on the way, told to whoever watches.

use std::collections::BTreeSet;

use crate::console::Console;
use crate::experiment::ExperimentEvent;
use crate::plan::condition_words;

/// Who hears of it: a reason that is told once is told.
#[derive(Debug, Default)]
pub(super) struct ExperimentObserver {
    reasons: BTreeSet<String>,
}

impl ExperimentObserver {
    pub(super) fn hear(&mut self, news: &ExperimentEvent<'_>, console: &Console) {
        match news {
            ExperimentEvent::Dropped(factors, reason) if !self.reasons.insert((*reason).to_owned()) => {
                console.detail(&format!("`{}` is left out as well: {reason}", condition_words(factors)));
            }
            news => tell(news, console),
        }
    }
}

impl ExperimentObserver {
    /// The statistic that the rule of width is about fell among the lost.
    pub(super) fn hear_of_lost(&mut self, console: &Console) {
        let message = "the statistic of `runs` fell among the lost in a run: its interval cannot become narrow";
        if self.reasons.insert(message.into()) {
            console.warning(message, Some("`max-runs` ends it; a lower quantile has a width"));
        }
    }
}

fn tell(news: &ExperimentEvent<'_>, console: &Console) {
    match news {
        ExperimentEvent::Block(block) => console.detail(&format!("block {block} begins")),
        ExperimentEvent::Dropped(factors, reason) => {
            console.warning(&format!("`{}` is left out: {reason}", condition_words(factors)), None);
        }
        ExperimentEvent::Failed(due, reason) => {
            let words = condition_words(&due.key.factors);
            console.warning(&format!("a run of `{words}` failed: {reason}"), None);
        }
        ExperimentEvent::Widths(block, narrow) => {
            let words = if *narrow { "narrow enough" } else { "not narrow enough yet" };
            console.note(&format!("after block {block} the intervals are {words}"));
        }
    }
}
