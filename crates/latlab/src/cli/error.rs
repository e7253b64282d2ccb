//! Conversion of clap errors to failures.

use std::error::Error;
use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::examples::COMMANDS;
use super::value::{self, Refusal, unusable};
use crate::diagnostics::Failure;
use crate::units::human::{meant, nearest};

/// Options of other tools by command, and what has their meaning here.
const OF_OTHER_TOOLS: [(&str, &str, &str); 10] = [
    ("ping", "-c", "`-n N` ends after N probes"),
    ("ping", "-W", "`--timeout T` is the time after which an answer is late"),
    ("ping", "-w", "`-d T` ends after a time T"),
    ("ping", "-I", "`--bind ADDR|INTERFACE` is where probes leave"),
    ("serve", "--port", "`--bind ADDR:PORT` is where it listens: `--bind 0.0.0.0:PORT` at every IPv4 address"),
    ("stream", "-n", "a stream ends after a time: `-d T`"),
    ("stream", "-t", "`-d T` ends after a time T"),
    ("stream", "-b", "`--rate RATE` is the offered rate"),
    ("stream", "-P", "`--flows N` sends N flows"),
    ("stream", "-c", "the target is an argument: `latlab stream HOST`"),
];

/// Converts `error` of the command line `typed` to a failure with the typed value and a hint.
///
/// Help and version requests must be handled by the caller before.
pub(super) fn of(error: &clap::Error, typed: &[OsString], definition: &Command) -> Failure {
    let context = Context(error);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown_argument(context, typed, definition),
        ErrorKind::InvalidSubcommand => unknown_command(context, definition),
        ErrorKind::InvalidValue => bad_value(context),
        ErrorKind::ValueValidation => refused_value(context),
        ErrorKind::TooManyValues => unwanted_value(context),
        ErrorKind::ArgumentConflict => conflict(context),
        ErrorKind::MissingRequiredArgument => missing(context),
        _ => other(context),
    }
}

fn unknown_argument(context: Context, line: &[OsString], definition: &Command) -> Failure {
    let typed = context.one(ContextKind::InvalidArg);
    let name = typed.split('=').next().unwrap_or_default();
    let failure = if typed.starts_with('-') {
        Failure::request(format!("there is no option `{typed}`"))
    } else {
        Failure::request(format!("there is one argument too many: `{typed}`"))
    };
    let command = context.command();
    let other = OF_OTHER_TOOLS.iter().find(|(of, theirs, _)| *of == command && *theirs == name);
    let meant = match other {
        Some((_, _, ours)) => Some(format!("{ours};")),
        None if typed.starts_with("--") => option_meant(&name[2..], &command, definition),
        None => address_meant(typed, line, definition).map(|address| format!("did you mean `{address}`?")),
    };
    match meant {
        None => failure.hint(context.see_help()),
        Some(meant) => failure.hint(format!("{meant} {}", context.see_help())),
    }
}

/// The target with a port, if `word` is the port of the host that is the target of the rest of `line`.
fn address_meant(word: &str, line: &[OsString], definition: &Command) -> Option<String> {
    let port = word.parse::<u16>().ok().filter(|port| *port > 0)?;
    // The value of an option may be the same word: without it the line is refused, or has another target. Of two words the
    // later one is the argument too many.
    let mut places = (0..line.len()).rev().filter(|place| line[*place].to_str() == Some(word));
    let rest_of = |place: usize| [&line[..place], &line[place + 1..]].concat();
    let parsed = places.find_map(|place| definition.clone().try_get_matches_from(rest_of(place)).ok())?;
    let (_, arguments) = parsed.subcommand()?;
    let target = arguments.try_get_raw("target").ok().flatten()?.next()?.to_str()?;
    value::target(target).ok()?.with_port(port).map(|target| target.to_string())
}

/// The commands that have the option `name`, which `command` lacks; else the option of `command` with a similar name.
fn option_meant(name: &str, command: &str, definition: &Command) -> Option<String> {
    let shown = || definition.get_subcommands().filter(|command| !command.is_hide_set());
    let others: Vec<_> = shown().filter(|command| long_options(command).contains(&name)).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|command| format!("`latlab {}`", command.get_name())).collect();
        return Some(format!("it is an option of {};", names.join(", ")));
    }
    let own = definition.find_subcommand(command).map(long_options).unwrap_or_default();
    nearest(name, &own).map(|meant| format!("did you mean `--{meant}`?"))
}

fn long_options(command: &Command) -> Vec<&str> {
    command.get_arguments().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long).collect()
}

fn unknown_command(context: Context, definition: &Command) -> Failure {
    let typed = context.one(ContextKind::InvalidSubcommand);
    let shown = definition.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<_> = shown.map(Command::get_name).collect();
    let meant = meant(typed, &names).or_else(|| meant(typed.strip_suffix('s')?, &names));
    let meant = meant.map(|question| format!("{question} ")).unwrap_or_default();
    let hint = format!("{meant}`latlab --help` lists all commands");
    Failure::request(format!("there is no command `{typed}`")).hint(hint)
}

/// An argument that the command cannot do without, or the option that another one needs.
fn missing(context: Context) -> Failure {
    let missing = context.all(ContextKind::InvalidArg);
    let names: Vec<_> = missing.iter().map(|argument| bare(argument)).collect();
    let failure = Failure::request(format!("`{}` is missing", names.join("` and `")));
    match missing.first() {
        Some(option) if option.starts_with('-') => {
            failure.hint(format!("add `{option}`, which another option needs; {}", context.see_help()))
        }
        _ => failure.hint(format!("such as `{}`; {}", context.example(), context.see_help())),
    }
}

/// A value for an option that takes none.
fn unwanted_value(context: Context) -> Failure {
    let (option, value) = (context.option(), context.one(ContextKind::InvalidValue));
    Failure::request(format!("`{option}` takes no value, and `{value}` was given")).hint(format!("write `{option}`"))
}

fn bad_value(context: Context) -> Failure {
    let option = context.option();
    let values = context.all(ContextKind::ValidValue);
    let choice = match values.as_slice() {
        [] => format!("write `{}`", context.one(ContextKind::InvalidArg)),
        [only] => format!("write `{option} {only}`"),
        values => format!("one of `{}`", values.join("`, `")),
    };
    let failure = match context.one(ContextKind::InvalidValue) {
        "" => Failure::request(format!("`{option}` needs a value")),
        typed => Failure::request(format!("`{option}` cannot be `{typed}`")),
    };
    match context.one(ContextKind::SuggestedValue) {
        meant if values.len() > 1 && !meant.is_empty() => failure.hint(format!("did you mean `{meant}`? {choice}")),
        _ => failure.hint(choice),
    }
}

fn refused_value(context: Context) -> Failure {
    match context.0.source().and_then(|source| source.downcast_ref::<Refusal>()) {
        Some(Refusal { cause, hint }) => {
            unusable(context.option(), context.one(ContextKind::InvalidValue), cause, hint)
        }
        None => other(context),
    }
}

fn conflict(context: Context) -> Failure {
    let option = context.option();
    let others: Vec<_> = context.all(ContextKind::PriorArg).iter().map(|prior| bare(prior)).collect();
    if others.is_empty() || others == [option] {
        return Failure::request(format!("`{option}` was given twice")).hint("give it once");
    }
    let others = others.join("` and `");
    Failure::request(format!("`{option}` cannot go with `{others}`")).hint("leave one of them out")
}

/// Keeps clap's message for kinds that this command line does not raise.
fn other(context: Context) -> Failure {
    let text = context.0.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    Failure::request(first.trim_start_matches("error: ").replace('\'', "`")).hint(context.see_help())
}

/// Access to the context of a clap error.
#[derive(Clone, Copy)]
struct Context<'a>(&'a clap::Error);

impl<'a> Context<'a> {
    fn all(self, kind: ContextKind) -> Vec<&'a str> {
        match self.0.get(kind) {
            Some(ContextValue::String(text)) => vec![text],
            Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    fn one(self, kind: ContextKind) -> &'a str {
        self.all(kind).first().copied().unwrap_or_default()
    }

    fn option(self) -> &'a str {
        bare(self.one(ContextKind::InvalidArg))
    }

    /// clap's usage line without its title.
    fn usage(self) -> String {
        let usage = match self.0.get(ContextKind::Usage) {
            Some(ContextValue::StyledStr(usage)) => usage.to_string(),
            _ => String::new(),
        };
        usage.split_whitespace().skip_while(|word| *word != "latlab").collect::<Vec<_>>().join(" ")
    }

    /// A command line of the command that can be pasted.
    fn example(self) -> String {
        let command = self.command();
        let mut examples = COMMANDS.iter().filter(|(name, _)| *name == command);
        examples.next().map_or_else(|| self.usage(), |(_, [first, _])| first.line.to_owned())
    }

    /// The name of the command, which is the second word of the usage line; empty before a command.
    fn command(self) -> String {
        let usage = self.usage();
        let second = usage.split(' ').nth(1).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
        second.unwrap_or_default().to_owned()
    }

    /// Refers to the help page of the command.
    fn see_help(self) -> String {
        match self.command().as_str() {
            "" => "`latlab --help` lists all commands".into(),
            command => format!("`latlab {command} --help` lists its options"),
        }
    }
}

/// Returns `--wait` of `--wait <WORD>`, `FILE` of `<FILE>`.
fn bare(argument: &str) -> &str {
    let name = argument.split([' ', '=']).next().unwrap_or(argument);
    name.trim_start_matches(['<', '[']).trim_end_matches(['.', '>', ']'])
}
