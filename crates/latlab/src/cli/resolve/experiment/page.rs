//! The text of an experiment's file: values with their places, so that a refusal can name the line.

use std::ops::Range;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::units::human::suggestion;

/// A file that cannot be used: where, why, what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot use line {line} of `{file}`")]
pub struct FileError {
    /// The file, as named.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What is wrong there.
    pub cause: String,
    /// What would be right.
    pub hint: Option<String>,
}

impl FileError {
    /// What is wrong there.
    pub fn cause(&self) -> Option<String> {
        Some(self.cause.clone())
    }

    /// What would be right.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }

    /// The request is wrong.
    pub const fn exit_code(&self) -> u8 {
        2
    }
}

/// The text, for whoever has to say where something stands in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileText<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

/// A key with its value, both with their places.
pub(super) type FileKey<'t, 'i> = (&'t str, Range<usize>, &'t Spanned<DeValue<'i>>);

impl<'a> FileText<'a> {
    /// Reads the text as TOML.
    pub(super) fn table(self) -> Result<DeTable<'a>, FileError> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| {
            let at = error.span().unwrap_or_default().start;
            self.refuse(
                at,
                format!("it is no TOML: {}", error.message()),
                "docs/experiments.md has an example of every key",
            )
        })
    }

    /// The tables of the list `section`, each with its place.
    pub(super) fn list<'t, 'i>(
        self,
        value: &'t Spanned<DeValue<'i>>,
        section: &str,
    ) -> Result<Vec<(&'t DeTable<'i>, usize)>, FileError> {
        let table = |row: &'t Spanned<DeValue<'i>>| Some((row.get_ref().as_table()?, row.span().start));
        let tables = value.get_ref().as_array().and_then(|rows| rows.iter().map(table).collect());
        tables.ok_or_else(|| {
            let hint = format!("write `[[{section}]]` above it");
            self.refuse(value.span().start, format!("`{section}` is no list of tables"), hint)
        })
    }

    /// What is wrong at the byte `at`, and what would be right.
    pub(super) fn refuse(self, at: usize, cause: impl Into<String>, hint: impl Into<String>) -> FileError {
        FileError { file: self.file.into(), line: self.line(at), cause: cause.into(), hint: Some(hint.into()) }
    }

    /// The line of the byte `at`, from 1.
    pub(super) fn line(self, at: usize) -> usize {
        1 + self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
    }

    /// A key that `section` has not.
    pub(super) fn unknown(self, key: &str, at: usize, section: &str, known: &[&str]) -> FileError {
        let place = if section.is_empty() { "outside of any table".into() } else { format!("in `[{section}]`") };
        self.refuse(at, format!("there is no key `{key}` {place}"), suggestion(key, known))
    }
}

/// What stands in `table`, in the order of the text.
pub(super) fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<FileKey<'t, 'i>> {
    let mut entries: Vec<_> = table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value)).collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    entries
}

/// A string or a number, as it would be typed; none of anything else.
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
