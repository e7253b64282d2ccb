//! What an experiment's runs may measure: for each kind its command, and what that command settles to.

use toml::Spanned;
use toml::de::DeValue;

use super::page::{FileError, FileText};
use super::{Environment, KeySource};
use crate::cli::args::Command;
use crate::cli::resolve;
use crate::diagnostics::Failure;
use crate::plan::{Kind, Plan};
use crate::units::human::suggestion;

/// The kind that the file names.
pub(super) fn kind(page: FileText<'_>, value: Option<&Spanned<DeValue<'_>>>) -> Result<Kind, FileError> {
    let Some(value) = value else {
        return Err(page.refuse(0, "the experiment has no `kind`", "write `kind = \"ping\"` above all tables"));
    };
    let at = value.span().start;
    let Some(word) = value.get_ref().as_str() else {
        return Err(page.refuse(at, "`kind` is no text", "write `kind = \"ping\"`"));
    };
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.word() == word) {
        return Ok(kind);
    }
    let known = Kind::ALL.map(Kind::word);
    Err(page.refuse(at, format!("`{word}` is no kind"), suggestion(word, &known)))
}

/// The options of its command that several values make several runs of.
pub(super) const fn multiplying(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Ping => &["size", "source-port"],
        Kind::Stream => &["size"],
        Kind::Wakeup => &["interval", "via"],
    }
}

/// What a command line that was parsed settles to: its runs, and where their key comes from.
pub(super) fn settle(command: &Command, surroundings: &Environment) -> Result<(Plan, KeySource), Failure> {
    match command {
        Command::Ping(args) => {
            let job = resolve::ping(args, surroundings)?;
            Ok((job.plan, job.key))
        }
        Command::Stream(args) => {
            let job = resolve::stream(args, surroundings)?;
            Ok((job.plan, job.key))
        }
        Command::Wakeup(args) => Ok((resolve::wakeup(args, surroundings)?.plan, KeySource::None)),
        _ => Err(Failure::request("a condition is a command that measures")),
    }
}
