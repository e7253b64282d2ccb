//! `latlab check-published`: recomputes published figures from the raw data, and judges published orders of groups.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use super::Outcome;
use super::import::{BYTE_ORDER_MARK, HEAD_BYTES, LogInput, expect_delays, unreadable};
use super::observation_groups::{self, located};
use crate::analysis::comparison::{ComparisonRequest, RunGroups, parse_estimand};
use crate::analysis::published::{
    FigureCheck, Halving, PublishedData, SampleError, SampleRows, StatedClaims, StatedValues, UnfitNumber, UnfitSample,
    check_figures, check_orders,
};
use crate::cli::resolve::{CheckPublishedJob, CheckedSubject, RawSample, Sources};
use crate::console::Console;
use crate::diagnostics::{Explain, Failure, in_words};
use crate::facts::RowNumbers;
use crate::formats::import::{
    LogBlock, LogError, LogFault, LogFormat, LogHead, LogOptions, LogRows, expect_text, format_named, format_of,
    read_log,
};
use crate::formats::numbers::{self, STDIN, TextColumn};
use crate::metric::Metric;
use crate::plan::{Kind, defaults};
use crate::platform::input_file;
use crate::recording::Recording;
use crate::report::check_published::PublicationReport;
use crate::units::human::listed;

/// Rows that are taken at a time.
const BLOCK_ROWS: usize = 1 << 17;
/// The most bytes of a file of claims.
const CLAIMS_BYTES_MAX: u64 = 1 << 20;

/// Checks what is published, and prints a verdict for each claim that the data decide; the failure names the others.
pub(super) fn run(job: &CheckPublishedJob, console: &Console) -> Result<Outcome, Failure> {
    let claims = claims(job)?;
    let report = match &job.subject {
        CheckedSubject::Sample(sample) => {
            if let Some(order) = claims.orders.first() {
                return Err(Failure::request(format!("cannot check the claim `{}`", order.text))
                    .because("one sample has no groups")
                    .hint("give the groups by `--group NAME=GLOB`, each of several runs or lines"));
            }
            let (data, source) = read(sample, job.metric.as_deref(), console)?;
            expect_values(&data, &source)?;
            let figures = check_figures(&data, &claims.figures, sample.unit)?;
            PublicationReport { source, figures: Some(figures), orders: Vec::new() }
        }
        CheckedSubject::Groups(sources) => of_groups(&claims, sources, job.metric.as_deref(), console)?,
    };
    match job.json {
        true => console.document(&report.json())?,
        false => console.data(&report.text(console.data_style()))?,
    }
    match report.figures.as_ref().and_then(FigureCheck::refusal) {
        Some(failure) => Err(failure),
        None if report.all_hold() => Ok(Outcome::Done),
        None => Ok(Outcome::AnswerIsNo),
    }
}

fn claims(job: &CheckPublishedJob) -> Result<StatedClaims, Failure> {
    let mut claims = StatedClaims::default();
    job.claims.iter().try_for_each(|text| claims.add(text))?;
    if let Some(path) = &job.claims_file {
        let message = format!("cannot read the claims in `{}`", path.display());
        let refuse = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => Failure::request(&message).because(in_words(&error)).hint("check the path"),
            _ => input_file::failure(&message, &error),
        };
        let text = input_file::read_text(path, CLAIMS_BYTES_MAX).map_err(refuse)?;
        claims.add(&text)?;
    }
    match claims.is_empty() {
        true => Err(Failure::request("there is nothing to check")
            .because("no claim was given")
            .hint("such as `--claims 'mean=296us max=3256us n=50000'`")),
        false => Ok(claims),
    }
}

/// Refuses a sample without any value, of which no figure exists. Lost probes are values.
fn expect_values(data: &PublishedData, source: &str) -> Result<(), Failure> {
    match data.answered() + data.lost {
        0 => Err(Failure::request(format!("cannot check figures of `{source}`"))
            .because("it has no values")
            .hint("check the path; `-C N` picks another column of a file of numbers")),
        _ => Ok(()),
    }
}

/// The sample, and the path that it is called by.
fn read(sample: &RawSample, metric: Option<&str>, console: &Console) -> Result<(PublishedData, String), Failure> {
    let path = located(&sample.path)?;
    if path.is_dir() {
        return Ok((recorded(&path, sample, metric, console)?, path.display().to_string()));
    }
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { STDIN.to_owned() } else { path.display().to_string() };
    let mut input = LogInput::open(&path, &Arc::default())?;
    let head = input.head(HEAD_BYTES).map_err(|error| unreadable(&name, &error))?;
    let is_whole = head.len() < HEAD_BYTES;
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&head);
    let beginning = LogHead { bytes: head, is_whole };
    // A file of numbers is text as well.
    expect_text(&beginning).map_err(|fault| refusal(&name, fault))?;
    if let Some(format) = log_format(sample, &beginning, &name)? {
        return Ok((logged(format, sample, metric, &name, &mut head.chain(input))?, name));
    }
    if sample.direction.is_some() {
        return Err(Failure::request("`--direction` cannot go with a file of numbers")
            .because("its numbers have no directions, as those of a log of fio have")
            .hint("leave it out, or state `--from fio` if it is such a log"));
    }
    if let Some(metric) = metric {
        return Err(Failure::request("`--metric` cannot go with a file of numbers")
            .because(format!("it does not say which of its numbers are of `{metric}`"))
            .hint("leave it out: the numbers are taken as they are"));
    }
    let values = numbers::read_numbers(&name, head.chain(input), &sample.column)?;
    numbers::expect_memory(&name, values.len())?;
    let halving = match (sample.half, sample.sleep, sample.unit) {
        (true, ..) => Halving::Halved,
        (_, Some(_), _) | (_, _, None) => Halving::NotRoundTrip,
        (false, None, Some(_)) => Halving::Unknown,
    };
    let ids = ids(sample, &path, values.len())?;
    let mut numbers = RowNumbers::default();
    for id in ids.iter().flatten() {
        numbers.next(Some(*id));
    }
    let data = PublishedData::of_numbers(&values, sample.unit, ids).map_err(|unfit| too_large(sample, &name, unfit))?;
    Ok((PublishedData { missing_ids: numbers.missing, halving, sleep: sample.sleep, ..data }, name))
}

/// The failure of a file of numbers, one of which is too large.
fn too_large(sample: &RawSample, name: &str, unfit: UnfitNumber) -> Failure {
    let UnfitNumber { index, number } = unfit;
    let place = match line_of(&sample.path, &sample.column, index) {
        Some(line) => format!("line {line}"),
        None => format!("number {}", index + 1),
    };
    // As in the file, or nearly so.
    let number = if number.abs() < 1e16 { format!("{number}") } else { format!("{number:e}") };
    let (limit, hint) = match sample.unit {
        Some(unit) => (
            format!("{number} {} is not a time below 146 years", unit.symbol()),
            "check the unit (`--unit ns|us|ms|s`) and the column (`-C N`)",
        ),
        None => (
            format!("{number} is not a number below 2^62, about 4.6e18"),
            "check the column (`-C N`), or divide numbers and claims by one power of ten",
        ),
    };
    Failure::request(format!("cannot check figures of `{name}`")).because(format!("{place}: {limit}")).hint(hint)
}

/// Lines that are searched together.
const SEARCHED_LINES: usize = 1 << 12;

/// The line, from 1, of the number at `index` in `column`. `None` unless the file at `path` is one that can be read again.
fn line_of(path: &Path, column: &TextColumn, index: usize) -> Option<u64> {
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut input = BufReader::new(input_file::open(path).ok()?);
    if input.fill_buf().ok()?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    let (mut line, mut seen) = (0, 0);
    loop {
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        while ends.len() < SEARCHED_LINES && input.read_until(b'\n', &mut text).ok()? > 0 {
            ends.push(text.len());
        }
        let end = *ends.last()?;
        let numbers_to = |end: usize| numbers::read_numbers("", &text[..end], column).map(|found| seen + found.len());
        let after = numbers_to(end).ok()?;
        if after > index {
            let before = ends.partition_point(|end| numbers_to(*end).is_ok_and(|after| after <= index));
            return Some(line + before as u64 + 1);
        }
        seen = after;
        line += ends.len() as u64;
    }
}

/// The format of the log that begins with `head`; `None` for a file of numbers.
fn log_format(sample: &RawSample, head: &LogHead<'_>, name: &str) -> Result<Option<&'static LogFormat>, Failure> {
    let numbers = format_named("numbers");
    match sample.from {
        Some(typed) => format_of(head, Some(typed)).map(Some).map_err(|fault| refusal(name, fault)),
        // Without a format it may be a file of numbers with comments, and with its error.
        None if sample.is_table => Ok(None),
        None => Ok(format_of(head, None).ok().filter(|format| Some(*format) != numbers)),
    }
}

/// The failure of a log that cannot be checked.
fn refusal(name: &str, fault: LogFault) -> Failure {
    let failure = Failure::request(format!("cannot read `{name}`")).because(fault.in_words());
    let skippable =
        fault.column.is_some().then(|| "`latlab import --skip-bad` makes a recording without such lines".to_owned());
    let own = fault.hint.map(|hint| hint.replace("latlab import -", "latlab check-published -"));
    match own.into_iter().chain(skippable).collect::<Vec<_>>().join("; ") {
        hint if hint.is_empty() => failure,
        hint => failure.hint(hint),
    }
}

/// The failure to check figures of `metric`, where `known` are possible of `what`.
fn unusable(metric: &str, what: &str, known: &[Metric]) -> Failure {
    let known: Vec<String> = known.iter().map(|metric| metric.name().to_owned()).collect();
    Failure::request(format!("cannot check figures of `{metric}`"))
        .because(format!("it is {what} with {}", listed(&known)))
        .hint("name a delay of it with `--metric`")
}

/// The values of the log `input`, as its recording would have them.
fn logged(
    format: &LogFormat,
    sample: &RawSample,
    metric: Option<&str>,
    name: &str,
    input: &mut dyn Read,
) -> Result<PublishedData, Failure> {
    expect_delays(name, format)
        .map_err(|failure| Failure { message: format!("cannot check figures of `{name}`"), ..failure })?;
    let known: &[Metric] = match format.rows {
        Kind::Stream => return Err(refusal(name, LogFault::whole("rates of streams are not checked"))),
        Kind::Values => &Metric::VALUES,
        _ => &[Metric::RoundTripDelay, Metric::RoundTripDelayLessDwell],
    };
    let asked = |name: &str| {
        let found = Metric::from_name(name).filter(|metric| known.contains(metric));
        found.ok_or_else(|| unusable(name, format.title, known))
    };
    let asked = metric.map(asked).transpose()?;
    let options = LogOptions {
        // Where the log states its unit, that of the claims is meant.
        unit: sample.unit.filter(|_| format.options.contains(&"--unit")),
        column: sample.csv_column.clone(),
        direction: sample.direction.clone(),
        metric: asked.filter(|_| format.options.contains(&"--metric")),
    };
    let mut rows = SampleRows::default();
    let mut pass = |block: &LogBlock| {
        block.probes.iter().for_each(|probe| rows.probe(probe));
        block.values.iter().for_each(|row| rows.value(row));
        rows.expect_fit().map_err(io::Error::other)
    };
    let end = read_log(format, input, &options, false, LogRows::new(BLOCK_ROWS, &mut pass));
    rows.expect_fit().map_err(|unfit| unfit_in(name, unfit))?;
    let facts = match end {
        Ok(end) => end.facts,
        Err(LogError::Fault(fault)) => return Err(refusal(name, fault)),
        Err(LogError::Unreadable(error) | LogError::Unwritable(error)) => return Err(unreadable(name, &error)),
    };
    let stated = StatedValues::of_log(&facts, format.states_losses);
    let stated = match asked {
        Some(asked) if format.rows == Kind::Values && stated.metric != asked => {
            return Err(unusable(asked.name(), format.title, &[stated.metric]));
        }
        asked => StatedValues { metric: asked.unwrap_or(stated.metric), ..stated },
    };
    rows.sample(&stated.with(sample.half, sample.sleep)).map_err(|unfit| unfit_in(name, unfit))
}

/// The failure of `unfit` values of `name`.
fn unfit_in(name: &str, unfit: UnfitSample) -> Failure {
    let failure = unfit.explain();
    Failure { message: format!("{} of `{name}`", failure.message), ..failure }
}

/// The packet ids of a file of `count` numbers, if it has a column of them.
fn ids(sample: &RawSample, path: &Path, count: usize) -> Result<Option<Vec<u64>>, Failure> {
    let Some(column) = &sample.id_column else { return Ok(None) };
    let ids = numbers::read_file(path, column)?;
    let is_id = |id: &f64| *id >= 0.0 && id.fract() == 0.0 && *id < 9e15;
    if ids.len() != count || !ids.iter().all(is_id) {
        return Err(Failure::request(format!("column {} of `{}` has no packet ids", column.number, path.display()))
            .because(format!("{count} values need as many whole numbers, and it has {} numbers", ids.len()))
            .hint("`--id-column N` picks another column, `-C N` that of the values"));
    }
    Ok(Some(ids.into_iter().map(|id| id as u64).collect()))
}

/// The `metric` of the recording at `path`.
fn recorded(
    path: &Path,
    sample: &RawSample,
    metric: Option<&str>,
    console: &Console,
) -> Result<PublishedData, Failure> {
    let recording = Recording::open(path)?;
    recording.note().into_iter().for_each(|note| console.note(note));
    let manifest = recording.manifest();
    let main = [manifest.metric()];
    // Values of a log are of one metric.
    let known = if manifest.kind == Kind::Values { &main } else { manifest.kind.metrics() };
    let unusable = |metric: &str| unusable(metric, &format!("a recording of `{}`", manifest.kind.word()), known);
    let metric = match metric {
        None => main[0],
        Some(name) => Metric::from_name(name).ok_or_else(|| unusable(name))?,
    };
    if metric.is_rate() || !known.contains(&metric) {
        return Err(unusable(metric.name()));
    }
    let stated = StatedValues::of_recording(manifest, metric).with(sample.half, sample.sleep);
    PublishedData::of_source(&recording, &stated).map_err(|error| match error {
        SampleError::Unfit(unfit) => unfit_in(&path.display().to_string(), unfit),
        SampleError::Unreadable(error) => error.into(),
    })
}

/// The report on published orders of groups.
fn of_groups(
    claims: &StatedClaims,
    sources: &Sources,
    metric: Option<&str>,
    console: &Console,
) -> Result<PublicationReport, Failure> {
    if let Some(figure) = claims.figures.first() {
        return Err(Failure::request(format!("cannot check the claim `{}` of groups", figure.text))
            .because("a figure is of one sample")
            .hint("give the PATH of its raw data instead of `--group`"));
    }
    let mut paths = observation_groups::path_groups(sources)?;
    let (groups, request): (RunGroups, ComparisonRequest) = if observation_groups::are_numbers(&paths)? {
        observation_groups::once_each(&mut paths, console)?;
        (observation_groups::of_numbers(&paths, sources)?, ComparisonRequest::of_values(None))
    } else {
        let found = observation_groups::find(&paths, sources.kind, console)?;
        let mut request = ComparisonRequest::default();
        request.ask(parse_estimand(metric.or_else(|| observation_groups::usual_metric(&found)), "mean")?, None, None);
        (observation_groups::of_recordings(found, sources, &request.estimands(), console)?, request)
    };
    let names: Vec<String> = groups.groups.iter().map(|group| group.name.clone()).collect();
    let orders = check_orders(&groups, &request, &claims.orders, defaults::CONFIDENCE)?;
    for order in &orders {
        order.caveats.iter().for_each(|caveat| console.caveat(caveat));
    }
    Ok(PublicationReport { source: listed(&names), figures: None, orders })
}
