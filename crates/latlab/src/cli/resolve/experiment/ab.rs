//! `--ab A B [-- MEASURING COMMAND]`: the experiment file that it stands for.

use std::ffi::{OsStr, OsString};

use clap::parser::ValueSource;

use super::hooks::{PORT, literal_target, literal_word, names_of_hook, split_hook};
use super::options::{COMMAND, TARGET};
use crate::cli;
use crate::cli::args::{AbArgs, Command};
use crate::cli::value::{host_and_port, out_of_place, unusable};
use crate::diagnostics::Failure;
use crate::plan::hooks::{BEFORE_RUN, READY, SERVICE};
use crate::plan::{Kind, defaults};
use crate::units::human::shell_word;

/// An experiment that was typed, not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedExperiment {
    /// What follows `latlab run` or `latlab run RECIPE`, as it can be pasted: with it the source in the journal.
    pub source: String,
    /// The file that it stands for.
    pub text: String,
    /// TARGET of the measuring command; empty without one.
    pub target: String,
}

/// The part of a recipe in the experiment of one command under two names.
pub(in crate::cli::resolve) struct RecipePart {
    /// The file of the recipe, of which `[design]` is taken.
    pub(in crate::cli::resolve) file: String,
    /// Its typed options, such as `--quick`.
    pub(in crate::cli::resolve) options: Vec<&'static str>,
}

pub(in crate::cli::resolve) struct MeasuringCommand {
    pub(in crate::cli::resolve) kind: Kind,
    options: Vec<BaseOption>,
    target: Option<String>,
    /// The words of a command that measures; none if it is of another kind, or if A and B are measured.
    words: Vec<String>,
    /// Whether A and B are measured themselves.
    is_of_both: bool,
}

/// One option of the measuring command, as in `[base]`.
struct BaseOption {
    key: String,
    /// As typed; empty if it takes none.
    values: Vec<String>,
    toml: String,
}

/// The line of `[factors]`.
struct NamesOfTwo {
    key: &'static str,
    levels: [String; 2],
    /// As the file's section `names` has them.
    texts: [String; 2],
}

/// The experiment of two commands; with `recipe` its `[design]`, and comparisons of the mean too.
///
/// # Errors
/// If an option has a value that it cannot have.
pub(in crate::cli::resolve) fn typed_experiment(
    typed: &AbArgs,
    measuring: &MeasuringCommand,
    recipe: Option<&RecipePart>,
) -> Result<TypedExperiment, Failure> {
    let commands = [0, 1].map(|place| typed.ab.get(place).map_or("", String::as_str));
    let text = file(typed, commands, measuring, recipe)?;
    let source = source(typed, commands, recipe);
    Ok(TypedExperiment { source, text, target: measuring.target.clone().unwrap_or_default() })
}

fn file(
    typed: &AbArgs,
    commands: [&str; 2],
    measuring: &MeasuringCommand,
    recipe: Option<&RecipePart>,
) -> Result<String, Failure> {
    let hook = match (measuring.is_of_both, typed.ab_deploy) {
        (true, is_deployed) if is_deployed || typed.ready.is_some() => {
            let option = if is_deployed { "--ab-deploy" } else { "--ready" };
            let hint = "leave it out, or name what measures: `-- ping TARGET`";
            return Err(out_of_place(option, "two commands that are measured", "each run executes them", hint));
        }
        (true, _) => COMMAND,
        (false, true) => BEFORE_RUN,
        (false, false) => SERVICE,
    };
    let is_same = commands[0] == commands[1];
    let [a, b] = [literal_command("--ab", hook, commands[0])?, literal_command("--ab", hook, commands[1])?];
    let names = if is_same { measuring.names_of_one() } else { measuring.names_of_two(hook, [&a, &b])? };
    let mut lines = vec![
        "# Made by `latlab run --ab`.".to_owned(),
        "name = \"A and B\"".to_owned(),
        format!("kind = \"{}\"", measuring.kind.word()),
    ];
    let target = measuring.target.as_deref().map(|target| literal_target(target, names.key));
    lines.extend(target.map(|target| format!("{TARGET} = {}", quoted(&target))));
    lines.extend(["".into(), "[base]".into()]);
    let base = measuring.options.iter().filter(|option| option.key != names.key);
    lines.extend(base.map(|BaseOption { key, toml, .. }| format!("{key} = {toml}")));
    let measured = if is_same && measuring.is_of_both { Some(a.clone()) } else { measuring.command() };
    lines.extend(measured.map(|command| format!("{COMMAND} = {}", quoted(&command))));
    lines.extend(["".into(), "[factors]".into()]);
    lines.push(format!("{} = [{}]", names.key, names.levels.join(", ")));
    lines.extend(names_section(&typed.names, &names.texts)?);
    lines.extend(["".into(), "[hooks]".into()]);
    lines.extend((is_same && !measuring.is_of_both).then(|| format!("{hook} = {}", quoted(&a))));
    let ready = typed.ready.clone().or_else(|| measuring.waits_for([&a, &b]));
    let ready = ready.map(|what| literal_command("--ready", READY, &what)).transpose()?;
    lines.extend(ready.map(|what| format!("{READY} = {}", quoted(&what))));
    lines.push(String::new());
    match recipe {
        Some(recipe) => lines.push(recipe.design().into()),
        None => lines.extend(own_design(typed)),
    }
    lines.extend(comparisons(typed, measuring, recipe.is_some()));
    Ok(lines.join("\n") + "\n")
}

/// What follows `latlab run`, or the name of the recipe: all that the file depends on.
fn source(typed: &AbArgs, commands: [&str; 2], recipe: Option<&RecipePart>) -> String {
    let AbArgs { ab: _, names, ab_deploy, ready, runs, max_runs, blocks, equivalence, print_file: _, measuring } =
        typed;
    let options = recipe.into_iter().flat_map(|recipe| &recipe.options).map(|option| (*option).to_owned());
    let mut words: Vec<String> = options.chain(["--ab".to_owned()]).collect();
    words.extend(commands.map(shell_word));
    words.extend(ab_deploy.then(|| "--ab-deploy".to_owned()));
    for (option, value) in [
        ("--names", Some(names.join(",")).filter(|names| !names.is_empty())),
        ("--ready", ready.clone()),
        ("--runs", runs.clone()),
        ("--max-runs", max_runs.map(|most| most.to_string())),
        ("--blocks", blocks.map(|blocks| blocks.to_string())),
        ("--equivalence", equivalence.clone()),
    ] {
        words.extend(value.into_iter().flat_map(|value| [option.to_owned(), shell_word(&value)]));
    }
    words.extend((!measuring.is_empty()).then(|| "--".into()));
    words.extend(measuring.iter().map(|word| shell_word_or_option(&word.to_string_lossy())));
    words.join(" ")
}

/// `word` as it can be pasted; options without quotes.
fn shell_word_or_option(word: &str) -> String {
    let name = word.trim_start_matches('-');
    if !name.is_empty() && shell_word(name) == name { word.to_owned() } else { shell_word(word) }
}

/// The lines of `[names]` that call the levels `texts` so.
fn names_section(names: &[String], texts: &[String; 2]) -> Result<Vec<String>, Failure> {
    match names {
        [] => Ok(Vec::new()),
        [a, b] if a != b && !a.is_empty() && !b.is_empty() => {
            let line = |(name, text): (&String, &String)| format!("{} = {}", quoted(name), quoted(text));
            Ok(["".into(), "[names]".into()].into_iter().chain(names.iter().zip(texts).map(line)).collect())
        }
        _ => Err(unusable("--names", names.join(","), "A and B need a name each", "such as `--names old,new`")),
    }
}

/// The value of `option`, the hook `key`, in the words of a file: braces around names but `{port}` are no placeholders.
fn literal_command(option: &'static str, key: &str, typed: &str) -> Result<String, Failure> {
    let hint = "a program and its arguments, quoted as one word of the shell, such as `'./server --port 7000'`";
    let words = split_hook(key, typed).map_err(|cause| unusable(option, typed, cause, hint))?;
    let literal: Vec<String> = words.iter().map(|word| literal_word(word)).collect();
    let is_one_line = words.len() == 1 && words[0] == typed;
    Ok(if is_one_line {
        literal.concat()
    } else if literal == words {
        typed.to_owned()
    } else {
        line_of(&literal)
    })
}

fn line_of(words: &[String]) -> String {
    words.iter().map(|word| shell_word_or_option(word)).collect::<Vec<_>>().join(" ")
}

/// `[design]` as typed.
fn own_design(typed: &AbArgs) -> Vec<String> {
    let mut lines = vec!["[design]".to_owned()];
    let runs = typed.runs.clone().unwrap_or_else(|| defaults::AB_RUNS.to_string());
    lines.push(match runs.parse::<u32>() {
        Ok(number) => format!("runs = {number}"),
        Err(_) => format!("runs = {}", quoted(&runs)),
    });
    lines.extend(typed.max_runs.map(|most| format!("max-runs = {most}")));
    lines.extend(typed.blocks.map(|blocks| format!("blocks = {blocks}")));
    lines
}

/// A `[[compare]]` for each usual statistic, and with a recipe for the mean, unless the usual ones without a margin are
/// meant, which need none.
fn comparisons(typed: &AbArgs, measuring: &MeasuringCommand, with_mean: bool) -> Vec<String> {
    if typed.equivalence.is_none() && !with_mean {
        return Vec::new();
    }
    let usual = measuring.kind.compared_statistics();
    let mean = (with_mean && !usual.contains(&"mean")).then_some("mean");
    let metrics = measuring.options.iter().filter(|option| option.key == "metric").flat_map(|option| &option.values);
    let printed: Vec<(&str, &str)> = metrics.filter_map(|it| Some((it.split_once('=')?.0, "p50"))).collect();
    let usual = mean.into_iter().chain(usual).map(|statistic| (measuring.kind.metric().name(), statistic));
    let mut lines = Vec::new();
    for (metric, statistic) in if printed.is_empty() { usual.collect() } else { printed } {
        lines.extend(["".into(), "[[compare]]".into(), format!("metric = \"{metric}\"")]);
        lines.push(format!("statistic = \"{statistic}\""));
        lines.extend(typed.equivalence.as_ref().map(|margin| format!("equivalence = {}", quoted(margin))));
    }
    lines
}

impl RecipePart {
    /// The lines of `[design]`.
    fn design(&self) -> &str {
        let from = self.file.find("[design]").map_or("", |at| &self.file[at..]);
        from.split("\n\n").next().unwrap_or_default().trim_end()
    }
}

impl MeasuringCommand {
    /// The kind, options and target of the command `words`.
    ///
    /// # Errors
    /// If it is not a command that measures.
    pub(in crate::cli::resolve) fn of(words: &[OsString]) -> Result<MeasuringCommand, Failure> {
        let has_program = words.iter().any(|word| word == "--");
        let is_of_both = words.first().is_none_or(|first| first == Kind::Command.word() && !has_program);
        // The parser wants a number for a port.
        let (name, in_words) =
            (format!("{{{PORT}}}"), |text: &str| words.iter().any(|word| word.to_string_lossy().contains(text)));
        let port = (1..=u16::MAX).rev().map(|port| port.to_string()).find(|port| !in_words(port)).unwrap_or_default();
        let parsed = words.iter().map(|word| match word.to_str() {
            Some(text) => text.replace(&name, &port).into(),
            None => word.clone(),
        });
        let mut line: Vec<OsString> = ["latlab".into()].into_iter().chain(parsed).collect();
        line.extend(words.is_empty().then(|| Kind::Command.word().into()));
        // The parser needs a program.
        line.extend(is_of_both.then(|| ["--", "true"].map(OsString::from)).into_iter().flatten());
        let parsed = cli::parse(line.iter().cloned()).map_err(Failure::from)?;
        let kind = match &parsed.command {
            Command::Ping(_) => Kind::Ping,
            Command::Stream(_) => Kind::Stream,
            Command::Command(_) => Kind::Command,
            Command::Wakeup(_) => Kind::Wakeup,
            _ => {
                let first = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
                return Err(Failure::request(format!("`{first}` does not measure"))
                    .hint("after `--`: `ping`, `stream`, `command` or `wakeup` with its options, as without `--ab`"));
            }
        };
        let mut measuring = MeasuringCommand { kind, options: Vec::new(), target: None, words: Vec::new(), is_of_both };
        let definition = cli::definition();
        let matches = definition.clone().try_get_matches_from(line).ok();
        let matches = matches.as_ref().and_then(clap::ArgMatches::subcommand);
        if let (Some((_, matches)), Some(command)) = (matches, definition.find_subcommand(kind.word())) {
            let text = |value: &OsStr| value.to_string_lossy().replace(&port, &name);
            command.get_arguments().for_each(|argument| measuring.add(argument, matches, text));
        }
        if is_of_both {
            measuring.words.clear();
            measuring.limit();
        }
        Ok(measuring)
    }

    /// Adds what was typed for `argument`.
    fn add(&mut self, argument: &clap::Arg, matches: &clap::ArgMatches, text: impl Fn(&OsStr) -> String) {
        let id = argument.get_id().as_str();
        let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(raw) = matches.try_get_raw(id).ok().flatten().filter(|_| is_typed) else { return };
        let values: Vec<String> = raw.map(text).collect();
        match argument.get_long() {
            Some(key) => {
                let toml = toml_of(argument, &values);
                self.options.push(BaseOption { key: key.into(), values, toml });
            }
            None if id == COMMAND => self.words = values,
            None => self.target = values.into_iter().next(),
        }
    }

    /// The command that measures, in the words of a file.
    fn command(&self) -> Option<String> {
        let literal: Vec<String> = self.words.iter().map(|word| literal_word(word)).collect();
        let line = if self.has("shell") { literal.join(" ") } else { line_of(&literal) };
        (!line.is_empty()).then_some(line)
    }

    fn has(&self, key: &str) -> bool {
        self.options.iter().any(|option| option.key == key)
    }

    /// Adds how often A and B are executed in a run, unless that was typed.
    fn limit(&mut self) {
        let is_limited = self.has("count") || self.has("duration");
        let usual =
            [("count", "100", !is_limited), ("duration", "1s", !is_limited), ("warmup", "1", !self.has("warmup"))];
        for (key, value, _) in usual.into_iter().filter(|(.., is_due)| *is_due) {
            self.options.push(BaseOption { key: key.into(), values: vec![value.into()], toml: quoted(value) });
        }
    }

    /// The typed tags.
    fn tags(&self) -> &[String] {
        let tags = self.options.iter().find(|option| option.key == TAG);
        tags.map_or(&[], |option| option.values.as_slice())
    }

    /// Two names of one command: a tag beside the typed ones.
    fn names_of_one(&self) -> NamesOfTwo {
        let typed = self.tags();
        let mut names = (1..).map(|number: u32| if number == 1 { "name".into() } else { format!("name{number}") });
        let name = names.find(|name| !typed.iter().any(|tag| is_tag_of(tag, name))).unwrap_or_default();
        let levels = ["a", "b"].map(|level| {
            let tag = quoted(&format!("{name}={level}"));
            let all: Vec<String> = typed.iter().map(|tag| quoted(tag)).chain([tag]).collect();
            if typed.is_empty() { all.concat() } else { format!("[{}]", all.join(", ")) }
        });
        let texts = ["a", "b"].map(|level| [typed, &[format!("{name}={level}")]].concat().join(","));
        NamesOfTwo { key: TAG, levels, texts }
    }

    fn names_of_two(&self, hook: &'static str, commands: [&String; 2]) -> Result<NamesOfTwo, Failure> {
        match self.tags().iter().find(|tag| is_tag_of(tag, hook)) {
            None => {
                let levels = commands.map(|command| quoted(command));
                Ok(NamesOfTwo { key: hook, levels, texts: commands.map(String::clone) })
            }
            Some(tag) => {
                let cause = format!("the tag `{hook}` names the two commands");
                Err(unusable("--tag", tag, cause, "another key"))
            }
        }
    }

    /// When the service is ready that A or B starts: the port that it is given, or that of the target, receives.
    fn waits_for(&self, commands: [&String; 2]) -> Option<String> {
        if !self.is_of_both && commands.iter().any(|command| names_of_hook(command).contains(PORT)) {
            return Some(format!("listen:{{{PORT}}}"));
        }
        let target = self.target.as_deref()?;
        let (_, port) = host_and_port(target).ok()?;
        port?;
        let is_tcp = self.options.iter().any(|option| option.key == "transport" && option.values == ["tcp"]);
        Some(format!("{}:{target}", if is_tcp { "tcp" } else { "udp" }))
    }
}

const TAG: &str = "tag";

/// Whether `tag` is `KEY=VALUE` with this `key`.
fn is_tag_of(tag: &str, key: &str) -> bool {
    tag.split_once('=').is_some_and(|(own, _)| own == key)
}

fn toml_of(argument: &clap::Arg, values: &[String]) -> String {
    let action = argument.get_action();
    match values {
        _ if !action.takes_values() => "true".into(),
        [one] => quoted(one),
        several if argument.get_value_delimiter().is_some() => quoted(&several.join(",")),
        several => format!("[{}]", several.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")),
    }
}

/// `text` as a basic string of TOML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default().replace('\u{7f}', "\\u007F")
}
