//! The commands and the functions that several of them share. `measure_and_report` holds ping, stream and wakeup.

mod agent;
mod check_published;
mod child_processes;
mod compare;
mod completions;
mod doctor;
mod experiment_executor;
mod export;
mod export_figures;
mod exported_runs;
mod import;
mod keys;
mod list;
mod live_view;
mod load;
mod manual;
mod measure_and_report;
mod observation_groups;
mod output_file;
mod recovery;
mod remedies;
mod report;
mod run;
mod serve;
mod summary;

use std::ffi::OsString;

use clap::error::ErrorKind;
use jiff::Timestamp;

use crate::diagnostics::Outcome;

use crate::cli::args::{CheckPublishedArgs, Command, ExportArgs, ImportArgs, RunArgs};
use crate::cli::resolve::{self, Environment};
use crate::cli::{self, error};
use crate::console::{Console, Verbosity};
use crate::diagnostics::Failure;
use crate::facts::CommandLine;

/// Runs the command line `typed` and returns the exit code.
pub fn run(typed: impl IntoIterator<Item = OsString>) -> u8 {
    let console = Console::of_this_process(Verbosity::Usual);
    let typed: Vec<OsString> = typed.into_iter().collect();
    let result = match completions::answer(&typed) {
        Ok(false) => parse_and_dispatch(typed, console),
        answered => answered.map(|_| Outcome::Done),
    };
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            Console::of_this_process(Verbosity::Quiet).failure(&failure);
            failure.exit_code
        }
    }
}

fn parse_and_dispatch(typed: Vec<OsString>, console: Console) -> Result<Outcome, Failure> {
    match cli::parse_for(typed.iter().cloned(), console.data_screen().columns) {
        Ok(cli) => dispatch(cli.command, &CommandLine::of(&typed), console),
        Err(answer) => page(&answer, &typed, &console),
    }
}

/// Runs `command`, which was typed as `line`.
fn dispatch(command: Command, line: &CommandLine, console: Console) -> Result<Outcome, Failure> {
    match command {
        Command::Completions(args) => completions::script(args.shell, &console),
        Command::Man(args) => manual::man_pages(&args, &console),
        Command::Help(args) => {
            let typed = ["latlab"].into_iter().chain(args.command.as_deref()).chain(["--help"]);
            parse_and_dispatch(typed.map(Into::into).collect(), console)
        }
        Command::Ping(args) => {
            let job = resolve::ping(&args, &Environment::of_this_process()?)?;
            measure_and_report::ping(&job, line, &console_after_recovery(console, job.verbosity))
        }
        Command::Wakeup(args) => {
            let job = resolve::wakeup(&args, &Environment::of_this_process()?)?;
            let measure = if job.try_remedies { remedies::run } else { measure_and_report::wakeup };
            measure(&job, line, &console_after_recovery(console, job.verbosity))
        }
        Command::Stream(args) => {
            let job = resolve::stream(&args, &Environment::of_this_process()?)?;
            measure_and_report::stream(&job, line, &console_after_recovery(console, job.verbosity))
        }
        Command::Serve(args) => {
            let spec = resolve::serve(&args)?;
            serve::run(&spec, &console_after_recovery(console, spec.verbosity))
        }
        Command::Summary(args) => {
            let spec = resolve::summary(&args)?;
            summary::run(&spec, &console_after_recovery(console, spec.verbosity))
        }
        Command::Doctor(args) => {
            let spec = resolve::doctor(&args)?;
            // `--restore` reports what it restores itself.
            let console_of = if spec.restore { Console::with_verbosity } else { console_after_recovery };
            doctor::run(&spec, &console_of(console, spec.verbosity))
        }
        Command::Compare(args) => {
            let job = resolve::compare(&args)?;
            compare::run(&job, &console_after_recovery(console, job.verbosity()))
        }
        Command::Report(args) => {
            let job = resolve::report(&args)?;
            report::run(&job, line, &console_after_recovery(console, job.verbosity))
        }
        Command::Export(args) => exported(&args, console),
        Command::CheckPublished(args) => checked_publication(&args, console),
        Command::List(args) => {
            let spec = resolve::list(&args, &Environment::of_this_process()?, Timestamp::now())?;
            list::run(&spec, &console_after_recovery(console, Verbosity::Usual))
        }
        Command::Import(args) => imported(&args, line, console),
        Command::Load(args) => {
            let job = resolve::hold(&args)?;
            load::run(&job, &console_after_recovery(console, job.verbosity))
        }
        Command::Run(args) => ran(&args, console),
        Command::Recipes(args) => run::recipes(resolve::recipes(&args)?, &console),
        Command::Keygen(args) => keys::run(&args.file, &console),
        Command::Reflector => child_processes::reflector(&console),
        Command::Stressor => child_processes::stressor(&console),
        Command::Guard { group } => child_processes::guard(group),
        Command::NetLoad => child_processes::net_load(&console),
        Command::Watchdog { agent } => child_processes::watchdog(agent),
        Command::Agent(args) => resolve::agent(args).map_err(Failure::from).and_then(|()| agent::run(&console)),
    }
}

fn imported(args: &ImportArgs, line: &CommandLine, console: Console) -> Result<Outcome, Failure> {
    let job = resolve::import(args, &Environment::of_this_process()?)?;
    import::run(&job, line, &console_after_recovery(console, job.verbosity))
}

fn ran(args: &RunArgs, console: Console) -> Result<Outcome, Failure> {
    let job = resolve::run(args, &Environment::of_this_process()?)?;
    run::run(&job, &console_after_recovery(console, job.verbosity))
}

fn exported(typed: &ExportArgs, console: Console) -> Result<Outcome, Failure> {
    let job = resolve::export(typed)?;
    export::run(&job, &console_after_recovery(console, job.verbosity))
}

/// The console of a command, after settings that dead processes left on this host were restored: every command that a
/// person starts begins with that. Commands that write files for other programs (`completions`, `man`, `keygen`) and
/// child processes do not; an agent does it itself.
fn console_after_recovery(console: Console, verbosity: Verbosity) -> Console {
    let console = console.with_verbosity(verbosity);
    recovery::recover(&console);
    console
}

fn checked_publication(args: &CheckPublishedArgs, console: Console) -> Result<Outcome, Failure> {
    let job = resolve::check_published(args)?;
    check_published::run(&job, &console_after_recovery(console, job.verbosity))
}

/// Prints help and version as data; any other answer of clap to `typed` is a failure.
fn page(answer: &clap::Error, typed: &[OsString], console: &Console) -> Result<Outcome, Failure> {
    match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let page = answer.render();
            let colour = console.data_screen().colour;
            let text = if colour.is_on() { colour.adopt(&page.ansi().to_string()) } else { page.to_string() };
            console.data(&text).map(|()| Outcome::Done)
        }
        _ => Err(error::of(answer, typed)),
    }
}
