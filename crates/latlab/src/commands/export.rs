//! `latlab export REC…`: gives recordings to other tools. This file finds the runs and writes their rows;
//! `export_figures` writes what is computed from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use super::export_figures::ValuelessRuns;
use super::exported_runs::{Export, ExportBreak, ExportedRun, exported_runs};
use super::output_file::OutputTarget;
use super::{Outcome, export_figures, export_probes, export_trace};
use crate::cli::resolve::{ExportContent, ExportJob, RowFormat};
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::formats::export::lines::{LineForm, LinesWriter};
use crate::formats::export::parquet::{EXPORT_KEY, ParquetRowsWriter};
use crate::formats::export::perfetto::TRACE_MARK;
use crate::formats::export::probes::ProbeForm;
use crate::formats::export::{ExportCell, ExportSchema, RowsWriter};
use crate::plan::Kind;
use crate::platform::SignalWatch;
use crate::probe::{ExecutionFate, Fate};
use crate::recording::{Column, ColumnSpec, ColumnType, RecordedTable, Recording, UniformBatch};
use crate::units::human::counted;

/// Writes what `job` asks for.
pub(super) fn run(job: &ExportJob, console: &Console) -> Result<Outcome, Failure> {
    let binary = match job.content {
        ExportContent::Rows { format: RowFormat::Parquet, .. } => Some("Parquet"),
        ExportContent::Trace => Some("a trace"),
        _ => None,
    };
    if let Some(content) = binary.filter(|_| job.output.is_none() && console.data_screen().terminal) {
        return Err(Failure::request(format!("cannot write {content} to a terminal"))
            .because("stdout is a terminal")
            .hint("`-o FILE`, or redirect stdout"));
    }
    let runs = exported_runs(job, console)?;
    // A stream has nothing that must be removed: a signal ends the process at once, also while a pipe is full.
    if !job.output.as_deref().is_some_and(OutputTarget::is_whole) {
        return written(job, &runs, &|| None, console);
    }
    let signals = SignalWatch::listen().map_err(refused("listen to signals"))?;
    written(job, &runs, &|| signals.outcome(), console)
}

/// Writes `runs`, at least one, until `stop` has an outcome.
fn written(
    job: &ExportJob,
    runs: &[ExportedRun],
    stop: &dyn Fn() -> Option<Outcome>,
    console: &Console,
) -> Result<Outcome, Failure> {
    let export = Export { runs, kind: runs[0].kind, console, stop };
    let is_own = |path: &Path| is_own(path, &job.content);
    let mut target = OutputTarget::open(job.output.as_deref(), job.force, is_own, console)?;
    match export.write(&job.content, &mut target) {
        Ok(()) => target.conclude().map(|()| Outcome::Done),
        Err(ExportBreak::Refused(error)) => target.judge(Err(error)).map(|()| Outcome::Done),
        Err(ExportBreak::Failed(failure)) => Err(failure),
        Err(ExportBreak::Signal(outcome)) => Ok(outcome),
    }
}

/// Whether the file at `path` is empty, or begins, or in Parquet ends, like an export of this format.
fn is_own(path: &Path, content: &ExportContent) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mark = match content {
        ExportContent::Rows { format, .. } | ExportContent::Bins { format, .. } => match format {
            RowFormat::Csv => ",run,recording,",
            RowFormat::Jsonl => ",\"recording\":\"",
            RowFormat::Parquet => {
                let length = file.metadata()?.len();
                file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED_BYTES)))?;
                let mut end = Vec::new();
                file.read_to_end(&mut end)?;
                return Ok(end.windows(EXPORT_KEY.len()).any(|part| part == EXPORT_KEY.as_bytes()));
            }
        },
        ExportContent::Hlog { .. } => "#[Logged with latlab ",
        ExportContent::Trace => TRACE_MARK,
        ExportContent::Probes { form: form @ ProbeForm::RoundtripCsv } => form.heading(),
        ExportContent::Probes { form: ProbeForm::FourTimes }
        | ExportContent::Values { .. }
        | ExportContent::Singletons { .. }
        | ExportContent::Jitter { .. } => return Ok(false),
    };
    let mut start = Vec::new();
    file.take(SEARCHED_BYTES).read_to_end(&mut start)?;
    Ok(start.windows(mark.len()).any(|part| part == mark.as_bytes()))
}

/// Who wrote a file shows in so many bytes: of a text the first ones, of Parquet the last ones.
const SEARCHED_BYTES: u64 = 1 << 20;

impl Export<'_> {
    fn write(&self, content: &ExportContent, target: &mut OutputTarget<'_>) -> Result<(), ExportBreak> {
        match content {
            ExportContent::Rows { format, table } => self.rows(*format, *table, target),
            ExportContent::Bins { format, metric } => {
                let metric = export_figures::metric(self, metric.as_deref())?;
                let keys = Keys::of(self.runs, &[], |_| None);
                let schema = ExportSchema { keys: keys.columns.clone(), columns: export_figures::bin_columns() };
                let mut writer = rows_writer(*format, target, &schema)?;
                let mut valueless = ValuelessRuns::default();
                for (run, cells) in self.runs.iter().zip(&keys.cells) {
                    self.expect_no_signal()?;
                    writer.begin_run(cells)?;
                    writer.append(export_figures::bins(run, metric, &mut valueless)?)?;
                }
                writer.finish()?;
                valueless.warn(self, "", metric);
                Ok(())
            }
            ExportContent::Hlog { metric } => export_figures::hlog(self, metric.as_deref(), target),
            ExportContent::Values { metric, statistic, unit } => {
                export_figures::values(self, metric.as_deref(), statistic, *unit, target)
            }
            ExportContent::Singletons { metric, unit } => {
                export_figures::singletons(self, metric.as_deref(), *unit, target)
            }
            ExportContent::Probes { form } => export_probes::probes(self, *form, target),
            ExportContent::Trace => export_trace::trace(self, target),
            ExportContent::Jitter { metric, unit } => export_figures::jitter(self, metric.as_deref(), *unit, target),
        }
    }

    fn rows(
        &self,
        format: RowFormat,
        table: Option<RecordedTable>,
        target: &mut OutputTarget<'_>,
    ) -> Result<(), ExportBreak> {
        let table = table.unwrap_or(RecordedTable::of(self.kind));
        self.expect_table(table)?;
        let recorded = table.imported_columns();
        let delay = delays_of(table).map(|[name, ..]| ColumnSpec::nullable(name, ColumnType::I64));
        let columns: Vec<_> = delay.into_iter().chain(recorded.iter().cloned()).collect();
        // The packets of a stream have a size of their own beside that of its probes.
        let is_beside_stream = self.kind == Kind::Stream && table == RecordedTable::Probes;
        let renamed = |name: &str| is_beside_stream.then(|| format!("stream_{name}"));
        let keys = Keys::of(self.runs, &columns, renamed);
        let mut writer = rows_writer(format, target, &ExportSchema { keys: keys.columns, columns })?;
        let mut without_rows = 0;
        for (run, cells) in self.runs.iter().zip(&keys.cells) {
            self.expect_no_signal()?;
            let recording = Recording::open(&run.path)?;
            writer.begin_run(cells)?;
            let mut rows = 0;
            for batch in recording.rows_of(table)? {
                self.expect_no_signal()?;
                let mut batch = batch?;
                rows += batch.rows;
                if let Some([_, begin, end]) = delays_of(table) {
                    batch.columns.insert(0, delays(&batch, &recorded, begin, end));
                }
                writer.append(batch)?;
            }
            without_rows += usize::from(rows == 0);
        }
        writer.finish()?;
        if without_rows > 0 {
            let of_all = counted(self.runs.len(), "run");
            self.console.note(&format!("{without_rows} of {of_all} without a row in `{}`", table.word()));
        }
        Ok(())
    }

    pub(super) fn expect_table(&self, table: RecordedTable) -> Result<(), Failure> {
        if self.runs.iter().any(|run| run.tables.contains(&table)) {
            return Ok(());
        }
        let known =
            RecordedTable::ALL.into_iter().filter(|table| self.runs.iter().any(|run| run.tables.contains(table)));
        let known: Vec<String> = known.map(|table| format!("`--table {}`", table.word())).collect();
        Err(Failure::request(format!("these runs have no table `{}`", table.word()))
            .because(format!("they are of kind `{}`", self.kind.word()))
            .hint(known.join(" or ")))
    }
}

/// The delays of the rows of a table: their column, and from which instant to which one they last.
fn delays_of(table: RecordedTable) -> Option<[&'static str; 3]> {
    match table {
        RecordedTable::Probes => Some(["round_trip_delay_ns", "sent_ns", "received_ns"]),
        RecordedTable::Wakeups => Some(["wakeup_latency_ns", "due_ns", "woke_ns"]),
        RecordedTable::Executions => Some(["elapsed_time_ns", "started_ns", "ended_ns"]),
        _ => None,
    }
}

/// The time from `begin` to `end` in each row of `batch`, in which the columns are `recorded`; of a probe that was
/// answered in time, or of an execution that exited.
fn delays(batch: &UniformBatch, recorded: &[ColumnSpec], begin: &str, end: &str) -> Column<'static> {
    let column = |name: &str| recorded.iter().zip(&batch.columns).find(|(spec, _)| spec.name == name).map(|it| it.1);
    let (begin, end, fates) = (column(begin), column(end), column("fate"));
    let instant = |column: Option<&Column<'_>>, row| match column {
        Some(Column::Ints(ints)) => ints.get(row),
        _ => None,
    };
    let known = [Fate::Answered.word(), ExecutionFate::Exited.word()];
    let has_ended = |row| !matches!(fates, Some(Column::Words(fates)) if !known.contains(&fates.get(row)));
    let delay = |row| instant(end, row)?.checked_sub(instant(begin, row)?).filter(|_| has_ended(row));
    Column::Ints((0..batch.rows).map(delay).collect())
}

fn rows_writer<'a>(
    format: RowFormat,
    target: &'a mut OutputTarget<'_>,
    schema: &ExportSchema,
) -> Result<Box<dyn RowsWriter + 'a>, ExportBreak> {
    Ok(match format {
        RowFormat::Csv => Box::new(LinesWriter::new(target, LineForm::Csv, schema)?),
        RowFormat::Jsonl => Box::new(LinesWriter::new(target, LineForm::Json, schema)?),
        RowFormat::Parquet => Box::new(ParquetRowsWriter::new(target, schema)?),
    })
}

/// The columns that are constant within a run, and their cells in each run.
struct Keys {
    columns: Vec<ColumnSpec>,
    cells: Vec<Vec<ExportCell>>,
}

/// Columns that every file has, in their order; further factors follow where a run has a level of them.
const FIRST: [&str; 9] =
    ["run", "recording", "target", "transport", "size_bytes", "schedule", "interval_ns", "wait", "loads"];

impl Keys {
    /// Those of `runs` beside the columns of a table. A key that the table has as a column is left out, or renamed.
    fn of(runs: &[ExportedRun], table: &[ColumnSpec], renamed: impl Fn(&str) -> Option<String>) -> Keys {
        let mut named: Vec<BTreeMap<KeyName, ExportCell>> = runs.iter().map(key_cells).collect();
        let is_taken = |name: &KeyName| table.iter().any(|column| column.name == name.name);
        for cells in &mut named {
            let taken: Vec<KeyName> = cells.keys().filter(|name| is_taken(name)).cloned().collect();
            for key in taken {
                let cell = cells.remove(&key);
                if let (Some(cell), Some(name)) = (cell, renamed(&key.name)) {
                    cells.insert(KeyName { name, ..key }, cell);
                }
            }
        }
        let has_value = |cell: &ExportCell| *cell != ExportCell::Null;
        let all = named.iter().flat_map(|cells| cells.iter());
        let names: BTreeSet<&KeyName> =
            all.filter(|(name, cell)| name.place.0 < FURTHER || has_value(cell)).map(|(name, _)| name).collect();
        let type_of = |name: &KeyName| {
            let cell = named.iter().filter_map(|cells| cells.get(name)).find(|cell| has_value(cell));
            match cell {
                Some(ExportCell::Int(_)) => ColumnType::I64,
                Some(ExportCell::Flag(_)) => ColumnType::Flag,
                None if name.name.ends_with("_ns") || name.name.ends_with("_bytes") => ColumnType::I64,
                _ => ColumnType::Word,
            }
        };
        let column = |name: &&KeyName| match name.name.as_str() {
            "run" | "recording" => ColumnSpec::required(name.name.clone(), type_of(name)),
            _ => ColumnSpec::nullable(name.name.clone(), type_of(name)),
        };
        let cell = |cells: &BTreeMap<KeyName, ExportCell>, name: &KeyName| {
            cells.get(name).cloned().unwrap_or(ExportCell::Null)
        };
        let columns = names.iter().map(column).collect();
        let cells = named.iter().map(|cells| names.iter().map(|name| cell(cells, name)).collect()).collect();
        Keys { columns, cells }
    }
}

/// The name of a key column and its place: by this number, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyName {
    place: (usize, usize),
    name: String,
}

/// Places behind [`FIRST`]: further factors, settings, tags, the experiment, its factors.
const FURTHER: usize = 1;
const SETTING: usize = 2;
const TAG: usize = 3;
const EXPERIMENT: usize = 4;
const EXPERIMENT_FACTOR: usize = 5;

/// The keys of `run`: its names, its condition as the manifest has it, its place in an experiment.
fn key_cells(run: &ExportedRun) -> BTreeMap<KeyName, ExportCell> {
    let mut cells = BTreeMap::new();
    let mut insert = |place: (usize, usize), name: String, cell: ExportCell| {
        cells.insert(KeyName { place, name }, cell);
    };
    let text = |text: &str| ExportCell::Text(text.to_owned());
    let factors = run.spec.condition();
    for (number, name) in FIRST.into_iter().enumerate() {
        let cell = match name {
            "run" => text(&run.id),
            "recording" => text(&run.name),
            "loads" if run.is_imported => ExportCell::Null,
            "loads" => text(run.spec.loads_words().as_deref().unwrap_or("none")),
            factor => cell_of(factors.get(factor)),
        };
        insert((0, number), name.into(), cell);
    }
    let is_further = |name: &str| !FIRST.contains(&name) && name != "settings" && name != "tags";
    for (name, value) in factors.iter().filter(|(name, _)| is_further(name)) {
        insert((FURTHER, 0), name.clone(), cell_of(Some(value)));
    }
    for (knob, value) in &run.spec.values_of_settings() {
        insert((SETTING, 0), format!("setting:{knob}"), text(value));
    }
    for (tag, value) in &run.spec.tags {
        insert((TAG, 0), format!("tag:{tag}"), text(value));
    }
    if let Some(experiment) = &run.experiment {
        insert((EXPERIMENT, 0), "experiment".into(), text(&experiment.experiment));
        insert((EXPERIMENT, 1), "block".into(), ExportCell::Int(experiment.block.into()));
        insert((EXPERIMENT, 2), "warmup_run".into(), ExportCell::Flag(experiment.warmup));
        for (factor, level) in &experiment.factors {
            insert((EXPERIMENT_FACTOR, 0), format!("factor:{factor}"), text(level));
        }
    }
    cells
}

fn cell_of(value: Option<&Value>) -> ExportCell {
    match value {
        None | Some(Value::Null) => ExportCell::Null,
        Some(Value::Bool(flag)) => ExportCell::Flag(*flag),
        Some(Value::String(text)) => ExportCell::Text(text.clone()),
        Some(value) => value.as_i64().map_or_else(|| ExportCell::Text(value.to_string()), ExportCell::Int),
    }
}
