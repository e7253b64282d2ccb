//! The commands and the functions that several of them share. `measure_and_report` holds those that measure.

mod agent;
mod check_published;
mod child_processes;
mod compare;
mod completions;
mod doctor;
mod experiment_executor;
mod experiment_reporter;
mod explain;
mod export;
mod export_figures;
mod export_probes;
mod export_trace;
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
mod run_plan;
mod serve;
mod summary;

use std::ffi::OsString;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::args::{Command, MeasuringArgs, VerbosityArgs};
use crate::cli::resolve::{self, Environment, MeasureJob};
use crate::cli::{self, NotParsed};
use crate::console::{Console, Verbosity};
use crate::diagnostics::{Failure, Outcome};
use crate::facts::CommandLine;
use crate::host::HostRoot;
use crate::host::facts::memory_limit;

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

/// The answer to `latlab` alone.
const FIRST_STEPS: &str = "\
latlab measures how long a message takes, shows why, and tests whether a change made it better.
Three things to try first:
  latlab ping                   round trips over loopback, for ten seconds
  latlab doctor                 what on this host would disturb a measurement, and what helps
  latlab run --ab ./old ./new   which of two programs is faster, and by how much
`latlab help` lists all commands.
";

fn parse_and_dispatch(typed: Vec<OsString>, console: Console) -> Result<Outcome, Failure> {
    if typed.len() == 1 {
        return console.data(FIRST_STEPS).map(|()| Outcome::Done);
    }
    match cli::parse_for(typed.iter().cloned(), console.data_screen().columns) {
        Ok(cli) => dispatch(cli.command, &CommandLine::of(&typed), console),
        Err(NotParsed::Page(page)) => show_page(&page, &console),
        Err(NotParsed::Refused(failure)) => Err(failure),
    }
}

/// Runs `command`, which was typed as `line`.
fn dispatch(command: Command, line: &CommandLine, console: Console) -> Result<Outcome, Failure> {
    let environment = Environment::of_this_process;
    use Command::{CheckPublished, Compare, Explain, Export, Import, List, Report, Summary};
    if matches!(
        command,
        Summary(_) | Explain(_) | Compare(_) | Report(_) | Export(_) | CheckPublished(_) | List(_) | Import(_)
    ) {
        stay_within_memory();
    }
    match command {
        Command::Completions(args) => completions::script(args.shell, &console),
        Command::Man(args) => manual::man_pages(&args, &console),
        Command::Help(args) => {
            let typed = ["latlab"].into_iter().chain(args.command.as_deref()).chain(["--help"]);
            parse_and_dispatch(typed.map(Into::into).collect(), console)
        }
        Command::Ping(args) => {
            let measure = if args.remedies.try_remedies { try_remedies } else { measure };
            measure(&resolve::ping(&args, &environment()?)?, &args.measuring, line, console)
        }
        Command::Stream(args) => measure(&resolve::stream(&args, &environment()?)?, &args.measuring, line, console),
        Command::Command(args) => measure(&resolve::command(&args, &environment()?)?, &args.measuring, line, console),
        Command::Wakeup(args) => {
            let measure = if args.remedies.try_remedies { try_remedies } else { measure };
            measure(&resolve::wakeup(&args, &environment()?)?, &args.measuring, line, console)
        }
        Command::Serve(args) => serve::run(resolve::serve(&args)?, &recovered(console, &args.verbosity)),
        Command::Summary(args) => summary::run(&args, &recovered(console, &args.verbosity)),
        Command::Explain(args) => explain::run(&args, &recovered(console, &args.verbosity)),
        // `--restore` reports what it restores itself.
        Command::Doctor(args) if args.restore => doctor::run(&args, &console.with_verbosity(args.verbosity.level())),
        Command::Doctor(args) => doctor::run(&args, &recovered(console, &args.verbosity)),
        Command::Compare(args) => compare::run(&args, &recovered(console, &args.verbosity)),
        Command::Report(args) => report::run(&resolve::report(&args)?, line, &recovered(console, &args.verbosity)),
        Command::Export(args) => export::run(&resolve::export(&args)?, &recovered(console, &args.verbosity)),
        Command::CheckPublished(args) => check_published::run(&args, &recovered(console, &args.verbosity)),
        Command::List(args) => {
            let store = resolve::store(&args.store, &environment()?);
            list::run(&args, &store, &recovered(console, &VerbosityArgs::default()))
        }
        Command::Import(args) => {
            import::run(&resolve::import(&args, &environment()?)?, line, &recovered(console, &args.verbosity))
        }
        Command::Load(args) => load::run(&resolve::hold(&args)?, args.json.json, &recovered(console, &args.verbosity)),
        Command::Run(args) => run::run(&resolve::run(&args, &environment()?)?, &recovered(console, &args.verbosity)),
        Command::Recipes(args) => run::recipes(resolve::recipes(&args)?, &console),
        Command::Keygen(args) => keys::run(&args.file, &console),
        Command::Reflector => child_processes::reflector(&console),
        Command::Stressor => child_processes::stressor(&console),
        Command::Guard { group } => child_processes::guard(group),
        Command::NetLoad => child_processes::net_load(&console),
        Command::Watchdog { agent } => child_processes::watchdog(agent),
        Command::Agent(_) => agent::run(&console),
    }
}

/// Lets allocations fail (exit code 3) before the control group has too little memory, for which the kernel kills.
fn stay_within_memory() {
    let Some(limit) = memory_limit(&HostRoot::for_knobs()) else { return };
    let found = getrlimit(Resource::Data);
    let current = Some(found.current.unwrap_or(u64::MAX).min(limit - limit / 8));
    let _ = setrlimit(Resource::Data, Rlimit { current, ..found });
}

fn measure(job: &MeasureJob, typed: &MeasuringArgs, line: &CommandLine, console: Console) -> Result<Outcome, Failure> {
    measure_and_report::run(job, typed, line, &recovered(console, &typed.verbosity))
}

fn try_remedies(
    job: &MeasureJob,
    typed: &MeasuringArgs,
    line: &CommandLine,
    console: Console,
) -> Result<Outcome, Failure> {
    remedies::run(job, typed, line, &recovered(console, &typed.verbosity))
}

/// The console of a command, after settings that dead processes left on this host were restored: every command that a
/// person starts begins with that. Commands that write files for other programs (`completions`, `man`, `keygen`) and
/// child processes do not; an agent does it itself.
fn recovered(console: Console, verbosity: &VerbosityArgs) -> Console {
    let console = console.with_verbosity(verbosity.level());
    recovery::recover(&console);
    console
}

/// Prints help and version as data.
fn show_page(page: &clap::Error, console: &Console) -> Result<Outcome, Failure> {
    let page = page.render();
    let colour = console.data_screen().colour;
    let text = if colour.is_on() { colour.adopt(&page.ansi().to_string()) } else { page.to_string() };
    console.data(&text).map(|()| Outcome::Done)
}
