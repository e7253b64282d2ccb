//! `latlab man` and `latlab completions SHELL`: man pages and completions from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::Outcome;
use crate::cli;
use crate::cli::examples::{self, Example};
use crate::console::Console;
use crate::diagnostics::{Failure, in_words};

const EXIT_STATUS: &str = r#".SH "EXIT STATUS"
.TP
0
done
.TP
1
done, and the answer is no: summary \-\-fail\-if held, doctor found a blocker
.TP
2
the request is wrong: arguments, unreadable or damaged input
.TP
3
the world refuses: permission, missing feature, no answer, disk full
.TP
4
measured but not to be trusted; the recording is kept and marked
.TP
129, 130, 131, 143
ended by SIGHUP, SIGINT, SIGQUIT, SIGTERM; what was measured is kept
"#;

/// Prints latlab(1), or writes it and one page for each command to `directory`.
pub(super) fn man_pages(directory: Option<&Path>, console: &Console) -> Result<Outcome, Failure> {
    let pages = pages().map_err(|error| Failure::world("cannot render the man pages").because(in_words(&error)))?;
    match directory {
        None => console.data(&pages[0].1)?,
        Some(directory) => {
            write(directory, &pages).map_err(|(path, error)| unwritable(&path, &error))?;
            console.note(&format!("{} man pages are in `{}`", pages.len(), directory.display()));
        }
    }
    Ok(Outcome::Done)
}

/// File name and text of each page; latlab(1) comes first.
fn pages() -> io::Result<Vec<(String, String)>> {
    let mut definition = cli::definition();
    definition.build();
    let mut pages = vec![page(&definition, examples::OVERVIEW)?];
    for (name, examples) in examples::COMMANDS {
        if let Some(command) = definition.find_subcommand(name) {
            pages.push(page(command, examples)?);
        }
    }
    Ok(pages)
}

fn page(command: &clap::Command, examples: [Example; 2]) -> io::Result<(String, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let man = Man::new(command.clone()).source(format!("latlab {version}")).manual("latlab");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let text = [&String::from_utf8_lossy(&text), examples_section(examples).as_str(), EXIT_STATUS].concat();
    Ok((man.get_filename(), in_ascii(&text)))
}

fn examples_section(examples: [Example; 2]) -> String {
    let one = |example: Example| format!(".TP\n.B {}\n{}\n", literal(example.line), literal(example.effect));
    format!(".SH EXAMPLES\n{}", examples.map(one).concat())
}

fn write(directory: &Path, pages: &[(String, String)]) -> Result<(), (std::path::PathBuf, io::Error)> {
    fs::create_dir_all(directory).map_err(|error| (directory.to_owned(), error))?;
    for (name, text) in pages {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| (path, error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::world(format!("cannot write `{}`", path.display()))
        .because(in_words(error))
        .hint("`--output DIR` names a directory that can be written to")
}

/// Escapes `text` for roff, which turns quotes, hyphens and tildes into typographic signs that a shell does not accept.
pub(super) fn literal(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('~', "\\(ti")
}

/// `page` with the escapes of groff_char(7) for signs outside ASCII, since not every formatter reads UTF-8. An ellipsis
/// becomes three dots, since groff has none for an ASCII terminal; `\&` keeps a dot from beginning a line.
pub(super) fn in_ascii(page: &str) -> String {
    let sign = |c: char| match c {
        '…' => "\\&...".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\[u{:04X}]", u32::from(c)),
    };
    page.chars().map(sign).collect()
}

/// Prints the completions of `shell`.
pub(super) fn completions(shell: Shell, console: &Console) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    generate(shell, &mut cli::definition(), "latlab", &mut script);
    console.data(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_become_escapes() {
        assert_eq!(in_ascii("p99 ≥ 1 µs, 😀\n.SH X"), "p99 \\[u2265] 1 \\[u00B5]s, \\[u1F600]\n.SH X");
        assert_eq!(in_ascii("BYTES[,…]"), "BYTES[,\\&...]");
        assert_eq!(literal("-i '~/a\\b'"), "\\-i \\(aq\\(ti/a\\eb\\(aq");
    }
}
