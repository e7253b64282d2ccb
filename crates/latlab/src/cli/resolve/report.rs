//! Resolution of `latlab report`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::Sources;
use super::compare::sources;
use crate::cli::args::{ColumnArgs, FigureFormat, JudgingArgs, ReportArgs, WritingArgs};
use crate::cli::value::unusable;
use crate::diagnostics::Failure;

#[derive(Clone, Debug, PartialEq)]
pub struct ReportJob {
    /// Recordings, experiments and stores, and how their runs are grouped.
    pub sources: Sources,
    /// Metric of comparisons as typed; `None` selects that of the experiment's file, else the main metric of the kind.
    pub metric: Option<String>,
    /// Quantiles, deadline and windows of the summaries.
    pub judging: JudgingArgs,
    /// True to show the delays of each way.
    pub one_way: bool,
    /// The only figure to be written; `None` for the whole page.
    pub figure: Option<FigureRequest>,
    /// Where the page or picture is written.
    pub destination: ReportDestination,
    /// True to replace any file.
    pub force: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FigureRequest {
    /// The names of the figures that there are.
    Names,
    One {
        /// Its name as typed.
        name: String,
        /// SVG or CSV, by the end of its name.
        format: FigureFormat,
    },
}

/// Where a report is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportDestination {
    /// A file in the working directory, named by what it reports.
    Usual,
    /// Standard output.
    Stdout,
    File(PathBuf),
}

/// Resolves the arguments and checks them against each other.
pub fn report(typed: &ReportArgs) -> Result<ReportJob, Failure> {
    let sources = sources(&typed.grouping, &ColumnArgs::default(), &typed.paths)?;
    let writing = &typed.writing;
    typed.judging.distinct_quantiles()?;
    let figure = figure(writing)?;
    let destination = match &writing.output {
        None => ReportDestination::Usual,
        Some(path) if path.as_os_str() == "-" => ReportDestination::Stdout,
        Some(path) => ReportDestination::File(path.clone()),
    };
    Ok(ReportJob {
        sources,
        metric: typed.metric.clone(),
        judging: typed.judging.clone(),
        one_way: typed.one_way,
        figure,
        destination,
        force: writing.force,
    })
}

/// What of the figures is written. The form is typed, or that of the end of the file's name.
fn figure(typed: &WritingArgs) -> Result<Option<FigureRequest>, Failure> {
    let end = typed.output.as_deref().and_then(Path::extension).and_then(|end| end.to_str());
    let of_end = end.and_then(|end| FigureFormat::from_str(end, true).ok());
    let output = typed.output.as_deref().unwrap_or(Path::new("")).display();
    let unusable = |cause, hint| unusable("--output", &output, cause, hint);
    match (typed.figure.as_deref(), of_end, end) {
        (Some(_), None, Some("png" | "PNG")) => Err(unusable(
            "latlab does not draw pixels",
            "name an svg, and convert it: `rsvg-convert -z 3 -o FILE.png FILE.svg`",
        )),
        (None, Some(_), _) => Err(unusable("a page is HTML", "for a single plot add `--figure NAME`")),
        (None, None, _) => Ok(None),
        (Some("list"), ..) => Ok(Some(FigureRequest::Names)),
        (Some(_), None, Some(_)) if typed.format.is_none() => {
            Err(unusable("it is not the format of a plot", "svg or csv; `--format` for a file with another name"))
        }
        (Some(_), Some(of_end), _) if typed.format.is_some_and(|format| format != of_end) => Err(unusable(
            "its extension names another format than `--format`",
            "leave `--format` out, or name another file",
        )),
        (Some(name), ..) => {
            let format = typed.format.or(of_end).unwrap_or_default();
            Ok(Some(FigureRequest::One { name: name.into(), format }))
        }
    }
}
