//! Reads a table: the columns that are asked for, and of those only what the chunk statistics leave open.
//!
//! Words are decoded here, run by run: the general reader makes a byte array of every value, in a column that has five
//! different words in ten million rows. Encodings: <https://parquet.apache.org/docs/file-format/data-pages/encodings/>,
//! PLAIN for the dictionary and RLE_DICTIONARY (a bit width, then runs and bit-packed groups) for the rows.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::statistics::Statistics;

use super::column::{ColumnSpec, ColumnType, IntColumn, WordColumn};
use super::file::{TableFault, TableFile, cause_of, contained};
use crate::recording::error::RecordingError;

/// A table of a recording, open, whose columns have the expected types.
#[derive(Debug)]
pub(crate) struct TableReader {
    file: TableFile,
    /// Each column, and its index in the file: `None` if the version that wrote the file did not have it.
    columns: Vec<(ColumnSpec, Option<usize>)>,
}

impl TableReader {
    /// The table in `file`, which has `columns` in any order; a nullable one may be missing.
    pub(super) fn new(file: TableFile, columns: &[ColumnSpec]) -> Result<TableReader, RecordingError> {
        let found = columns.iter().map(|column| match index_of(&file, *column)? {
            None if !column.nullable => Err(format!("it has no column `{}`", column.name)),
            index => Ok((*column, index)),
        });
        let columns = found.collect::<Result<_, _>>().map_err(|what| RecordingError::damaged(file.path(), what))?;
        Ok(TableReader { file, columns })
    }

    pub(crate) fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The result of `read` for each row group, in order.
    pub(super) fn groups<T>(
        self,
        read: impl Fn(&GroupReader<'_>) -> Result<T, TableFault>,
    ) -> impl Iterator<Item = Result<T, RecordingError>> {
        (0..self.file.metadata().num_row_groups()).map(move |number| {
            let rows = self.file.group_rows(number);
            let group = GroupReader { number, file: &self.file, columns: &self.columns, rows };
            contained(|| read(&group)).map_err(|fault| fault.of_file(self.file.path()))
        })
    }
}

/// The index of `column` in the file, found by name since later versions may add columns.
fn index_of(file: &TableFile, column: ColumnSpec) -> Result<Option<usize>, String> {
    let schema = file.metadata().file_metadata().schema_descr();
    let Some(index) = schema.columns().iter().position(|found| found.path().string() == column.name) else {
        return Ok(None);
    };
    let found = schema.column(index);
    let fits = found.physical_type() == column.column_type.physical()
        && found.max_rep_level() == 0
        && (i16::from(column.nullable)..=i16::from(column.imported().nullable)).contains(&found.max_def_level());
    if fits { Ok(Some(index)) } else { Err(format!("its column `{}` has another type", column.name)) }
}

/// One row group; columns are given by their index in the table.
pub(crate) struct GroupReader<'a> {
    number: usize,
    file: &'a TableFile,
    columns: &'a [(ColumnSpec, Option<usize>)],
    pub(super) rows: usize,
}

impl GroupReader<'_> {
    /// The values of a column of numbers.
    pub(super) fn ints(&self, column: usize) -> Result<IntColumn, TableFault> {
        let (spec, index) = self.columns[column];
        let Some(index) = index else { return Ok(IntColumn::nulls(self.rows)) };
        self.decode_ints(index, spec.column_type).map_err(self.in_column(spec))
    }

    /// The rows of the `N` columns of numbers from `first` on.
    pub(super) fn int_rows<const N: usize>(
        &self,
        first: usize,
    ) -> Result<impl Iterator<Item = [Option<i64>; N]>, TableFault> {
        let columns = (first..first + N).map(|column| self.ints(column)).collect::<Result<Vec<_>, _>>()?;
        Ok((0..self.rows).map(move |row| std::array::from_fn(|column| columns[column].get(row))))
    }

    /// The values of a column of words, each parsed by `parse`.
    pub(super) fn words<T: Copy>(
        &self,
        column: usize,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<WordColumn<T>, TableFault> {
        let (spec, index) = self.columns[column];
        let decoded = index.ok_or_else(|| "it is missing".into()).and_then(|index| self.decode_words(index, parse));
        decoded.map_err(self.in_column(spec))
    }

    fn in_column(&self, column: ColumnSpec) -> impl Fn(TableFault) -> TableFault {
        move |fault| match fault {
            TableFault::Damage(what) => format!("column `{}`, row group {}: {what}", column.name, self.number).into(),
            refused @ TableFault::Refused(_) => refused,
        }
    }

    fn statistics(&self, index: usize) -> Option<&Statistics> {
        self.file.metadata().row_group(self.number).column(index).statistics()
    }

    fn decode_ints(&self, index: usize, column_type: ColumnType) -> Result<IntColumn, TableFault> {
        let statistics = self.statistics(index);
        if statistics.and_then(Statistics::null_count_opt) == Some(self.rows as u64) {
            return Ok(IntColumn::nulls(self.rows));
        }
        if let Some(constant) = statistics.and_then(constant_int) {
            return Ok(IntColumn { values: vec![widen(constant, column_type); self.rows], present: None });
        }
        let mut levels = Vec::new();
        let values: Vec<i64> = match self.file.column(self.number, index)? {
            ColumnReader::Int64ColumnReader(reader) => read_values(reader, self.rows, &mut levels)?,
            ColumnReader::Int32ColumnReader(reader) => {
                let values = read_values(reader, self.rows, &mut levels)?;
                values.into_iter().map(|value| widen(i64::from(value), column_type)).collect()
            }
            ColumnReader::BoolColumnReader(reader) => {
                read_values(reader, self.rows, &mut levels)?.into_iter().map(i64::from).collect()
            }
            _ => return Err("not a number".into()),
        };
        if values.len() == self.rows {
            return Ok(IntColumn { values, present: None });
        }
        if levels.len() != self.rows {
            return Err(format!("{} values for {} rows", levels.len(), self.rows).into());
        }
        let mut values = values.into_iter();
        Ok(levels.iter().map(|level| if *level == 0 { None } else { values.next() }).collect())
    }

    fn decode_words<T: Copy>(
        &self,
        index: usize,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<WordColumn<T>, TableFault> {
        if let Some(constant) = self.statistics(index).and_then(constant_word) {
            return parse(constant).map(WordColumn::All).ok_or_else(|| format!("the unknown word `{constant}`").into());
        }
        let mut pages = self.file.pages(self.number, index)?;
        let mut decoder = WordDecoder { dictionary: Vec::new(), words: Vec::with_capacity(self.rows), parse };
        while let Some(page) = pages.get_next_page().map_err(|error| cause_of(&error))? {
            decoder.page(&page)?;
        }
        let words = decoder.words;
        match words.len() == self.rows {
            true => Ok(WordColumn::Each(words)),
            false => Err(format!("{} words for {} rows", words.len(), self.rows).into()),
        }
    }
}

/// The values that are not null, and in `levels` the definition levels of all rows.
fn read_values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Vec<i16>,
) -> Result<Vec<T::T>, String> {
    let mut values = Vec::with_capacity(rows);
    reader.read_records(rows, Some(levels), None, &mut values).map_err(|error| cause_of(&error))?;
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
fn constant_word(statistics: &Statistics) -> Option<&str> {
    let Statistics::ByteArray(words) = statistics else { return None };
    let exact = words.min_is_exact() && words.max_is_exact() && words.null_count_opt() == Some(0);
    let (min, max) = (words.min_opt()?, words.max_opt()?);
    if exact && min.data() == max.data() { min.as_utf8().ok() } else { None }
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

/// Decodes the pages of one column chunk of words without nulls.
struct WordDecoder<T, P> {
    dictionary: Vec<T>,
    words: Vec<T>,
    parse: P,
}

impl<T: Copy, P: Fn(&str) -> Option<T>> WordDecoder<T, P> {
    fn page(&mut self, page: &Page) -> Result<(), String> {
        let values = page.num_values() as usize;
        let (encoding, bytes) = match page {
            Page::DictionaryPage { buf, .. } => {
                self.dictionary = plain(buf, values, &self.parse)?;
                return Ok(());
            }
            Page::DataPage { buf, encoding, .. } => (*encoding, &buf[..]),
            Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (*encoding, buf.get(levels..).ok_or("a page shorter than its levels")?)
            }
        };
        match encoding {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                hybrid(bytes, values, &self.dictionary, &mut self.words)?;
            }
            Encoding::PLAIN => self.words.extend(plain(bytes, values, &self.parse)?),
            other => return Err(format!("words in the encoding {other}")),
        }
        Ok(())
    }
}

fn plain<T>(mut bytes: &[u8], values: usize, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let mut words = Vec::new();
    for _ in 0..values {
        let (length, rest) = bytes.split_first_chunk().ok_or("a dictionary that ends early")?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, rest) = rest.split_at_checked(length).ok_or("a dictionary that ends early")?;
        let text = String::from_utf8_lossy(text);
        words.push(parse(&text).ok_or_else(|| format!("the unknown word `{text}`"))?);
        bytes = rest;
    }
    Ok(words)
}

/// Runs and bit-packed groups of dictionary indices, `values` of them.
fn hybrid<T: Copy>(bytes: &[u8], values: usize, dictionary: &[T], words: &mut Vec<T>) -> Result<(), String> {
    const SHORT: &str = "a page that ends early";
    let (width, mut bytes) = bytes.split_first().ok_or(SHORT)?;
    let width = usize::from(*width);
    if width > 8 {
        return Err(format!("a dictionary index of {width} bits"));
    }
    let look_up = |index: u8| dictionary.get(usize::from(index)).copied().ok_or("an index past the dictionary");
    let mut left = values;
    while left > 0 {
        let (header, rest) = varint(bytes).ok_or(SHORT)?;
        if header & 1 == 0 {
            let (index, rest) = if width == 0 { (&0, rest) } else { rest.split_first().ok_or(SHORT)? };
            let run = left.min((header >> 1) as usize);
            if run == 0 {
                return Err("a run of nothing".into());
            }
            words.resize(words.len() + run, look_up(*index)?);
            (left, bytes) = (left - run, rest);
        } else {
            let groups = (header >> 1) as usize;
            let length = groups.checked_mul(width).ok_or(SHORT)?;
            let (packed, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
            let packed_values = left.min(groups * 8);
            if packed_values == 0 {
                return Err("a group of nothing".into());
            }
            for value in 0..packed_values {
                words.push(look_up(bits(packed, value * width, width))?);
            }
            (left, bytes) = (left - packed_values, rest);
        }
    }
    Ok(())
}

/// The `width` bits (at most 8) that begin at bit `offset`.
#[inline]
fn bits(packed: &[u8], offset: usize, width: usize) -> u8 {
    let byte = |index: usize| u16::from(packed.get(index).copied().unwrap_or(0));
    let both = byte(offset / 8) | byte(offset / 8 + 1) << 8;
    ((both >> (offset % 8)) & ((1 << width) - 1)) as u8
}

/// An unsigned LEB128 number of at most 32 bits, and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0u64;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(number).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{Compression, Repetition, Type as PhysicalType};
    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;

    use super::super::encode::TableWriter;
    use super::*;
    use crate::diagnostics::Explain;
    use crate::platform::Directory;

    const ROWS: usize = 1_000;
    const COLUMNS: [ColumnSpec; 7] = [
        ColumnSpec::required("i64", ColumnType::I64),
        ColumnSpec::required("u64", ColumnType::U64),
        ColumnSpec::nullable("i32", ColumnType::I32),
        ColumnSpec::nullable("u32", ColumnType::U32),
        ColumnSpec::required("u16", ColumnType::U16),
        ColumnSpec::required("flag", ColumnType::Flag),
        ColumnSpec::required("word", ColumnType::Word),
    ];

    fn numbers() -> Vec<IntColumn> {
        let column = |value: fn(i64) -> Option<i64>| (0..ROWS as i64).map(value).collect();
        vec![
            column(|row| Some(row * row - 1_000)),
            column(|row| Some(row << 40)),
            column(|row| (row % 3 > 0).then_some(-row)),
            column(|row| (row % 5 > 0).then_some(i64::from(u32::MAX) - row)),
            column(|row| Some(i64::from(u16::MAX) - row)),
            column(|row| Some(row % 2)),
        ]
    }

    fn words() -> Vec<&'static str> {
        (0..ROWS).map(|row| ["lost", "answered", "late"][row * row % 3]).collect()
    }

    fn table() -> Vec<u8> {
        let mut writer = TableWriter::new(Vec::new(), "run", "row", &COLUMNS).expect("a schema");
        let mut group = writer.group(ROWS).expect("a row group");
        numbers().iter().for_each(|column| group.ints(column).expect("encodes"));
        group.words(&WordColumn::Each(words()), |word| word).expect("encodes");
        group.close().expect("all columns");
        writer.finish().expect("a footer")
    }

    fn opened<T>(
        bytes: &[u8],
        read: impl Fn(&GroupReader<'_>) -> Result<T, TableFault>,
    ) -> Result<Vec<T>, RecordingError> {
        let directory = tempfile::tempdir().expect("temporary directory");
        std::fs::write(directory.path().join("table"), bytes).expect("written");
        let directory = Directory::open(directory.path()).expect("opens");
        TableReader::new(TableFile::open(&directory, "table", None)?, &COLUMNS)?.groups(read).collect()
    }

    #[test]
    fn every_type_of_column_is_read_as_it_was_written() {
        let word = |text: &str| ["lost", "answered", "late"].into_iter().find(|word| *word == text);
        let read = |group: &GroupReader<'_>| {
            let numbers = (0..6).map(|column| group.ints(column)).collect::<Result<Vec<_>, _>>()?;
            Ok((numbers, group.words(6, word)?))
        };
        let groups = opened(&table(), read).expect("sound");
        let [(read_numbers, read_words)] = &groups[..] else { panic!("{} row groups", groups.len()) };
        for (read, written) in read_numbers.iter().zip(numbers()) {
            assert!((0..ROWS).all(|row| read.get(row) == written.get(row)), "{read:?}");
        }
        let WordColumn::Each(read_words) = read_words else { panic!("one word for all") };
        assert_eq!(read_words, &words());
    }

    #[test]
    fn a_column_outside_of_the_file_is_damage() {
        let bytes = table();
        let (rest, tail) = bytes.split_last_chunk::<8>().expect("a footer");
        let footer = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
        let without_data = [&bytes[..4], &rest[rest.len() - footer..], tail].concat();
        let error = opened(&without_data, |group| group.ints(0)).expect_err("no data");
        let cause = error.explain().cause.expect("a cause");
        assert!(cause.contains("column `i64`, row group 0: a column chunk of "), "{cause}");
    }

    #[test]
    fn a_small_file_that_inflates_beyond_the_limit_is_refused() {
        let field =
            Type::primitive_type_builder("word", PhysicalType::BYTE_ARRAY).with_repetition(Repetition::REQUIRED);
        let fields = vec![Arc::new(field.build().expect("a column"))];
        let schema = Arc::new(Type::group_type_builder("row").with_fields(fields).build().expect("a schema"));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_dictionary_enabled(false);
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).expect("a file");
        let mut group = writer.next_row_group().expect("a row group");
        let mut column = group.next_column().expect("a column").expect("one");
        let words = vec![ByteArray::from(vec![b'x'; 1_000]); 100_000];
        column.typed::<ByteArrayType>().write_batch(&words, None, None).expect("values");
        column.close().and_then(|()| group.close()).expect("ends");
        let bytes = writer.into_inner().expect("a footer");
        assert!(bytes.len() < 16 << 20, "{} bytes", bytes.len());
        let cause = opened(&bytes, |group| group.ints(0)).expect_err("a bomb").explain().cause.expect("a cause");
        assert!(cause.contains("without compression, and 16777216 is the maximum"), "{cause}");
    }

    #[test]
    fn a_column_that_the_system_refuses_to_read_is_not_damage() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("table");
        std::fs::write(&path, table()).expect("written");
        let open = TableFile::open(&Directory::open(directory.path()).expect("opens"), "table", None).expect("sound");
        // A descriptor that is open for writing only: EBADF.
        let refused = open.reading(std::fs::OpenOptions::new().append(true).open(&path).expect("opens"));
        let read = TableReader::new(refused, &COLUMNS).expect("sound").groups(|group| group.ints(0)).next();
        let failure = read.expect("a row group").expect_err("refused").explain();
        assert_eq!(failure.exit_code, 3, "{failure:?}");
    }

    #[test]
    fn runs_and_bit_packed_groups_decode() {
        // Width 2; a run of 3 × index 1; one group of 8: 0 1 2 0 1 2 0 1.
        let bytes = [2, 3 << 1, 1, (1 << 1) | 1, 0b0010_0100, 0b0100_1001];
        let mut words = Vec::new();
        hybrid(&bytes, 10, &['a', 'b', 'c'], &mut words).expect("decodes");
        assert_eq!(words.iter().collect::<String>(), "bbbabcabca");
    }

    #[test]
    fn a_dictionary_of_one_word_needs_no_bits() {
        let mut words = Vec::new();
        hybrid(&[0, 200, 1], 100, &['x'], &mut words).expect("decodes");
        assert_eq!(words, ['x'; 100]);
    }

    #[test]
    fn damaged_pages_are_errors_and_never_panic() {
        let mut words: Vec<char> = Vec::new();
        for bytes in [
            &[][..],
            &[2],
            &[2, 6],
            &[2, 0, 0],
            &[2, 6, 3],
            &[9, 6, 0],
            &[2, 1],
            &[2, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[2, 3, 0],
        ] {
            assert!(hybrid(bytes, 3, &['a', 'b', 'c'], &mut words).is_err(), "{bytes:?}");
        }
        assert!(plain(&[9, 0, 0, 0, b'x'], 1, |_| Some(())).is_err());
        assert!(plain(&[1, 0, 0, 0, b'x'], 1, |_| None::<()>).is_err());
    }
}
