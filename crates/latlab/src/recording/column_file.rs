//! A Parquet file of a recording that is read whole: all of its columns, one row group after the other.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::batch::{IntColumn, WordColumn};
use super::columns::ColumnShape;
use super::error::RecordingError;
use super::parquet_batches::{Chunk, leaf_of, open_file, rows_of, words_of};

/// A file, open, whose schema is as it should be.
pub(crate) struct ColumnFile {
    path: PathBuf,
    file: SerializedFileReader<File>,
    /// Which of the file's columns each of ours is; none: a version that did not have it, so every row is null.
    leaves: Vec<(ColumnShape, Option<usize>)>,
}

impl ColumnFile {
    /// Opens the file at `path`, which has `columns` in any order. One that may be null may be missing.
    pub(crate) fn open(
        path: &Path,
        columns: impl IntoIterator<Item = ColumnShape>,
    ) -> Result<ColumnFile, RecordingError> {
        let file = open_file(path)?;
        let leaf = |column: ColumnShape| match leaf_of(&file, column) {
            Ok(None) if !column.nullable => {
                Err(RecordingError::damaged(path, format!("it has no column `{}`", column.name)))
            }
            Ok(leaf) => Ok((column, leaf)),
            Err(what) => Err(RecordingError::damaged(path, what)),
        };
        let leaves = columns.into_iter().map(leaf).collect::<Result<_, RecordingError>>()?;
        Ok(ColumnFile { path: path.to_owned(), file, leaves })
    }

    /// Rows in the file.
    pub(crate) fn count(&self) -> u64 {
        rows_of(&self.file)
    }

    /// What `read` makes of each row group, in order; after an error there is nothing sensible.
    pub(crate) fn groups<T>(
        self,
        read: impl Fn(&ColumnGroup<'_>) -> Result<T, String>,
    ) -> impl Iterator<Item = Result<T, RecordingError>> {
        (0..self.file.num_row_groups()).map(move |number| {
            let damaged = |what| RecordingError::damaged(&self.path, format!("row group {number}: {what}"));
            let group = self.file.get_row_group(number).map_err(|error| damaged(words_of(error)))?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            read(&ColumnGroup { group: group.as_ref(), leaves: &self.leaves, rows }).map_err(damaged)
        })
    }
}

/// One row group; columns are named by their place among those that were asked for.
pub(crate) struct ColumnGroup<'a> {
    group: &'a dyn RowGroupReader,
    leaves: &'a [(ColumnShape, Option<usize>)],
    /// How many rows.
    pub(crate) rows: usize,
}

impl ColumnGroup<'_> {
    /// The numbers of the column at `place`; or what is wrong with them.
    pub(crate) fn ints(&self, place: usize) -> Result<IntColumn, String> {
        let (column, leaf) = self.leaves[place];
        let Some(leaf) = leaf else { return Ok(IntColumn::nulls(self.rows)) };
        self.chunk(leaf).ints(column.column_type).map_err(named(column))
    }

    /// The words of the column at `place`, each understood by `word`; or what is wrong with them.
    pub(crate) fn words<T: Copy>(
        &self,
        place: usize,
        word: impl Fn(&str) -> Option<T>,
    ) -> Result<WordColumn<T>, String> {
        let (column, leaf) = self.leaves[place];
        let leaf = leaf.ok_or_else(|| named(column)("it is missing".into()))?;
        self.chunk(leaf).words(word).map_err(named(column))
    }

    fn chunk(&self, leaf: usize) -> Chunk<'_> {
        Chunk { group: self.group, leaf, rows: self.rows }
    }
}

fn named(column: ColumnShape) -> impl Fn(String) -> String {
    move |what| format!("column `{}`: {what}", column.name)
}
