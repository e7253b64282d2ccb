//! The text of an experiment file: TOML values with their positions, so that errors state the line.

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostics::{Explain, Failure};
use crate::units::human::{ParseError, suggestion};

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot use line {line} of `{file}`")]
pub struct FileError {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub cause: String,
    pub hint: Option<String>,
}

impl Explain for FileError {
    fn explain(&self) -> Failure {
        Failure { hint: self.hint.clone(), ..Failure::request(self).because(&self.cause) }
    }
}

/// The text with the name of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileText<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

/// A key of a table with its value.
#[derive(Clone, Copy)]
pub(super) struct Field<'a, 't, 'i> {
    pub(super) file: FileText<'a>,
    pub(super) key: &'t str,
    /// The position of the key in the text.
    pub(super) at: usize,
    pub(super) value: &'t Spanned<DeValue<'i>>,
}

/// One table of an array of tables (`[[key]]`).
pub(super) struct ListedTable<'t, 'i> {
    /// The position in the text.
    pub(super) at: usize,
    pub(super) table: &'t DeTable<'i>,
}

impl<'a> FileText<'a> {
    pub(super) fn parse(self) -> Result<DeTable<'a>, FileError> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| {
            let at = error.span().unwrap_or_default().start;
            let cause = format!("it is not valid TOML: {}", error.message());
            self.error(at, cause, "docs/experiments.md has an example of every key")
        })
    }

    /// The keys of `table`, in the order of the text.
    pub(super) fn fields<'t, 'i>(self, table: &'t DeTable<'i>) -> Vec<Field<'a, 't, 'i>> {
        let field = |(key, value): (&'t Spanned<_>, &'t Spanned<DeValue<'i>>)| {
            let name: &'t std::borrow::Cow<'i, str> = key.get_ref();
            Field { file: self, key: name.as_ref(), at: key.span().start, value }
        };
        let mut fields: Vec<_> = table.iter().map(field).collect();
        fields.sort_by_key(|field| field.at);
        fields
    }

    /// The field `key` of `table`.
    pub(super) fn field<'t, 'i>(self, table: &'t DeTable<'i>, key: &str) -> Option<Field<'a, 't, 'i>> {
        self.fields(table).into_iter().find(|field| field.key == key)
    }

    /// An error at the byte `at`.
    pub(super) fn error(self, at: usize, cause: impl Into<String>, hint: impl Into<String>) -> FileError {
        FileError { file: self.name.into(), line: self.line(at), cause: cause.into(), hint: Some(hint.into()) }
    }

    /// The line of the byte `at`, from 1.
    pub(super) fn line(self, at: usize) -> usize {
        1 + self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
    }
}

impl<'t, 'i> Field<'_, 't, 'i> {
    /// An error in the value.
    pub(super) fn error(&self, cause: impl Into<String>, hint: impl Into<String>) -> FileError {
        self.file.error(self.value.span().start, cause, hint)
    }

    pub(super) fn key_error(&self, cause: impl Into<String>, hint: impl Into<String>) -> FileError {
        self.file.error(self.at, cause, hint)
    }

    /// The error of a key that `section` does not have; the section is empty outside of any table.
    pub(super) fn unknown_key(&self, section: &str, known: &[&str]) -> FileError {
        let place = if section.is_empty() { "outside of any table".into() } else { format!("in `[{section}]`") };
        self.key_error(format!("there is no key `{}` {place}", self.key), suggestion(self.key, known))
    }

    pub(super) fn unreadable(&self, error: ParseError) -> FileError {
        self.error(format!("{error} for `{}`: {}", self.key, error.cause), error.hint.clone())
    }

    pub(super) fn text(&self) -> Result<&'t str, FileError> {
        let kind = self.value.get_ref().type_str();
        let error = || self.error(format!("`{}` is of type {kind}, not text", self.key), "put it in quotes");
        self.value.get_ref().as_str().ok_or_else(error)
    }

    pub(super) fn table(&self) -> Result<&'t DeTable<'i>, FileError> {
        let error = || self.error(format!("`{}` is not a table", self.key), format!("write `[{}]`", self.key));
        self.value.get_ref().as_table().ok_or_else(error)
    }

    pub(super) fn tables(&self) -> Result<Vec<ListedTable<'t, 'i>>, FileError> {
        let table = |row: &'t Spanned<DeValue<'i>>| {
            Some(ListedTable { table: row.get_ref().as_table()?, at: row.span().start })
        };
        let tables = self.value.get_ref().as_array().and_then(|rows| rows.iter().map(table).collect());
        let hint = || format!("write `[[{}]]` above it", self.key);
        tables.ok_or_else(|| self.error(format!("`{}` is not a list of tables", self.key), hint()))
    }
}

/// A string or a number, as it would be typed; `None` of any other type.
pub(super) fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}
