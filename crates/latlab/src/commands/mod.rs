//! The commands: each file tells the story of one.

mod agent;
mod asking;
mod bare;
mod compare;
mod comparing;
mod completions;
mod doctor;
mod groups;
mod healing;
mod interrupt;
mod keygen;
mod keys;
mod list;
mod listening;
mod load;
mod man;
mod ministat;
mod net_load;
mod observing;
mod order;
mod outcome;
mod ping;
mod post;
mod recorded;
mod reflector;
mod roff;
mod serve;
mod silence;
mod stores;
mod stressor;
mod summary;
mod surroundings;
mod title;
mod verdict;

use std::ffi::OsString;

use clap::error::ErrorKind;

pub use outcome::Outcome;
use surroundings::surroundings;

use crate::cli::args::Command;
use crate::cli::resolve;
use crate::cli::{self, refusal};
use crate::console::{Console, Talk};
use crate::error::Failure;

/// Does what was typed, says what happened, and returns the exit code.
pub fn run(typed: impl IntoIterator<Item = OsString>) -> u8 {
    let console = Console::of_this_process(Talk::Usual);
    let result = match cli::parse(typed) {
        Ok(cli) => obey(cli.command, console),
        Err(told) => page(&told, &console),
    };
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            Console::of_this_process(Talk::Quiet).failure(&failure);
            failure.exit_code
        }
    }
}

fn obey(command: Command, console: Console) -> Result<Outcome, Failure> {
    match command {
        Command::Completions(args) => completions::run(args.shell, &console),
        Command::Man(args) => man::run(args.output.as_deref(), &console),
        Command::Ping(args) => {
            let job = resolve::ping(&args, &surroundings()?)?;
            let console = console.with_talk(job.talk);
            healing::heal(&console);
            ping::run(&job, &console)
        }
        Command::Serve(args) => {
            let spec = resolve::serve(&args)?;
            serve::run(&spec, &console.with_talk(spec.talk))
        }
        Command::Summary(args) => {
            let spec = resolve::summary(&args)?;
            let console = console.with_talk(spec.talk);
            healing::heal(&console);
            summary::run(&spec, &console)
        }
        Command::Compare(args) => compare::run(&resolve::compare(&args)?, console),
        Command::Doctor(args) => doctor::run(&resolve::doctor(&args)?, console),
        Command::Bare(args) => bare::run(&resolve::bare(&args)?, &console),
        Command::List(args) => {
            let store = resolve::store(&args.store, &surroundings()?);
            healing::heal(&console);
            list::run(&store, args.json.json, &console)
        }
        Command::Load(args) => load::run(&resolve::hold(&args)?, console),
        Command::Keygen(args) => keygen::run(&args.file, &console),
        Command::Reflector => reflector::run(&console),
        Command::Stressor => stressor::run(&console),
        Command::NetLoad => net_load::run(&console),
        Command::Agent(args) => {
            resolve::agent(args)?;
            agent::run(&console)
        }
    }
}

/// Help and version are data; anything else that clap tells is a refusal.
fn page(told: &clap::Error, console: &Console) -> Result<Outcome, Failure> {
    match told.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let page = told.render();
            let text = if console.data_screen().colour { page.ansi().to_string() } else { page.to_string() };
            console.data(&text).map(|()| Outcome::Done)
        }
        _ => Err(refusal::of(told)),
    }
}
