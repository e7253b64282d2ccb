//! The commands: each file tells the story of one.

mod agent;
mod bare;
mod child_processes;
mod compare;
mod doctor;
mod experiment;
mod keys;
mod list;
mod load;
mod manual;
mod measure_and_report;
mod ministat;
mod observation_groups;
mod ping;
mod recipes;
mod recovery;
mod reflector_service;
mod remedies;
mod run;
mod serve;
mod stored_runs;
mod stream;
mod summary;
mod wakeup;

use std::ffi::OsString;

use clap::error::ErrorKind;

use crate::diagnostics::Outcome;

use crate::cli::args::Command;
use crate::cli::resolve::{self, Environment};
use crate::cli::{self, error};
use crate::console::{Console, Verbosity};
use crate::diagnostics::Failure;

/// Does what was typed, says what happened, and returns the exit code.
pub fn run(typed: impl IntoIterator<Item = OsString>) -> u8 {
    let console = Console::of_this_process(Verbosity::Usual);
    let result = match cli::parse(typed) {
        Ok(cli) => obey(cli.command, console),
        Err(told) => page(&told, &console),
    };
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            Console::of_this_process(Verbosity::Quiet).failure(&failure);
            failure.exit_code
        }
    }
}

fn obey(command: Command, console: Console) -> Result<Outcome, Failure> {
    match command {
        Command::Completions(args) => manual::completions(args.shell, &console),
        Command::Man(args) => manual::man_pages(args.output.as_deref(), &console),
        Command::Ping(args) => {
            let job = resolve::ping(&args, &Environment::of_this_process()?)?;
            ping::run(&job, &healed(console, job.verbosity))
        }
        Command::Wakeup(args) => {
            let job = resolve::wakeup(&args, &Environment::of_this_process()?)?;
            wakeup::run(&job, &healed(console, job.verbosity))
        }
        Command::Stream(args) => {
            let job = resolve::stream(&args, &Environment::of_this_process()?)?;
            stream::run(&job, &healed(console, job.verbosity))
        }
        Command::Serve(args) => {
            let spec = resolve::serve(&args)?;
            serve::run(&spec, &healed(console, spec.verbosity))
        }
        Command::Summary(args) => {
            let spec = resolve::summary(&args)?;
            summary::run(&spec, &healed(console, spec.verbosity))
        }
        Command::Doctor(args) => {
            let spec = resolve::doctor(&args)?;
            // What `--restore` puts back is its answer.
            let console =
                if spec.restore { console.with_verbosity(spec.verbosity) } else { healed(console, spec.verbosity) };
            doctor::run(&spec, &console)
        }
        Command::Compare(args) => {
            let job = resolve::compare(&args)?;
            compare::run(&job, &healed(console, job.verbosity()))
        }
        Command::Bare(args) => bare::round_trips(&resolve::bare(&args)?, &console),
        Command::BareStream(args) => bare::stream(&resolve::bare_stream(&args)?, &console),
        Command::BareWakeup(args) => bare::wakeups(&resolve::bare_wakeup(&args)?, &console),
        Command::List(args) => {
            let store = resolve::store(&args.store, &Environment::of_this_process()?);
            list::run(&store, args.json.json, &healed(console, Verbosity::Usual))
        }
        Command::Load(args) => {
            let job = resolve::hold(&args)?;
            load::run(&job, &healed(console, job.verbosity))
        }
        Command::Run(args) => {
            let job = resolve::run(&args, &Environment::of_this_process()?)?;
            run::run(&job, &healed(console, job.verbosity))
        }
        Command::Recipes(args) => recipes::run(resolve::recipes(&args)?, &console),
        Command::Keygen(args) => keys::run(&args.file, &console),
        Command::Reflector => child_processes::reflector(&console),
        Command::Stressor => child_processes::stressor(&console),
        Command::NetLoad => child_processes::net_load(&console),
        Command::Agent(args) => {
            resolve::agent(args)?;
            agent::run(&console)
        }
    }
}

/// The console for a command that says so much, after what dead latlabs have left on this host was put back: whatever
/// a person starts begins with that. Files for other programs (`completions`, `man`, `keygen`) and latlab's own
/// processes do not; an agent sees to it by itself.
fn healed(console: Console, verbosity: Verbosity) -> Console {
    let console = console.with_verbosity(verbosity);
    recovery::recover(&console);
    console
}

/// Help and version are data; anything else that clap tells is a refusal.
fn page(told: &clap::Error, console: &Console) -> Result<Outcome, Failure> {
    match told.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let page = told.render();
            let text = if console.data_screen().colour { page.ansi().to_string() } else { page.to_string() };
            console.data(&text).map(|()| Outcome::Done)
        }
        _ => Err(error::of(told)),
    }
}
