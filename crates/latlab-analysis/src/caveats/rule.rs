//! The form of the tables of caveats.

use crate::diagnostics::{Caveat, Severity};

/// What the rules of one table are about: a run, one of its ends, a load, a comparison.
pub(crate) trait Topic: 'static {
    type Of<'a>;
}

/// A row of a table: one cause of a caveat. Several rows may have the same code.
pub(crate) struct Rule<S: Topic> {
    pub(crate) code: &'static str,
    /// The severity, and the message with its numbers; `None` if the cause is not there.
    pub(crate) raise: fn(&S::Of<'_>) -> Option<(Severity, String)>,
    pub(crate) effect: &'static str,
    /// What to do about it.
    pub(crate) hint: fn(&S::Of<'_>) -> String,
}

/// The caveats that `rules` raise about `of`, in the order of the rules.
pub(crate) fn raised<S: Topic>(rules: &[Rule<S>], of: &S::Of<'_>) -> Vec<Caveat> {
    let caveat = |rule: &Rule<S>| {
        let (severity, message) = (rule.raise)(of)?;
        Some(Caveat::new(severity, rule.code, message, rule.effect, (rule.hint)(of)))
    };
    rules.iter().filter_map(caveat).collect()
}
