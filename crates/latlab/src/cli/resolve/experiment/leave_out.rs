//! `[[leave-out]]`: combinations of factors that are no condition.

use toml::Spanned;
use toml::de::DeValue;

use super::contrasts::chosen;
use super::options::{Factor, OptionValue};
use super::page::{FileError, FileText};
use crate::plan::Factors;

/// Values that are not measured together.
#[derive(Debug, Default)]
pub(super) struct ConditionFilter(Vec<Factors>);

impl ConditionFilter {
    /// Those that the file names.
    pub(super) fn read(
        page: FileText<'_>,
        rows: Option<&Spanned<DeValue<'_>>>,
        factors: &[Factor],
    ) -> Result<ConditionFilter, FileError> {
        let tables = rows.map(|rows| page.list(rows, "leave-out")).transpose()?.unwrap_or_default();
        let one = |(table, at)| {
            let values = chosen(page, table, factors)?;
            match values.is_empty() {
                true => Err(page.refuse(at, "this leaves out every condition", "name the factors that must not meet")),
                false => Ok(values),
            }
        };
        tables.into_iter().map(one).collect::<Result<_, _>>().map(ConditionFilter)
    }

    /// Whether the combination `values` is no condition.
    pub(super) fn holds(&self, values: &[&OptionValue]) -> bool {
        let has = |(key, text): (&String, &String)| values.iter().any(|one| one.key == *key && one.text == *text);
        self.0.iter().any(|left_out| left_out.iter().all(has))
    }
}
