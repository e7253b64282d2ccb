//! `latlab completions SHELL`: scripts for shells, and the answers to them. A script starts latlab with the words of the
//! command line and `LATLAB_COMPLETE`, so that what it offers is of this version and of this store.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use super::Outcome;
use crate::cli::resolve::{self, Environment};
use crate::cli::value::LOAD_KINDS;
use crate::cli::{self, examples};
use crate::console::Console;
use crate::diagnostics::{Failure, in_words};
use crate::experiment::in_store;
use crate::plan::{KNOBS, Via};
use crate::recipe::RECIPES;
use crate::recording::Store;

/// Names the shell in the environment of a latlab that a script starts.
const VARIABLE: &str = "LATLAB_COMPLETE";
const PROGRAM: &str = "latlab";
const TARGETS: [&str; 4] = ["local", "lab", "ssh:", "cmd:"];

/// The values of an argument that may continue the given text.
type Candidates = fn(&OsStr) -> Vec<CompletionCandidate>;

/// Prints the script of `shell`.
pub(super) fn script(shell: Shell, console: &Console) -> Result<Outcome, Failure> {
    let failed = |cause: &str| Failure::world(format!("cannot write the completions of `{shell}`")).because(cause);
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or_else(|| failed("there is no script for it"))?;
    let mut script = Vec::new();
    let written = completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
    written.map_err(|error| failed(&in_words(&error)))?;
    console.data(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}

/// Prints what may continue the command line `typed`, if a script started this process; otherwise returns false.
pub(super) fn answer(typed: &[OsString]) -> Result<bool, Failure> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(definition).var(VARIABLE).try_complete(typed.to_vec(), here.as_deref()).map_err(|error| {
        Failure::request("cannot complete the command line")
            .because(error.to_string().trim_start_matches("error: ").trim_end())
            .hint(format!("`{VARIABLE}` is for the scripts of `latlab completions`: unset it"))
    })
}

/// The definition of the command line, with the candidates of arguments.
fn definition() -> clap::Command {
    cli::definition().mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|argument| match candidates(&name, argument.get_id().as_str()) {
            Some(candidates) => argument.add(ArgValueCompleter::new(candidates)),
            None => argument,
        })
    })
}

/// The candidates of an argument whose values are neither words of its definition nor paths of any kind.
fn candidates(command: &str, argument: &str) -> Option<Candidates> {
    match (command, argument) {
        ("recipes", "name" | "name_after_show") => Some(recipes),
        ("run", "what") => Some(experiments),
        ("summary" | "explain" | "export", "recordings")
        | ("compare" | "report", "paths")
        | ("check-published", "path") => Some(recordings),
        ("help" | "man", "command") => Some(|typed| starting(typed, examples::COMMANDS.map(|(name, _)| name))),
        (_, "set") => Some(|typed| starting(typed, KNOBS.map(|knob| format!("{knob}=")))),
        (_, "load") => Some(|typed| starting(typed, LOAD_KINDS.map(load))),
        (_, "via") => Some(|typed| starting(typed, Via::ALL.map(Via::word))),
        (_, "target" | "to_target") => Some(|typed| starting(typed, TARGETS)),
        _ => None,
    }
}

fn load(kind: &str) -> String {
    if kind == "none" { kind.to_owned() } else { format!("{kind}=") }
}

/// The `words` that start with what was typed.
fn starting<W: Into<OsString>>(typed: &OsStr, words: impl IntoIterator<Item = W>) -> Vec<CompletionCandidate> {
    let fits = |word: &OsString| word.as_encoded_bytes().starts_with(typed.as_encoded_bytes());
    words.into_iter().map(Into::into).filter(fits).map(CompletionCandidate::new).collect()
}

fn recipes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let described = |name: CompletionCandidate| {
        let recipe = RECIPES.iter().find(|recipe| name.get_value() == recipe.name.as_str());
        name.help(recipe.map(|recipe| StyledStr::from(recipe.title.as_str())))
    };
    starting(typed, RECIPES.iter().map(|recipe| &recipe.name)).into_iter().map(described).collect()
}

/// Recipes, experiments of the store, and paths.
fn experiments(typed: &OsStr) -> Vec<CompletionCandidate> {
    let kept = experiments_in(&store());
    [recipes(typed), starting(typed, kept.clone()), paths(typed, &kept)].into_iter().flatten().collect()
}

/// Recordings and experiments of the store, the newest first, and paths. The runs of an experiment are paths behind its
/// directory.
fn recordings(typed: &OsStr) -> Vec<CompletionCandidate> {
    let kept = recordings_and_experiments_in(&store());
    [starting(typed, kept.clone()), paths(typed, &kept)].into_iter().flatten().collect()
}

/// The paths that may continue `typed`, except `others`.
fn paths(typed: &OsStr, others: &[OsString]) -> Vec<CompletionCandidate> {
    let is_other =
        |path: &CompletionCandidate| others.iter().any(|other| Path::new(path.get_value()) == Path::new(other));
    PathCompleter::any().complete(typed).into_iter().filter(|path| !is_other(path)).collect()
}

/// The store that a command without `--store` uses.
fn store() -> PathBuf {
    Environment::of_this_process()
        .map(|environment| resolve::store(&Default::default(), &environment))
        .unwrap_or_default()
}

/// The experiments in `store`.
fn experiments_in(store: &Path) -> Vec<OsString> {
    as_typed(store, in_store(store))
}

/// The recordings and experiments in `store`, as `latlab list` finds them: other directories are left out.
fn recordings_and_experiments_in(store: &Path) -> Vec<OsString> {
    let recordings = Store::at(store);
    as_typed(store, recordings.recordings().chain(in_store(store)))
}

/// The `paths` of entries of `store` as they are typed, the latest name first: names begin with the start.
fn as_typed(store: &Path, paths: impl IntoIterator<Item = PathBuf>) -> Vec<OsString> {
    let shown = store.strip_prefix(".").unwrap_or(store);
    let word = |path: PathBuf| Some(shown.join(path.file_name()?).into_os_string());
    let mut words: Vec<OsString> = paths.into_iter().filter_map(word).collect();
    words.sort();
    words.reverse();
    words
}
