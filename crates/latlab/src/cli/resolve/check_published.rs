//! Resolution of `latlab check-published`.

use super::compare::text_column;
use crate::cli::args::CheckPublishedArgs;
use crate::cli::value::unusable;
use crate::diagnostics::Failure;
use crate::formats::import::LogFormat;
use crate::formats::numbers::TextColumn;

/// The resolved `latlab check-published`. Claims are kept as typed; the analysis parses them.
#[derive(Clone, Debug)]
pub struct CheckPublishedJob {
    pub typed: CheckPublishedArgs,
    /// Column of the numbers of a file.
    pub column: TextColumn,
    /// The format of a log; `None` to find it by the content.
    pub from: Option<&'static LogFormat>,
    /// The direction of an fio log.
    pub direction: Option<String>,
    /// Column of the packet ids in a file of numbers.
    pub id_column: Option<TextColumn>,
}

impl CheckPublishedJob {
    /// Whether the columns of a file of numbers are stated, so that it is not read as a log.
    pub fn is_table(&self) -> bool {
        let column = &self.typed.column;
        column.column.is_some() || column.delimiters.is_some() || self.id_column.is_some()
    }
}

/// Resolves the arguments and checks them against each other.
pub fn check_published(typed: &CheckPublishedArgs) -> Result<CheckPublishedJob, Failure> {
    let column = text_column(&typed.column);
    Ok(CheckPublishedJob {
        typed: typed.clone(),
        from: typed.sample.from.as_deref().map(super::import::format).transpose()?,
        direction: typed.sample.direction.as_deref().map(super::import::direction).transpose()?,
        id_column: id_column(typed, &column)?,
        column,
    })
}

fn id_column(typed: &CheckPublishedArgs, column: &TextColumn) -> Result<Option<TextColumn>, Failure> {
    let Some(number) = typed.sample.id_column else { return Ok(None) };
    if typed.path.as_os_str() == "-" {
        let cause = "standard input can be read once, and the ids would need a second reading";
        return Err(unusable("--id-column", number, cause, "name the file"));
    }
    Ok(Some(TextColumn { number, ..column.clone() }))
}
