//! The command line: `args` has the arguments, whose values `value` parses; `exclusions` refuses what cannot go together, and
//! `resolve` turns arguments into plans and jobs.

pub mod args;
mod error;
pub mod examples;
mod exclusions;
pub mod options;
pub mod resolve;
pub mod value;
mod version;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::diagnostics::Failure;
use args::Cli;

/// The groups of options in their order on every help page and man page: what is done, where, under which conditions, what
/// is judged, written and printed.
const HEADINGS: [&str; 35] = [
    "A/B comparison",
    "Recipe",
    "Execution",
    "Log format",
    "Input",
    "Checks",
    "Selection",
    "Removal",
    "Listening",
    "Limits",
    "Duration",
    "Schedule",
    "Probes",
    "Traffic",
    "Command",
    "Timers",
    "Threads",
    "CPU and scheduling",
    "Load",
    "Concurrent measurement",
    "Host settings",
    "Network path",
    "DDS",
    "AF_XDP",
    "Grouping",
    "Files of numbers",
    "Comparison",
    "Exported data",
    "Statistics",
    "Claims",
    "Gates",
    "Output",
    "Display",
    "ministat compatibility",
    "Connection",
];
/// Characters in a line of a help page that is not printed to a terminal.
const HELP_WIDTH: usize = 80;
/// Characters in a line of a help page on a terminal. Longer lines are hard to read.
const HELP_WIDTHS: std::ops::RangeInclusive<usize> = 40..=100;

/// The whole definition: help, man pages and completions all come from it.
pub fn definition() -> clap::Command {
    let overview = examples::text(examples::OVERVIEW);
    let mut definition = Cli::command().long_version(version::LONG.as_str()).after_help(overview);
    for (name, examples) in examples::COMMANDS {
        definition = definition.mut_subcommand(name, |command| command.after_help(examples::text(examples)));
    }
    definition = definition.mut_subcommand("wakeup", args::wakeup_in_its_words);
    definition = definition.mut_subcommand("command", args::command_in_its_words);
    // The short help of `ping`, `stream` and `wakeup` hides `--load`; that of `latlab load` shows it.
    let definition =
        definition.mut_subcommand("load", |command| command.mut_arg("load", |load| load.hide_short_help(false)));
    definition.mut_subcommands(in_order)
}

/// `command` with its groups of options in the order of [`HEADINGS`]. clap prints a group where its first option was added,
/// and `mut_arg` moves an argument to the end.
fn in_order(command: clap::Command) -> clap::Command {
    let place = |heading| 1 + HEADINGS.iter().position(|known| *known == heading).unwrap_or(HEADINGS.len());
    let mut arguments: Vec<&clap::Arg> = command.get_arguments().collect();
    arguments.sort_by_key(|argument| argument.get_help_heading().map_or(0, place));
    let names: Vec<clap::Id> = arguments.into_iter().map(|argument| argument.get_id().clone()).collect();
    names.into_iter().fold(command, |command, name| command.mut_arg(name, |argument| argument))
}

/// `command` with its arguments below its options in each line of the usage that does not fit into `width`: clap does not
/// wrap it.
fn with_usage_in(command: clap::Command, width: usize) -> clap::Command {
    let usage = command.clone().render_usage().to_string();
    let (title, options) = ("Usage: ", format!("latlab {} [OPTIONS]", command.get_name()));
    let indent = " ".repeat(title.len());
    let fitting = |line: &str| {
        let (_, arguments) = line.split_once(" [OPTIONS] ")?;
        let is_narrow = title.len() + options.len() + 1 + arguments.len() > width;
        Some(if is_narrow { format!("{options}\n{indent}{arguments}") } else { format!("{options} {arguments}") })
    };
    match usage.lines().map(fitting).collect::<Option<Vec<_>>>() {
        Some(lines) if lines.iter().any(|line| line.contains('\n')) => {
            command.override_usage(lines.join(&format!("\n{indent}")))
        }
        _ => command,
    }
}

/// What a command line is answered with that is not a command.
#[derive(Debug)]
pub enum NotParsed {
    /// A help page, or the version.
    Page(clap::Error),
    Refused(Failure),
}

impl From<NotParsed> for Failure {
    fn from(answer: NotParsed) -> Failure {
        match answer {
            NotParsed::Page(_) => Failure::request("help and version are not commands"),
            NotParsed::Refused(failure) => failure,
        }
    }
}

pub fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Cli, NotParsed> {
    parse_for(typed, None)
}

/// The same, with help pages for a terminal with so many `columns`; `None` for output that is not a terminal.
pub fn parse_for(typed: impl IntoIterator<Item = OsString>, columns: Option<u16>) -> Result<Cli, NotParsed> {
    let width = columns.map_or(HELP_WIDTH, usize::from).clamp(*HELP_WIDTHS.start(), *HELP_WIDTHS.end());
    let mut definition = definition().mut_subcommands(|command| with_usage_in(command, width)).term_width(width);
    let typed: Vec<OsString> = typed.into_iter().collect();
    let parsed = definition.try_get_matches_from_mut(&typed);
    let answer = |answer: clap::Error| match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => NotParsed::Page(answer),
        _ => NotParsed::Refused(error::of(&answer, &typed, &definition)),
    };
    let matches = parsed.map_err(answer)?;
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = definition.find_subcommand(name)
    {
        exclusions::check(command, matches).map_err(NotParsed::Refused)?;
    }
    Cli::from_arg_matches(&matches).map_err(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn help_states_the_defaults_that_hold() {
        use crate::plan::defaults;
        use crate::units::human::typed_span;
        let quantiles = defaults::QUANTILES.map(|quantile| quantile.to_string()).join(",");
        for (command, option, default) in [
            ("ping", "duration", typed_span(defaults::DURATION)),
            ("ping", "warmup", format!("{}, at most {} probes", typed_span(defaults::WARMUP), defaults::WARMUP_PROBES)),
            ("ping", "timeout", typed_span(defaults::TIMEOUT)),
            ("ping", "max_backlog", typed_span(defaults::MAX_BACKLOG)),
            ("ping", "size", defaults::SIZE_BYTES.to_string()),
            ("ping", "quantiles", quantiles),
            ("ping", "store", format!("{}, or $LATLAB_STORE", defaults::STORE)),
            ("ping", "target", format!("local, port {}", defaults::PORT)),
            ("load", "duration", typed_span(defaults::DURATION)),
            ("serve", "bind", format!("every address, port {}", defaults::PORT)),
            ("serve", "max_sessions", defaults::SERVE_SESSIONS.to_string()),
            ("serve", "max_sessions_per_prefix", defaults::SERVE_SESSIONS_PER_PREFIX.to_string()),
            ("serve", "max_new_sessions", defaults::SERVE_NEW_SESSIONS.to_string()),
            ("serve", "max_duration", typed_span(defaults::SERVE_DURATION)),
            ("serve", "idle_timeout", typed_span(defaults::SERVE_IDLE)),
            ("serve", "max_size", defaults::SIZE_MAX_BYTES.to_string()),
        ] {
            let definition = definition();
            let command = definition.find_subcommand(command).expect(command);
            let argument = command.get_arguments().find(|argument| argument.get_id() == option).expect(option);
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("[default: {default}]")), "{option}: {help} is not {default}");
        }
    }

    fn page(line: [&str; 3], columns: Option<u16>) -> String {
        match parse_for(line.map(Into::into), columns).expect_err("a page") {
            NotParsed::Page(page) => page.to_string(),
            NotParsed::Refused(failure) => panic!("{failure:?}"),
        }
    }

    #[test]
    fn no_line_of_a_help_page_is_wider_than_a_narrow_terminal_but_examples() {
        for command in definition().get_subcommands().filter(|command| !command.is_hide_set()) {
            for option in ["-h", "--help"] {
                let page = page(["latlab", command.get_name(), option], Some(40));
                let page = page.split("Examples:").next().unwrap_or_default();
                let wide: Vec<&str> = page.lines().filter(|line| line.chars().count() > 40).collect();
                assert!(wide.is_empty(), "{}: {wide:?}", command.get_name());
            }
        }
    }
}
