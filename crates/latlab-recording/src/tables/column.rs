//! A column of a table: its type on disk, and its values in memory.

use std::borrow::Cow;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::Result as ParquetResult;
use parquet::schema::types::Type;

use crate::facts::StreamEnd;
use crate::metric::Metric;
use crate::plan::{Side, Via};
use crate::probe::{ExecutionFate, Fate, Phase};

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
    /// BYTE_ARRAY of UTF-8.
    Word,
    Flag,
    /// DOUBLE, as the bits of the number.
    F64,
}

impl ColumnType {
    pub(super) fn in_parquet(self) -> (PhysicalType, Option<LogicalType>) {
        let unsigned = |bits| Some(LogicalType::integer(bits, false));
        match self {
            ColumnType::I64 => (PhysicalType::INT64, None),
            ColumnType::U64 => (PhysicalType::INT64, unsigned(64)),
            ColumnType::I32 => (PhysicalType::INT32, None),
            ColumnType::U32 => (PhysicalType::INT32, unsigned(32)),
            ColumnType::U16 => (PhysicalType::INT32, unsigned(16)),
            ColumnType::Word => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Flag => (PhysicalType::BOOLEAN, None),
            ColumnType::F64 => (PhysicalType::DOUBLE, None),
        }
    }
}

/// A column of a table on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    pub name: Cow<'static, str>,
    pub column_type: ColumnType,
    pub nullable: bool,
    /// Whether a log of another tool may lack it, so that it is nullable in an imported table.
    null_in_imports: bool,
}

impl ColumnSpec {
    pub fn required(name: impl Into<Cow<'static, str>>, column_type: ColumnType) -> ColumnSpec {
        ColumnSpec { name: name.into(), column_type, nullable: false, null_in_imports: false }
    }

    pub fn nullable(name: impl Into<Cow<'static, str>>, column_type: ColumnType) -> ColumnSpec {
        ColumnSpec { nullable: true, ..ColumnSpec::required(name, column_type) }
    }

    /// A column that is required in a table that latlab measured, and nullable in an imported one.
    pub(super) fn measured(name: &'static str, column_type: ColumnType) -> ColumnSpec {
        ColumnSpec { null_in_imports: true, ..ColumnSpec::required(name, column_type) }
    }

    /// The column in an imported table.
    pub(super) fn imported(self) -> ColumnSpec {
        ColumnSpec { nullable: self.nullable || self.null_in_imports, ..self }
    }

    pub(super) fn field(&self) -> ParquetResult<Type> {
        let (physical, logical) = self.column_type.in_parquet();
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }
}

/// A word that a column can hold.
pub(crate) trait Word: Copy + PartialEq + 'static {
    fn word(self) -> &'static str;
    fn from_word(word: &str) -> Option<Self>;
}

macro_rules! words {
    ($($type:ty: $all:expr, $word:expr;)+) => {
        $(impl Word for $type {
            fn word(self) -> &'static str {
                $word(self)
            }

            fn from_word(word: &str) -> Option<$type> {
                $all.into_iter().find(|known| $word(*known) == word)
            }
        })+
    };
}

words! {
    Phase: Phase::ALL, Phase::word;
    Fate: Fate::ALL, Fate::word;
    ExecutionFate: ExecutionFate::ALL, ExecutionFate::word;
    StreamEnd: StreamEnd::ALL, StreamEnd::word;
    Via: Via::ALL, Via::word;
    Metric: Metric::every(), Metric::name;
    Side: [Side::Local, Side::Peer], Side::word;
}

/// The values of a column in consecutive rows, whatever the type of its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column<'a> {
    /// Numbers and flags; of a flag 1 or 0. Of a column of words: all of them null.
    Ints(IntColumn),
    Words(WordColumn<&'a str>),
}

/// Consecutive rows of any table, with a column for each of the table's in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniformBatch {
    pub rows: usize,
    pub columns: Vec<Column<'static>>,
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

/// Values of a column of numbers, whatever their width on disk; empty if the column was not read or is to be null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntColumn {
    /// One per row; 0 where the row holds null. `seq` is unsigned: `values[row] as u64`. Of doubles, their bits.
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
