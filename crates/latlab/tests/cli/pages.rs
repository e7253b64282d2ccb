//! Man pages and completions come from the definition of the command line.

use std::fs;

use crate::harness::{Latlab, contains, empty};

#[test]
fn every_command_has_a_man_page() {
    let ran = Latlab::new().line("man --output pages/man1").stdout(empty()).stderr(contains("pages/man1")).success();
    for command in ["ping", "serve", "keygen", "summary", "list", "doctor", "completions", "man"] {
        let path = ran.directory().join(format!("pages/man1/latlab-{command}.1"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for part in [".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH EXAMPLES", ".SH \"EXIT STATUS\""] {
            assert!(text.contains(part), "{command} lacks {part}");
        }
        assert!(text.is_ascii(), "{command} has signs that not every formatter reads");
    }
    let first = fs::read_to_string(ran.directory().join("pages/man1/latlab.1")).expect("the first page");
    let printed = Latlab::new().line("man").stderr(empty()).success().stdout;
    assert_eq!(first, printed);
    assert!(!printed.contains("reflector"), "hidden commands stay hidden");
    let ping = fs::read_to_string(ran.directory().join("pages/man1/latlab-ping.1")).expect("a page");
    assert!(ping.contains("[,\\&...]"), "there is a sign to be escaped, or this test says nothing");
}

#[test]
fn a_man_page_names_every_long_option() {
    let ran = Latlab::new().line("man --output . --help").success();
    assert!(ran.stdout.contains("--output"));
    let ran = Latlab::new().line("man --output .").success();
    let page = fs::read_to_string(ran.directory().join("latlab-ping.1")).expect("written").replace('\\', "");
    for option in ["--count", "--poisson", "--source-port", "--max-backlog", "--no-record", "--tag"] {
        assert!(page.contains(option), "{option}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_the_worlds_refusal() {
    Latlab::new()
        .file("taken", "a file")
        .line("man --output taken/man1")
        .stderr(contains("error: cannot write `taken/man1`\n  cause: "))
        .stderr(contains("\n  hint: "))
        .failure(3);
}

#[test]
fn completions_know_the_commands_and_their_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        Latlab::new()
            .args(["completions", shell])
            .stdout(contains("ping"))
            .stdout(contains("max-backlog"))
            .stdout(contains("source-port"))
            .stderr(empty())
            .success();
    }
}
