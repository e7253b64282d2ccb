//! `latlab man`: the man pages, from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use clap_mangen::Man;

use super::Outcome;
use super::roff::{in_ascii, literal};
use crate::cli;
use crate::cli::examples::{self, Example};
use crate::console::Console;
use crate::diagnostics::{Failure, in_words};

/// Every page ends with what a script wants to know.
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
pub(super) fn run(directory: Option<&Path>, console: &Console) -> Result<Outcome, Failure> {
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
    let one = |example: Example| format!(".TP\n.B {}\n{}\n", literal(example.line), literal(example.tells));
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
