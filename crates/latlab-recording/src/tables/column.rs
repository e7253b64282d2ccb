//! A column of a table: its type on disk, and its values in memory.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::Result;
use parquet::schema::types::Type;

/// The type of a column on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// INT64: nanoseconds, counters.
    I64,
    /// INT64 with the logical type of 64 bits without a sign.
    U64,
    /// INT32.
    I32,
    /// INT32 with the logical type of 32 bits without a sign.
    U32,
    /// INT32 with the logical type of 16 bits without a sign.
    U16,
    /// BYTE_ARRAY of UTF-8: one of a few words.
    Word,
    Flag,
}

impl ColumnType {
    pub(super) const fn physical(self) -> PhysicalType {
        match self {
            ColumnType::I64 | ColumnType::U64 => PhysicalType::INT64,
            ColumnType::I32 | ColumnType::U32 | ColumnType::U16 => PhysicalType::INT32,
            ColumnType::Word => PhysicalType::BYTE_ARRAY,
            ColumnType::Flag => PhysicalType::BOOLEAN,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        match self {
            ColumnType::I64 | ColumnType::I32 | ColumnType::Flag => None,
            ColumnType::U64 => Some(LogicalType::integer(64, false)),
            ColumnType::U32 => Some(LogicalType::integer(32, false)),
            ColumnType::U16 => Some(LogicalType::integer(16, false)),
            ColumnType::Word => Some(LogicalType::String),
        }
    }
}

/// A column of a table on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    pub name: &'static str,
    pub column_type: ColumnType,
    pub nullable: bool,
    /// Whether a log of another tool may lack it, so that it is nullable in an imported table.
    pub null_in_imports: bool,
}

impl ColumnSpec {
    pub(super) const fn required(name: &'static str, column_type: ColumnType) -> ColumnSpec {
        ColumnSpec { name, column_type, nullable: false, null_in_imports: false }
    }

    pub(super) const fn nullable(name: &'static str, column_type: ColumnType) -> ColumnSpec {
        ColumnSpec { name, column_type, nullable: true, null_in_imports: false }
    }

    /// A column that is required in a table that latlab measured, and nullable in an imported one.
    pub(super) const fn measured(name: &'static str, column_type: ColumnType) -> ColumnSpec {
        ColumnSpec { name, column_type, nullable: false, null_in_imports: true }
    }

    /// The column in an imported table.
    pub(super) const fn imported(self) -> ColumnSpec {
        ColumnSpec { nullable: self.nullable || self.null_in_imports, ..self }
    }

    fn field(&self) -> Result<Type> {
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, self.column_type.physical())
            .with_repetition(repetition)
            .with_logical_type(self.column_type.logical())
            .build()
    }
}

/// The schema of a table whose rows are called `row`.
pub(super) fn schema(row: &str, columns: &[ColumnSpec]) -> Result<Arc<Type>> {
    let fields = columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder(row).with_fields(fields).build()?))
}

/// Values of a column that holds one of a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordColumn<T> {
    /// Every row holds this one.
    All(T),
    /// One per row; empty if the column was not read.
    Each(Vec<T>),
}

impl<T> Default for WordColumn<T> {
    fn default() -> Self {
        WordColumn::Each(Vec::new())
    }
}

impl<T: Copy> WordColumn<T> {
    /// The word in `row`.
    ///
    /// # Panics
    /// If the column was not read or has no such row.
    #[inline]
    pub fn get(&self, row: usize) -> T {
        match self {
            WordColumn::All(word) => *word,
            WordColumn::Each(words) => words[row],
        }
    }
}

impl<T: Copy + PartialEq> FromIterator<T> for WordColumn<T> {
    fn from_iter<I: IntoIterator<Item = T>>(words: I) -> Self {
        let words: Vec<T> = words.into_iter().collect();
        match words.first() {
            Some(first) if words.iter().all(|word| word == first) => WordColumn::All(*first),
            _ => WordColumn::Each(words),
        }
    }
}

/// Values of a column of numbers, whatever their width on disk; empty if the column was not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntColumn {
    /// One per row; 0 where the row holds null. `seq` is unsigned: `values[row] as u64`.
    pub values: Vec<i64>,
    /// Whether the row holds a value; `None` if every row does.
    pub present: Option<Vec<bool>>,
}

impl IntColumn {
    /// A column of `rows` nulls.
    pub fn nulls(rows: usize) -> IntColumn {
        IntColumn { values: vec![0; rows], present: Some(vec![false; rows]) }
    }

    /// The value in `row`, `None` if it is null.
    ///
    /// # Panics
    /// If the column was not read or has no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        let value = self.values[row];
        self.present.as_ref().is_none_or(|present| present[row]).then_some(value)
    }

    fn push(&mut self, value: Option<i64>) {
        if value.is_none() && self.present.is_none() {
            self.present = Some(vec![true; self.values.len()]);
        }
        if let Some(present) = &mut self.present {
            present.push(value.is_some());
        }
        self.values.push(value.unwrap_or(0));
    }

    /// Columns from rows of `N` values.
    pub(super) fn transposed<const N: usize>(rows: impl Iterator<Item = [Option<i64>; N]>) -> Vec<IntColumn> {
        let mut columns = vec![IntColumn::default(); N];
        for row in rows {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        columns
    }
}

impl FromIterator<Option<i64>> for IntColumn {
    fn from_iter<I: IntoIterator<Item = Option<i64>>>(values: I) -> Self {
        let values = values.into_iter();
        let mut column = IntColumn { values: Vec::with_capacity(values.size_hint().0), present: None };
        values.for_each(|value| column.push(value));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_differs_from_zero() {
        let column: IntColumn = [Some(0), None, Some(7)].into_iter().collect();
        assert_eq!((column.get(0), column.get(1), column.get(2)), (Some(0), None, Some(7)));
        let full: IntColumn = [Some(1), Some(2)].into_iter().collect();
        assert_eq!(full, IntColumn { values: vec![1, 2], present: None });
        assert_eq!(IntColumn::nulls(1).get(0), None);
    }

    #[test]
    fn rows_transpose_into_columns() {
        let columns = IntColumn::transposed([[Some(1), None], [Some(2), Some(3)]].into_iter());
        assert_eq!(columns, [[Some(1), Some(2)], [None, Some(3)]].map(IntColumn::from_iter));
    }

    #[test]
    fn equal_words_become_one() {
        assert_eq!([3, 3].into_iter().collect::<WordColumn<_>>(), WordColumn::All(3));
        assert_eq!([3, 4].into_iter().collect::<WordColumn<_>>(), WordColumn::Each(vec![3, 4]));
        assert_eq!([0u8; 0].into_iter().collect::<WordColumn<_>>(), WordColumn::default());
    }
}
