//! `latlab check-published`: recomputes published figures from the raw data.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::Outcome;
use super::import::{self, LogInput, OpenLog};
use super::observation_groups::located;
use crate::analysis::published::{FigureClaim, Halving, PublishedData, check_figures, parse_claims};
use crate::cli::args::CheckPublishedArgs;
use crate::cli::resolve::{ImportJob, text_column};
use crate::cli::value::unusable;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::facts::{CommandLine, RowNumbers};
use crate::formats::import::{LogFormat, LogOptions, format_named};
use crate::formats::numbers::{self, STDIN, TextColumn};
use crate::metric::Metric;
use crate::plan::{Kind, defaults};
use crate::platform::{SignalWatch, input_file};
use crate::recording::Recording;
use crate::report::check_published;
use crate::units::human::{TimeUnit, grouped, listed};

/// The most bytes of a file of claims.
const CLAIMS_BYTES_MAX: u64 = 1 << 20;

/// Checks what is published, and prints a verdict for each claim.
pub(super) fn run(args: &CheckPublishedArgs, console: &Console) -> Result<Outcome, Failure> {
    let claims = claims(args)?;
    // The recording of a log is a temporary one, which an interrupt must not leave.
    let interrupt = SignalWatch::listen().map_err(refused("listen to signals"))?;
    let read = read(args, &interrupt, console);
    if let Some(outcome) = interrupt.outcome() {
        return Ok(outcome);
    }
    let (data, source) = read.map_err(for_check)?;
    let check = check_figures(&data, &claims, args.sample.unit)?;
    if args.json.json {
        console.document(&check_published::json(&check, &source))?;
    } else {
        console.data(&check_published::text(&check, &source, console.data_style()))?;
    }
    Ok(if check.all_hold() { Outcome::Done } else { Outcome::AnswerIsNo })
}

/// A failure of an import with a hint that fits this command.
fn for_check(failure: Failure) -> Failure {
    let fitting = |hint: String| {
        let hint = hint.replace("latlab import -", "latlab check-published -");
        hint.replace("`--skip-bad` skips such lines, and counts them", "`latlab import --skip-bad` skips such lines")
    };
    Failure { hint: failure.hint.map(fitting), ..failure }
}

fn claims(args: &CheckPublishedArgs) -> Result<Vec<FigureClaim>, Failure> {
    let mut claims = parse_claims(&args.claims.claims.join("\n"))?;
    if let Some(path) = &args.claims.claims_file {
        let message = format!("cannot read the claims in `{}`", path.display());
        let refuse = |error| Failure { exit_code: 2, ..input_file::failure(&message, &error) }.hint("check the path");
        claims.extend(parse_claims(&input_file::read_text(path, CLAIMS_BYTES_MAX).map_err(refuse)?)?);
    }
    if claims.is_empty() {
        return Err(Failure::request("there is nothing to check")
            .because("no claim was given")
            .hint("such as `--claims 'mean=296us max=3256us n=50000'`"));
    }
    Ok(claims)
}

/// The sample, and the path that it is called by.
fn read(
    args: &CheckPublishedArgs,
    interrupt: &SignalWatch,
    console: &Console,
) -> Result<(PublishedData, String), Failure> {
    let path = located(&args.path)?;
    let name = if path.as_os_str() == "-" { STDIN.to_owned() } else { path.display().to_string() };
    let data = if path.is_dir() {
        let recording = Recording::open(&path)?;
        recording.note().into_iter().for_each(|note| console.note(note));
        recorded(&recording, &name, args)?
    } else {
        let log = OpenLog::of(LogInput::open(&path, interrupt.stop())?, &name)?;
        // Without a format it may be a file of numbers with comments, and with its error.
        let (columns, sample) = (&args.column, &args.sample);
        let is_table = columns.column.is_some() || columns.delimiters.is_some() || sample.id_column.is_some();
        let has_column = sample.csv_column.is_some() || sample.count_column.is_some();
        let found = match sample.from.or_else(|| format_named("csv").filter(|_| has_column)) {
            Some(format) => Some(log.format(Some(format))?),
            None if is_table => None,
            None => log.format(None).ok().filter(|format| Some(*format) != format_named("numbers")),
        };
        match found {
            Some(format) => logged(log, format, args, console)?,
            None => of_numbers(log, args, &path)?,
        }
    };
    if data.answered() + data.lost == 0 {
        return Err(Failure::request(format!("cannot check published values of `{name}`"))
            .because("it has no values")
            .hint("check the path; `-C N` picks another column of a file of numbers"));
    }
    Ok((data, name))
}

/// The values of a log, from a temporary recording of it.
fn logged(
    mut log: OpenLog,
    format: &'static LogFormat,
    checked: &CheckPublishedArgs,
    console: &Console,
) -> Result<PublishedData, Failure> {
    let directory = tempfile::tempdir().map_err(refused("make a temporary directory"))?;
    let takes = |option: &str| format.options.contains(&option);
    let metric_of_values =
        checked.sample.metric.as_deref().and_then(Metric::from_name).filter(|own| Metric::VALUES.contains(own));
    let options = LogOptions {
        // Where the log states its unit, that of the claims is meant.
        unit: checked.sample.unit.filter(|_| takes("--unit")),
        column: checked.sample.csv_column.clone(),
        count_column: checked.sample.count_column.clone(),
        lost: checked.sample.lost.clone(),
        direction: checked.sample.direction.clone(),
        metric: metric_of_values.filter(|_| takes("--metric")),
    };
    let job = ImportJob {
        file: checked.path.clone(),
        format: Some(format),
        options,
        skip_bad: false,
        store: directory.path().to_owned(),
        output: None,
        tags: BTreeMap::new(),
        json: false,
    };
    let name = log.name.clone();
    let imported = import::import(&job, &CommandLine::of(&["latlab"]), &mut log, format, console)?;
    recorded(&imported.recording, &name, checked)
}

/// The `metric` of a recording.
fn recorded(recording: &Recording, name: &str, args: &CheckPublishedArgs) -> Result<PublishedData, Failure> {
    let metric = args.sample.metric.as_deref();
    let manifest = recording.manifest();
    let main = [manifest.metric()];
    // Values of a log are of one metric.
    let known = if manifest.kind == Kind::Values { &main } else { manifest.kind.metrics() };
    let found = metric.map_or(Some(main[0]), Metric::from_name);
    let Some(found) = found.filter(|metric| !metric.is_rate() && known.contains(metric)) else {
        let known: Vec<String> = known.iter().map(|metric| metric.name().to_owned()).collect();
        return Err(Failure::request(format!(
            "cannot check published values of `{}`",
            metric.unwrap_or(main[0].name())
        ))
        .because(format!("it is a recording of `{}` with {}", manifest.kind.word(), listed(&known)))
        .hint("name a delay of it with `--metric`"));
    };
    PublishedData::of_recording(recording, found, args.sample.half)?.ok_or_else(|| {
        let most = grouped(defaults::NUMBERS_MAX as u64);
        Failure::request(format!("cannot check more than {most} values of `{name}`"))
            .because("all of them are kept in memory and sorted")
            .hint("check a part of the log; `latlab summary` has statistics of all of it")
    })
}

fn of_numbers(mut log: OpenLog, args: &CheckPublishedArgs, path: &Path) -> Result<PublishedData, Failure> {
    let sample = &args.sample;
    let given = [
        ("--direction", sample.direction.is_some()),
        ("--metric", sample.metric.is_some()),
        ("--lost", sample.lost.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::request(format!("`{option}` cannot go with a file of numbers"))
            .because("its numbers are taken as they are")
            .hint("leave it out, or state the format of the log with `--from`"));
    }
    let column = text_column(&args.column);
    let values = numbers::read_numbers(&log.name, log.head.chain(&mut log.input), &column)?;
    numbers::expect_memory(&log.name, values.len())?;
    let ids = ids(args, path, values.len())?;
    let mut rows = RowNumbers::default();
    for id in ids.iter().flatten() {
        rows.next(Some(*id));
    }
    let unit = args.sample.unit.map_or(1.0, TimeUnit::nanos);
    Ok(PublishedData {
        ids,
        id_unit: unit,
        missing_ids: rows.missing,
        halving: match (args.sample.half, args.sample.unit) {
            (true, _) => Halving::Halved,
            (false, Some(_)) => Halving::Unknown,
            (false, None) => Halving::NotRoundTrip,
        },
        ..PublishedData::of_values(values.into_iter().map(|value| value * unit), args.sample.unit.is_some())
    })
}

/// The packet ids of a file of `count` numbers, if it has a column of them.
fn ids(args: &CheckPublishedArgs, path: &Path, count: usize) -> Result<Option<Vec<u64>>, Failure> {
    let Some(number) = args.sample.id_column else { return Ok(None) };
    if path.as_os_str() == "-" {
        let cause = "standard input can be read once, and the ids would need a second reading";
        return Err(unusable("--id-column", number, cause, "name the file"));
    }
    let ids = numbers::read_file(path, &TextColumn { number, ..text_column(&args.column) })?;
    let is_id = |id: &f64| *id >= 0.0 && id.fract() == 0.0 && *id < 9e15;
    if ids.len() != count || !ids.iter().all(is_id) {
        return Err(Failure::request(format!("column {number} of `{}` has no packet ids", path.display()))
            .because(format!("{count} values need as many whole numbers, and it has {} numbers", ids.len()))
            .hint("`--id-column N` picks another column, `-C N` that of the values"));
    }
    Ok(Some(ids.into_iter().map(|id| id as u64).collect()))
}
