//! Reads a table: the columns that are asked for, and of those only what the chunk statistics leave open.

use std::io;
use std::sync::Arc;
use std::vec;

use parquet::basic::{Encoding, Repetition, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{DataType, Int32Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};

use super::column::{Column, ColumnSpec, ColumnType, IntColumn, UniformBatch, Word, WordColumn};
use super::file::{TableFile, contained, damage, io_error, read_error};
use super::recorded::RecordedTable;
use crate::error::RecordingError;

/// Consecutive rows of a table, with a field for each column in the order of the file.
pub(crate) trait Batch: Default + 'static {
    const TABLE: RecordedTable;

    fn specs() -> Vec<ColumnSpec>;
    fn rows_mut(&mut self) -> &mut usize;
    fn fields(&mut self) -> Vec<&mut dyn Field>;

    /// Its rows, whatever the table.
    fn into_uniform(mut self) -> UniformBatch {
        let rows = *self.rows_mut();
        UniformBatch { rows, columns: self.fields().into_iter().map(|field| field.take(rows)).collect() }
    }
}

/// The field of a batch.
pub(crate) trait Field {
    fn read(&mut self, chunk: &ColumnChunk<'_>) -> io::Result<()>;

    /// Moves the values of `rows` rows out; nulls if it has none.
    fn take(&mut self, rows: usize) -> Column<'static>;
}

impl Field for IntColumn {
    fn read(&mut self, chunk: &ColumnChunk<'_>) -> io::Result<()> {
        *self = chunk.ints()?;
        Ok(())
    }

    fn take(&mut self, rows: usize) -> Column<'static> {
        let ints = std::mem::take(self);
        Column::Ints(if ints.values.is_empty() { IntColumn::nulls(rows) } else { ints })
    }
}

impl<T: Word> Field for WordColumn<T> {
    fn read(&mut self, chunk: &ColumnChunk<'_>) -> io::Result<()> {
        *self = chunk.words()?;
        Ok(())
    }

    fn take(&mut self, _rows: usize) -> Column<'static> {
        Column::Words(match std::mem::take(self) {
            WordColumn::All(word) => WordColumn::All(word.word()),
            WordColumn::Each(words) => WordColumn::Each(words.into_iter().map(T::word).collect()),
        })
    }
}

/// A table of a recording, open, whose columns have the expected types.
#[derive(Debug)]
pub(crate) struct TableReader {
    file: TableFile,
    /// Each column, and its index in the file: `None` if the version that wrote the file did not have it.
    columns: Vec<(ColumnSpec, Option<usize>)>,
}

impl TableReader {
    /// The table in `file`, which has `columns` in any order; a nullable one may be missing.
    ///
    /// # Errors
    /// If it has other columns.
    pub(crate) fn new(file: TableFile, columns: Vec<ColumnSpec>) -> Result<TableReader, RecordingError> {
        let found = columns.into_iter().map(|column| match index_of(&file, &column)? {
            None if !column.nullable => Err(format!("it has no column `{}`", column.name)),
            index => Ok((column, index)),
        });
        let columns = found.collect::<Result<_, _>>().map_err(|what| RecordingError::damaged(file.path(), what))?;
        Ok(TableReader { file, columns })
    }

    pub(crate) fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// A batch for each row group, in order; of the columns of these indices if they are `chosen`, else of all.
    pub(crate) fn batches<B: Batch>(
        self,
        chosen: Option<Vec<usize>>,
    ) -> impl Iterator<Item = Result<B, RecordingError>> {
        (0..self.file.metadata().num_row_groups())
            .map(move |group| contained(|| self.batch(group, chosen.as_deref())).map_err(read_error(self.file.path())))
    }

    fn batch<B: Batch>(&self, group: usize, chosen: Option<&[usize]>) -> io::Result<B> {
        let mut batch = B::default();
        *batch.rows_mut() = self.file.group_rows(group);
        for (number, (field, (spec, index))) in batch.fields().into_iter().zip(&self.columns).enumerate() {
            if chosen.is_none_or(|chosen| chosen.contains(&number)) {
                let chunk = ColumnChunk { file: &self.file, group, spec, index: *index };
                field.read(&chunk).map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                        damage(format!("column `{}`, row group {group}: {error}", spec.name))
                    }
                    _ => error,
                })?;
            }
        }
        Ok(batch)
    }
}

/// The index of `column` in the file, found by name since later versions may add columns.
fn index_of(file: &TableFile, column: &ColumnSpec) -> Result<Option<usize>, String> {
    let schema = file.metadata().file_metadata().schema_descr();
    let Some(index) = schema.columns().iter().position(|found| found.path().string() == *column.name) else {
        return Ok(None);
    };
    let found = schema.column(index);
    let may_be_null = i16::from(column.clone().imported().nullable);
    let fits = found.physical_type() == column.column_type.in_parquet().0
        && found.max_rep_level() == 0
        && (i16::from(column.nullable)..=may_be_null).contains(&found.max_def_level());
    if fits { Ok(Some(index)) } else { Err(format!("its column `{}` has another type", column.name)) }
}

/// A column of one row group.
pub(crate) struct ColumnChunk<'a> {
    file: &'a TableFile,
    group: usize,
    spec: &'a ColumnSpec,
    index: Option<usize>,
}

impl ColumnChunk<'_> {
    fn statistics(&self, index: usize) -> Option<&Statistics> {
        self.file.metadata().row_group(self.group).column(index).statistics()
    }

    /// The values of a column of numbers.
    pub(super) fn ints(&self) -> io::Result<IntColumn> {
        let (rows, column_type) = (self.file.group_rows(self.group), self.spec.column_type);
        let Some(index) = self.index else { return Ok(IntColumn::nulls(rows)) };
        let statistics = self.statistics(index);
        if statistics.and_then(Statistics::null_count_opt) == Some(rows as u64) {
            return Ok(IntColumn::nulls(rows));
        }
        if let Some(constant) = statistics.and_then(constant_int) {
            return Ok(IntColumn { values: vec![widen(constant, column_type); rows], present: None });
        }
        let mut levels = Vec::new();
        let description = self.file.metadata().row_group(self.group).column(index).column_descr_ptr();
        let pages = Pages(self.file.pages(self.group, index)?.into_iter());
        let values: Vec<i64> = match get_column_reader(description, Box::new(pages)) {
            ColumnReader::Int64ColumnReader(reader) => read_values(reader, rows, &mut levels)?,
            ColumnReader::Int32ColumnReader(reader) => {
                let values = read_values(reader, rows, &mut levels)?;
                values.into_iter().map(|value| widen(i64::from(value), column_type)).collect()
            }
            ColumnReader::BoolColumnReader(reader) => {
                read_values(reader, rows, &mut levels)?.into_iter().map(i64::from).collect()
            }
            ColumnReader::DoubleColumnReader(reader) => {
                read_values(reader, rows, &mut levels)?.into_iter().map(|number| number.to_bits() as i64).collect()
            }
            _ => return Err(damage("not a number")),
        };
        if values.len() == rows {
            return Ok(IntColumn { values, present: None });
        }
        if levels.len() != rows {
            return Err(damage(format!("{} values for {rows} rows", levels.len())));
        }
        let mut values = values.into_iter();
        Ok(levels.iter().map(|level| if *level == 0 { None } else { values.next() }).collect())
    }

    /// The values of a column of words. The library makes a byte array of every word, in a column that has five different
    /// words in ten million rows. So it gets a dictionary of the numbers of the words instead, and reads these.
    pub(super) fn words<T: Word>(&self) -> io::Result<WordColumn<T>> {
        let rows = self.file.group_rows(self.group);
        let index = self.index.ok_or_else(|| damage("it is missing"))?;
        if let Some(constant) = self.statistics(index).and_then(constant_word) {
            return word_in(constant).map(WordColumn::All);
        }
        let mut words: Vec<T> = Vec::new();
        let mut pages = self.file.pages(self.group, index)?;
        for page in &mut pages {
            match page {
                Page::DictionaryPage { buf, num_values, .. } => {
                    words = dictionary(buf, *num_values)?;
                    *buf = (0..words.len() as i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>().into();
                }
                page if matches!(page.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) => {}
                page => return Err(damage(format!("words in the encoding {}", page.encoding()))),
            }
        }
        let number = Type::primitive_type_builder("number", PhysicalType::INT32).with_repetition(Repetition::REQUIRED);
        let number = Arc::new(number.build().map_err(io_error)?);
        let description = ColumnDescriptor::new(number, 0, 0, ColumnPath::new(Vec::new()));
        let reader = ColumnReaderImpl::<Int32Type>::new(Arc::new(description), Box::new(Pages(pages.into_iter())));
        let numbers = read_values(reader, rows, &mut Vec::new())?;
        if numbers.len() != rows {
            return Err(damage(format!("{} words for {rows} rows", numbers.len())));
        }
        let word =
            |number: i32| words.get(number as usize).copied().ok_or_else(|| damage("a word past the dictionary"));
        numbers.into_iter().map(word).collect::<io::Result<_>>().map(WordColumn::Each)
    }
}

/// The words of a dictionary page: the length of each in four bytes, and its text.
fn dictionary<T: Word>(mut bytes: &[u8], words: u32) -> io::Result<Vec<T>> {
    let early = || damage("a dictionary that ends early");
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk().ok_or_else(early)?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(early)?;
        bytes = rest;
        word_in(text)
    };
    (0..words).map(|_| next()).collect()
}

fn word_in<T: Word>(bytes: &[u8]) -> io::Result<T> {
    let text = String::from_utf8_lossy(bytes);
    T::from_word(&text).ok_or_else(|| damage(format!("the unknown word `{text}`")))
}

/// Pages that are read already.
struct Pages(vec::IntoIter<Page>);

impl Iterator for Pages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<ParquetResult<Page>> {
        self.0.next().map(Ok)
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        Ok(self.0.next())
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        Err(ParquetError::NYI("nothing is skipped".into()))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        Err(ParquetError::NYI("nothing is skipped".into()))
    }
}

/// The values that are not null, and in `levels` the definition levels of all rows.
fn read_values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Vec<i16>,
) -> io::Result<Vec<T::T>> {
    let mut values = Vec::with_capacity(rows);
    reader.read_records(rows, Some(levels), None, &mut values).map_err(io_error)?;
    Ok(values)
}

/// Widens a decoded value: unsigned ones of 32 bits arrive as signed ones.
fn widen(value: i64, column_type: ColumnType) -> i64 {
    match column_type {
        ColumnType::U32 | ColumnType::U16 => i64::from(value as i32 as u32),
        _ => value,
    }
}

/// The word that every row holds, if the statistics say so.
fn constant_word(statistics: &Statistics) -> Option<&[u8]> {
    let Statistics::ByteArray(words) = statistics else { return None };
    let exact = words.min_is_exact() && words.max_is_exact() && words.null_count_opt() == Some(0);
    let (min, max) = (words.min_opt()?, words.max_opt()?);
    (exact && min == max).then(|| min.data())
}

/// The number that every row holds, if the statistics say so.
fn constant_int(statistics: &Statistics) -> Option<i64> {
    if statistics.null_count_opt() != Some(0) {
        return None;
    }
    let (min, max) = match statistics {
        Statistics::Int64(ints) => (*ints.min_opt()?, *ints.max_opt()?),
        Statistics::Int32(ints) => (i64::from(*ints.min_opt()?), i64::from(*ints.max_opt()?)),
        Statistics::Boolean(flags) => (i64::from(*flags.min_opt()?), i64::from(*flags.max_opt()?)),
        _ => return None,
    };
    (min == max).then_some(min)
}

#[cfg(test)]
mod tests {
    use super::super::declare::table;
    use super::super::encode::TableWriter;
    use super::*;
    use crate::diagnostics::Explain;
    use crate::platform::Directory;
    use crate::probe::Fate;

    const ROWS: usize = 10_000;

    table! {
        AllTypes of Probes {
            wide: IntColumn = required I64;
            unsigned: IntColumn = required U64;
            narrow: IntColumn = nullable I32;
            thin: IntColumn = nullable U32;
            thinner: IntColumn = required U16;
            flag: IntColumn = required Flag;
            word: WordColumn<Fate> = required Word;
        }
    }

    fn batch() -> AllTypes {
        let column = |value: fn(i64) -> Option<i64>| (0..ROWS as i64).map(value).collect();
        AllTypes {
            rows: ROWS,
            wide: column(|row| Some(row * row - 1_000)),
            unsigned: column(|row| Some(row << 40)),
            narrow: column(|row| (row % 3 > 0).then_some(-row)),
            thin: column(|row| (row % 5 > 0).then_some(i64::from(u32::MAX) - row)),
            thinner: column(|row| Some(i64::from(u16::MAX) - row)),
            flag: column(|row| Some(row % 2)),
            word: (0..ROWS).map(|row| [Fate::Lost, Fate::Answered, Fate::Late][row * row % 3]).collect(),
        }
    }

    fn table() -> Vec<u8> {
        let mut writer = TableWriter::new(Vec::new(), "row", AllTypes::specs(), &[]).expect("a schema");
        writer.write(&batch().into_uniform()).expect("encodes");
        writer.finish().expect("a footer")
    }

    fn read(file: TableFile, chosen: &[usize]) -> Result<Vec<AllTypes>, RecordingError> {
        TableReader::new(file, AllTypes::specs())?.batches(Some(chosen.to_vec())).collect()
    }

    fn opened(bytes: &[u8], chosen: &[usize]) -> Result<Vec<AllTypes>, RecordingError> {
        let directory = tempfile::tempdir().expect("temporary directory");
        std::fs::write(directory.path().join("table"), bytes).expect("written");
        let directory = Directory::open(directory.path()).expect("opens");
        read(TableFile::open(&directory, "table", None)?, chosen)
    }

    #[test]
    fn every_type_of_column_is_read_as_it_was_written() {
        let all: Vec<usize> = (0..AllTypes::specs().len()).collect();
        let groups = opened(&table(), &all).expect("sound");
        assert_eq!(groups.len(), 1);
        let (read, written) = (&groups[0], batch());
        let columns = |batch: &AllTypes| {
            let AllTypes { wide, unsigned, narrow, thin, thinner, flag, .. } = batch.clone();
            [wide, unsigned, narrow, thin, thinner, flag]
        };
        for (read, written) in columns(read).iter().zip(columns(&written)) {
            assert!((0..ROWS).all(|row| read.get(row) == written.get(row)), "{read:?}");
        }
        assert_eq!(read.word, written.word);
        let one = opened(&table(), &[1]).expect("sound").swap_remove(0);
        assert_eq!((&one.unsigned, &one.wide), (&written.unsigned, &IntColumn::default()));
    }

    #[test]
    fn a_file_without_a_required_column_is_damaged() {
        let columns = vec![ColumnSpec::required("wide", ColumnType::I64)];
        let mut writer = TableWriter::new(Vec::new(), "row", columns, &[]).expect("a schema");
        let mut group = writer.group(1).expect("a row group");
        group.write(&Column::Ints([Some(1)].into_iter().collect())).expect("encodes");
        group.close().expect("all columns");
        let cause = opened(&writer.finish().expect("a footer"), &[0]).expect_err("it lacks columns").explain().cause;
        assert_eq!(cause.as_deref(), Some("it has no column `unsigned`"));
        assert!(matches!(opened(b"PAR1 no", &[0]), Err(RecordingError::Damaged { .. })));
    }

    #[test]
    fn a_column_outside_of_the_file_is_damage() {
        let bytes = table();
        let (rest, tail) = bytes.split_last_chunk::<8>().expect("a footer");
        let footer = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
        let without_data = [&bytes[..4], &rest[rest.len() - footer..], tail].concat();
        let error = opened(&without_data, &[0]).expect_err("no data");
        let cause = error.explain().cause.expect("a cause");
        assert!(cause.starts_with("a column chunk of "), "{cause}");
    }

    #[test]
    fn a_column_that_the_system_refuses_to_read_is_not_damage() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("table");
        std::fs::write(&path, table()).expect("written");
        let open = TableFile::open(&Directory::open(directory.path()).expect("opens"), "table", None).expect("sound");
        // A descriptor that is open for writing only: EBADF.
        let refused = open.reading(std::fs::OpenOptions::new().append(true).open(&path).expect("opens"));
        let failure = read(refused, &[0]).expect_err("refused").explain();
        assert_eq!(failure.exit_code, 3, "{failure:?}");
    }
}
