//! The commands: each file tells the story of one.

mod agent;
mod answering;
mod asking;
mod bare;
mod bare_stream;
mod bare_wakeup;
mod compare;
mod comparing;
mod completions;
mod doctor;
mod experiment;
mod groups;
mod healing;
mod keygen;
mod keys;
mod list;
mod listening;
mod load;
mod man;
mod measuring;
mod ministat;
mod net_load;
mod number_files;
mod observing;
mod order;
mod ping;
mod post;
mod recipes;
mod reflector;
mod remedies;
mod roff;
mod run;
mod serve;
mod stored_runs;
mod stores;
mod stream;
mod stressor;
mod summary;
mod surroundings;
mod title;
mod verdict;
mod wakeup;

use std::ffi::OsString;

use clap::error::ErrorKind;

use crate::diagnostics::Outcome;
use surroundings::surroundings;

use crate::cli::args::Command;
use crate::cli::resolve;
use crate::cli::{self, refusal};
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
        Command::Completions(args) => completions::run(args.shell, &console),
        Command::Man(args) => man::run(args.output.as_deref(), &console),
        Command::Ping(args) => {
            let job = resolve::ping(&args, &surroundings()?)?;
            ping::run(&job, &healed(console, job.talk))
        }
        Command::Wakeup(args) => {
            let job = resolve::wakeup(&args, &surroundings()?)?;
            wakeup::run(&job, &healed(console, job.talk))
        }
        Command::Stream(args) => {
            let job = resolve::stream(&args, &surroundings()?)?;
            stream::run(&job, &healed(console, job.talk))
        }
        Command::Serve(args) => {
            let spec = resolve::serve(&args)?;
            serve::run(&spec, &healed(console, spec.talk))
        }
        Command::Summary(args) => {
            let spec = resolve::summary(&args)?;
            summary::run(&spec, &healed(console, spec.talk))
        }
        Command::Doctor(args) => {
            let spec = resolve::doctor(&args)?;
            // What `--restore` puts back is its answer.
            let console = if spec.restore { console.with_talk(spec.talk) } else { healed(console, spec.talk) };
            doctor::run(&spec, &console)
        }
        Command::Compare(args) => {
            let job = resolve::compare(&args)?;
            compare::run(&job, &healed(console, job.talk()))
        }
        Command::Bare(args) => bare::run(&resolve::bare(&args)?, &console),
        Command::BareStream(args) => bare_stream::run(&resolve::bare_stream(&args)?, &console),
        Command::BareWakeup(args) => bare_wakeup::run(&resolve::bare_wakeup(&args)?, &console),
        Command::List(args) => {
            let store = resolve::store(&args.store, &surroundings()?);
            list::run(&store, args.json.json, &healed(console, Verbosity::Usual))
        }
        Command::Load(args) => {
            let job = resolve::hold(&args)?;
            load::run(&job, &healed(console, job.talk))
        }
        Command::Run(args) => {
            let job = resolve::run(&args, &surroundings()?)?;
            run::run(&job, &healed(console, job.talk))
        }
        Command::Recipes(args) => recipes::run(resolve::recipes(&args)?, &console),
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

/// The console for a command that says so much, after what dead latlabs have left on this host was put back: whatever
/// a person starts begins with that. Files for other programs (`completions`, `man`, `keygen`) and latlab's own
/// processes do not; an agent sees to it by itself.
fn healed(console: Console, talk: Verbosity) -> Console {
    let console = console.with_talk(talk);
    healing::heal(&console);
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
        _ => Err(refusal::of(told)),
    }
}
