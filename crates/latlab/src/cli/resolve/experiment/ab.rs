//! `--ab A B -- MEASURING COMMAND`: the experiment file that it stands for.

use std::ffi::OsString;

use clap::parser::ValueSource;

use super::options::TARGET;
use crate::cli::args::{AbArgs, Command};
use crate::cli::resolve::target::host_and_port;
use crate::cli::{self, error};
use crate::diagnostics::Failure;
use crate::plan::Kind;
use crate::plan::hooks::{BEFORE_RUN, SERVICE, WAIT_FOR};
use crate::units::human::shell_word;

/// An experiment that was typed, not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedExperiment {
    /// What follows `latlab run`, as it can be pasted: the source in the journal.
    pub source: String,
    /// The file that it stands for.
    pub text: String,
    /// TARGET of the measuring command; empty without one.
    pub target: String,
}

/// One option of the measuring command, as in `[base]`.
struct BaseOption {
    key: String,
    /// As TOML.
    value: String,
}

/// The experiment of `typed`. `design` replaces `[design]` and `[[compare]]`, as of a recipe.
///
/// # Errors
/// If what follows `--` is not a command that measures.
pub(in crate::cli::resolve) fn typed_experiment(
    typed: &AbArgs,
    design: Option<&str>,
) -> Result<Option<TypedExperiment>, Failure> {
    let [a, b] = typed.ab.as_slice() else { return Ok(None) };
    let (kind, options, target) = measuring(&typed.measuring)?;
    let hook = if typed.ab_deploy { BEFORE_RUN } else { SERVICE };
    let mut lines = vec![
        "# Made by `latlab run --ab`.".to_owned(),
        "name = \"A and B\"".to_owned(),
        format!("kind = \"{}\"", kind.word()),
    ];
    lines.extend(target.iter().map(|target| format!("{TARGET} = {}", quoted(target))));
    lines.extend(["".into(), "[base]".into()]);
    lines.extend(options.iter().map(|BaseOption { key, value }| format!("{key} = {value}")));
    let is_same = a == b;
    lines.extend(["".into(), "[factors]".into()]);
    lines.push(match is_same {
        true => "tag = [\"name=a\", \"name=b\"]".into(),
        false => format!("{hook} = [{}, {}]", quoted(a), quoted(b)),
    });
    lines.extend(["".into(), "[hooks]".into()]);
    lines.extend(is_same.then(|| format!("{hook} = {}", quoted(a))));
    let wait_for = typed.wait_for.clone().or_else(|| waits_for(target.as_deref()?, &options));
    lines.extend(wait_for.map(|what: String| format!("{WAIT_FOR} = {}", quoted(&what))));
    lines.push(String::new());
    match design {
        Some(design) => lines.push(design.to_owned()),
        None => lines.extend(own_design(typed)),
    }
    let words = ["--ab", a, b].into_iter().chain(typed.ab_deploy.then_some("--ab-deploy")).chain(["--"]);
    let measuring = typed.measuring.iter().map(|word| shell_word(&word.to_string_lossy()));
    let source = words.map(shell_word_or_option).chain(measuring).collect::<Vec<_>>().join(" ");
    Ok(Some(TypedExperiment { source, text: lines.join("\n") + "\n", target: target.unwrap_or_default() }))
}

fn shell_word_or_option(word: &str) -> String {
    if word.starts_with("--") { word.to_owned() } else { shell_word(word) }
}

/// `[design]` as typed, and a `[[compare]]` if a margin was.
fn own_design(typed: &AbArgs) -> Vec<String> {
    let mut lines = vec!["[design]".to_owned()];
    let runs = typed.runs.as_ref().map(|runs| match runs.parse::<u32>() {
        Ok(number) => format!("runs = {number}"),
        Err(_) => format!("runs = {}", quoted(runs)),
    });
    lines.extend(runs);
    lines.extend(typed.max_runs.map(|most| format!("max-runs = {most}")));
    lines.extend(typed.blocks.map(|blocks| format!("blocks = {blocks}")));
    lines
}

/// The kind, options and target of the measuring command `words`.
fn measuring(words: &[OsString]) -> Result<(Kind, Vec<BaseOption>, Option<String>), Failure> {
    let line: Vec<OsString> = ["latlab".into()].into_iter().chain(words.iter().cloned()).collect();
    let parsed = cli::parse(line.iter().cloned()).map_err(|page| error::of(&page, &line))?;
    let kind = match &parsed.command {
        Command::Ping(_) => Kind::Ping,
        Command::Stream(_) => Kind::Stream,
        Command::Wakeup(_) => Kind::Wakeup,
        _ => {
            let first = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
            return Err(Failure::request(format!("`{first}` does not measure"))
                .hint("behind `--`: `ping`, `stream` or `wakeup` with its options, as you would type it alone"));
        }
    };
    let definition = cli::definition();
    let matches = definition.clone().try_get_matches_from(line.iter().cloned());
    let matches = matches.map_err(|page| error::of(&page, &line))?;
    let (Some((_, matches)), Some(command)) = (matches.subcommand(), definition.find_subcommand(kind.word())) else {
        return Ok((kind, Vec::new(), None));
    };
    let values = |argument: &clap::Arg| -> Option<Vec<String>> {
        let id = argument.get_id().as_str();
        let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        let raw = matches.try_get_raw(id).ok().flatten().filter(|_| is_typed)?;
        Some(raw.map(|value| value.to_string_lossy().into_owned()).collect())
    };
    let (mut options, mut target) = (Vec::new(), None);
    for argument in command.get_arguments() {
        let Some(values) = values(argument) else { continue };
        match argument.get_long() {
            Some(key) => options.push(BaseOption { key: key.into(), value: toml_of(argument, &values) }),
            None => target = values.into_iter().next(),
        }
    }
    Ok((kind, options, target))
}

/// The values of an option as TOML.
fn toml_of(argument: &clap::Arg, values: &[String]) -> String {
    let action = argument.get_action();
    match values {
        _ if !action.takes_values() => "true".into(),
        [one] => quoted(one),
        several if argument.get_value_delimiter().is_some() => quoted(&several.join(",")),
        several => format!("[{}]", several.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")),
    }
}

/// The address that a service of `target` receives at; `None` if the target names none.
fn waits_for(target: &str, options: &[BaseOption]) -> Option<String> {
    let (_, port) = host_and_port("TARGET", target).ok()?;
    port?;
    let is_tcp = options.iter().any(|option| option.key == "transport" && option.value == "\"tcp\"");
    Some(format!("{} {target}", if is_tcp { "tcp" } else { "udp" }))
}

/// `text` as a basic string of TOML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default().replace('\u{7f}', "\\u007F")
}
