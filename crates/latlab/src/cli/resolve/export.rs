//! Resolution of `latlab export`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::cli::args::{ExportArgs, ExportContentArgs, ExportFormat};
use crate::cli::value::out_of_place;
use crate::diagnostics::Failure;
use crate::formats::export::probes::ProbeForm;
use crate::plan::Kind;
use crate::recording::RecordedTable;
use crate::units::human::TimeUnit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportJob {
    /// Recordings, stores and experiments as typed.
    pub recordings: Vec<PathBuf>,
    /// Only runs of this kind; `None`: all of them, which must be of one kind.
    pub kind: Option<Kind>,
    pub content: ExportContent,
    /// The file; `None` for standard output.
    pub output: Option<PathBuf>,
    /// True to replace any file.
    pub force: bool,
}

/// What is written. Metrics and statistics are as typed; `None` selects the main metric of the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportContent {
    Rows {
        format: RowFormat,
        /// `None` for the main table of the kind.
        table: Option<RecordedTable>,
    },
    /// The bins of the histogram of each run, as CSV or JSON lines.
    Bins {
        format: RowFormat,
        metric: Option<String>,
    },
    Hlog {
        metric: Option<String>,
    },
    /// A number for each run.
    Values {
        metric: Option<String>,
        statistic: String,
        /// Its unit.
        unit: TimeUnit,
    },
    /// A number for each probe.
    Singletons {
        metric: Option<String>,
        /// Its unit.
        unit: TimeUnit,
    },
    /// The probes of one run.
    Probes {
        form: ProbeForm,
    },
    /// One run as a trace.
    Trace,
    /// Mean and standard deviation of each run.
    Jitter {
        metric: Option<String>,
        unit: TimeUnit,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    Csv,
    Jsonl,
    Parquet,
}

/// Resolves the arguments and checks them against each other.
pub fn export(typed: &ExportArgs) -> Result<ExportJob, Failure> {
    let output = typed.writing.output.clone().filter(|path| path.as_os_str() != "-");
    let format = typed.content.format.or_else(|| output.as_deref().and_then(format_of_end)).unwrap_or_default();
    Ok(ExportJob {
        recordings: typed.recordings.clone(),
        kind: typed.content.kind,
        content: content(&typed.content, format)?,
        output,
        force: typed.writing.force,
    })
}

/// The format whose files usually have the end of this name.
fn format_of_end(path: &Path) -> Option<ExportFormat> {
    Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => ExportFormat::Csv,
        "jsonl" | "ndjson" => ExportFormat::Jsonl,
        "parquet" => ExportFormat::Parquet,
        "hlog" => ExportFormat::Hlog,
        "pftrace" | "perfetto-trace" => ExportFormat::Perfetto,
        _ => return None,
    })
}

fn content(typed: &ExportContentArgs, format: ExportFormat) -> Result<ExportContent, Failure> {
    let rows = match format {
        ExportFormat::Csv => Some(RowFormat::Csv),
        ExportFormat::Jsonl => Some(RowFormat::Jsonl),
        ExportFormat::Parquet => Some(RowFormat::Parquet),
        _ => None,
    };
    expect_in_place(typed, format, rows)?;
    let metric = typed.metric.clone();
    let unit = typed.unit.unwrap_or(TimeUnit::Nanos);
    Ok(match (rows, format) {
        (Some(format), _) if typed.histogram => ExportContent::Bins { format, metric },
        (Some(format), _) => ExportContent::Rows { format, table: typed.table },
        (None, ExportFormat::Perfetto) => ExportContent::Trace,
        (None, ExportFormat::Hlog) => ExportContent::Hlog { metric },
        (None, ExportFormat::RoundtripCsv) => ExportContent::Probes { form: ProbeForm::RoundtripCsv },
        (None, ExportFormat::FourTimes) => ExportContent::Probes { form: ProbeForm::FourTimes },
        (None, ExportFormat::Jitter) => ExportContent::Jitter { metric, unit: typed.unit.unwrap_or(TimeUnit::Micros) },
        (None, _) if typed.singletons => ExportContent::Singletons { metric, unit },
        (None, _) => {
            ExportContent::Values { metric, statistic: typed.statistic.clone().unwrap_or_else(|| "p50".into()), unit }
        }
    })
}

/// Refuses options that have no meaning for the format.
fn expect_in_place(typed: &ExportContentArgs, format: ExportFormat, rows: Option<RowFormat>) -> Result<(), Failure> {
    let word = format.to_possible_value();
    let with = format!("--format {}", word.as_ref().map_or("", PossibleValue::get_name));
    let refuse = |option, cause, hint| Err(out_of_place(option, &with, cause, hint));
    let is_values = format == ExportFormat::Values;
    let are_probes = matches!(format, ExportFormat::RoundtripCsv | ExportFormat::FourTimes | ExportFormat::Perfetto);
    if typed.histogram && !matches!(rows, Some(RowFormat::Csv | RowFormat::Jsonl)) {
        return refuse("--histogram", "bins are printed as text", "`--format csv` or `--format jsonl`");
    }
    if typed.metric.is_some() && (are_probes || rows.is_some()) && !typed.histogram {
        return refuse("--metric", "rows have instants, from which every metric follows", "leave it out");
    }
    if typed.table.is_some() && rows.is_none() {
        return refuse("--table", "it has statistics of a metric, not rows", "leave it out, or `--metric NAME`");
    }
    for (option, is_typed) in [
        ("--statistic", typed.statistic.is_some()),
        ("--singletons", typed.singletons),
        ("--unit", typed.unit.is_some()),
    ] {
        let is_unit_of_jitter = option == "--unit" && format == ExportFormat::Jitter;
        if is_typed && !is_values && !is_unit_of_jitter {
            return refuse(option, "only numbers without names have a choice of it", "`--format values`");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn resolve(line: &str) -> Result<ExportJob, Failure> {
        let typed = ["latlab", "export"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Export(args) => export(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_format_is_typed_or_that_of_the_end_of_the_file() {
        let rows = |format| ExportContent::Rows { format, table: None };
        for (line, expected) in [
            ("a", rows(RowFormat::Csv)),
            ("a -o x.parquet", rows(RowFormat::Parquet)),
            ("a -o x.NDJSON", rows(RowFormat::Jsonl)),
            ("a -o x.parquet --format csv", rows(RowFormat::Csv)),
            ("a -o x.txt", rows(RowFormat::Csv)),
            ("a -o x.hlog --metric send_slip", ExportContent::Hlog { metric: Some("send_slip".into()) }),
            ("a --histogram", ExportContent::Bins { format: RowFormat::Csv, metric: None }),
        ] {
            assert_eq!(resolve(line).expect(line).content, expected, "{line}");
        }
    }
}
