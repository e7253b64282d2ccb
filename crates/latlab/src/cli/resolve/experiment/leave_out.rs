//! `[[leave-out]]`: combinations of factors that are no condition.

use toml::Spanned;
use toml::de::DeValue;

use super::contrasts::chosen;
use super::options::{Factor, Setting};
use super::page::{FileError, Page};
use crate::plan::Factors;

/// Values that are not measured together.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Vec<Factors>);

impl LeftOut {
    /// Those that the file names.
    pub(super) fn read(
        page: Page<'_>,
        rows: Option<&Spanned<DeValue<'_>>>,
        factors: &[Factor],
    ) -> Result<LeftOut, FileError> {
        let tables = rows.map(|rows| page.list(rows, "leave-out")).transpose()?.unwrap_or_default();
        let one = |(table, at)| {
            let values = chosen(page, table, factors)?;
            match values.is_empty() {
                true => Err(page.refuse(at, "this leaves out every condition", "name the factors that must not meet")),
                false => Ok(values),
            }
        };
        tables.into_iter().map(one).collect::<Result<_, _>>().map(LeftOut)
    }

    /// Whether the combination `values` is no condition.
    pub(super) fn holds(&self, values: &[&Setting]) -> bool {
        let has = |(key, text): (&String, &String)| values.iter().any(|one| one.key == *key && one.text == *text);
        self.0.iter().any(|left_out| left_out.iter().all(has))
    }
}
