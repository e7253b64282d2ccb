//! `latlab man`: man pages from the definition of the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Outcome;
use crate::cli;
use crate::cli::args::ManArgs;
use crate::cli::examples::{self, Example};
use crate::console::Console;
use crate::diagnostics::{Failure, in_words};
use crate::units::human::suggestion;

/// Without hyphenation and with a ragged right margin: an option must not be cut or stretched.
const LAYOUT: &str = ".nh\n.ad l\n";
const EXIT_STATUS: &str = r#".SH "EXIT STATUS"
.TP
0
done
.TP
1
done, with a negative result: a \-\-gate does not hold, doctor found a blocker
.TP
2
the request is wrong: arguments, experiment file, unreadable or damaged input
.TP
3
the environment does not allow it: permission, missing feature, no answer, disk full
.TP
4
measured, but the results are not trustworthy; the recording is kept and marked
.TP
129, 130, 131, 143
ended by SIGHUP, SIGINT, SIGQUIT, SIGTERM; what was measured is kept
"#;

/// The man page of latlab or of one of its commands.
struct ManPage {
    /// `latlab`, `latlab-ping` …
    name: String,
    /// In roff.
    text: String,
}

/// Prints one page, or writes latlab(1) and one page for each command to a directory.
pub(super) fn man_pages(typed: &ManArgs, console: &Console) -> Result<Outcome, Failure> {
    let pages = pages();
    match (&typed.output, &typed.command) {
        (Some(directory), _) => {
            write(directory, &pages).map_err(|(path, error)| unwritable(&path, &error))?;
            console.note(&format!("{} man pages are in `{}`", pages.len(), directory.display()));
        }
        (None, None) => console.data(&pages[0].text)?,
        (None, Some(command)) => {
            let page = pages.iter().find(|page| page.name == format!("latlab-{command}"));
            console.data(&page.ok_or_else(|| unknown(command))?.text)?;
        }
    }
    Ok(Outcome::Done)
}

/// latlab(1), then one page for each command.
fn pages() -> Vec<ManPage> {
    let mut definition = cli::definition();
    definition.build();
    let page = |name: &str| definition.find_subcommand(name).map(man_page);
    let commands = examples::COMMANDS.iter().filter_map(|(name, _)| page(name));
    std::iter::once(man_page(&definition)).chain(commands).collect()
}

fn man_page(command: &clap::Command) -> ManPage {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let (title, version) = (literal(&name), env!("CARGO_PKG_VERSION"));
    let text = [
        format!(".TH {title} 1 \"\" \"latlab {version}\" latlab\n{LAYOUT}"),
        format!(".SH NAME\n{title} \\- {}\n", literal(&about)),
        format!(".SH SYNOPSIS\n{}\n", literal(usage.trim_start_matches("Usage: "))),
        arguments(command),
        options(command),
        commands(command),
        examples_section(command),
        EXIT_STATUS.to_owned(),
    ];
    ManPage { name, text: in_ascii(&text.concat()) }
}

fn arguments(command: &clap::Command) -> String {
    let shown: String = command.get_positionals().filter(|argument| !argument.is_hide_set()).map(entry).collect();
    if shown.is_empty() { shown } else { format!(".SH ARGUMENTS\n{shown}") }
}

/// The options below the headings of the help page, in the same order.
fn options(command: &clap::Command) -> String {
    let mut section = ".SH OPTIONS\n".to_owned();
    let shown: Vec<_> =
        command.get_arguments().filter(|option| !option.is_positional() && !option.is_hide_set()).collect();
    section.extend(shown.iter().filter(|option| option.get_help_heading().is_none()).map(|option| entry(option)));
    for group in shown.chunk_by(|one, other| one.get_help_heading() == other.get_help_heading()) {
        let Some(heading) = group[0].get_help_heading() else { continue };
        section += &format!(".SS \"{}\"\n", literal(heading));
        section.extend(group.iter().map(|option| entry(option)));
    }
    section
}

/// An argument with its whole help text. A line of the text begins a line of the page, an empty line a paragraph.
fn entry(argument: &clap::Arg) -> String {
    let whole = argument.to_string();
    let (name, value) = whole.split_once(' ').unwrap_or((&whole, ""));
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    let short = short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    let tag = format!("\\fB{}\\fR \\fI{}\\fR", literal(&(short + name)), literal(value));
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let lines = |paragraph: &str| paragraph.lines().map(literal).collect::<Vec<_>>().join("\n.br\n");
    let paragraphs = help.split("\n\n").map(lines).chain(values(argument));
    format!(".TP\n{tag}\n{}\n", paragraphs.collect::<Vec<_>>().join("\n.sp\n"))
}

/// The possible values of `argument`, if its help text does not list them.
fn values(argument: &clap::Arg) -> Option<String> {
    if argument.is_hide_possible_values_set() {
        return None;
    }
    let lines = argument.get_possible_values().into_iter().map(|value| match value.get_help() {
        Some(help) => literal(&format!("{}: {help}", value.get_name())),
        None => literal(value.get_name()),
    });
    Some(lines.collect::<Vec<_>>().join("\n.br\n")).filter(|lines| !lines.is_empty())
}

fn commands(command: &clap::Command) -> String {
    let mut shown: Vec<_> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    // Changing a definition moves it to the end; the help page sorts by this too.
    shown.sort_by_key(|command| command.get_display_order());
    let one = |command: &clap::Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        format!(".TP\n.BR latlab\\-{} (1)\n{}\n", literal(command.get_name()), literal(&about))
    };
    let entries: String = shown.into_iter().map(one).collect();
    if entries.is_empty() { entries } else { format!(".SH COMMANDS\n{entries}") }
}

fn examples_section(command: &clap::Command) -> String {
    let of_command = examples::COMMANDS.iter().find(|(name, _)| *name == command.get_name());
    let examples = of_command.map_or(examples::OVERVIEW, |(_, examples)| *examples);
    let one = |example: Example| format!(".TP\n\\fB{}\\fR\n{}\n", literal(example.line), literal(example.effect));
    format!(".SH EXAMPLES\n{}", examples.map(one).concat())
}

fn write(directory: &Path, pages: &[ManPage]) -> Result<(), (PathBuf, io::Error)> {
    fs::create_dir_all(directory).map_err(|error| (directory.to_owned(), error))?;
    for page in pages {
        let path = directory.join(format!("{}.1", page.name));
        fs::write(&path, &page.text).map_err(|error| (path, error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::world(format!("cannot write `{}`", path.display()))
        .because(in_words(error))
        .hint("`--output DIR` names a directory that can be written to")
}

fn unknown(command: &str) -> Failure {
    let names = examples::COMMANDS.map(|(name, _)| name);
    Failure::request(format!("there is no man page of `latlab {command}`")).hint(suggestion(command, &names))
}

/// Escapes `text` for roff, which turns quotes, hyphens and tildes into typographic signs that a shell does not accept.
fn literal(text: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\e".to_owned(),
        '-' => "\\-".to_owned(),
        '\'' => "\\(aq".to_owned(),
        '"' => "\\(dq".to_owned(),
        '`' => "\\(ga".to_owned(),
        '^' => "\\(ha".to_owned(),
        '~' => "\\(ti".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

/// `page` with the escapes of groff_char(7) for signs outside ASCII, since not every formatter reads UTF-8. An ellipsis
/// becomes three dots, since groff has none for an ASCII terminal; `\&` keeps a dot from beginning a line.
fn in_ascii(page: &str) -> String {
    let sign = |c: char| match c {
        '…' => "\\&...".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\[u{:04X}]", u32::from(c)),
    };
    page.chars().map(sign).collect()
}
