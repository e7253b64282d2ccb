//! Output in general: stdout, stderr, colour, closed pipes; man pages, completions, help pages.

use std::fs;
use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use crate::commands::{HIDDEN, LISTED};
use crate::harness::{BINARY, Latlab, contains, empty, lacks};

#[test]
fn output_has_no_colour_without_a_terminal() {
    Latlab::new().line("ping -n 0").stdout(empty()).stderr(lacks("\u{1b}")).failure(2);
    Latlab::new().line("--help").environment("TERM", "xterm-256color").stdout(lacks("\u{1b}")).success();
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("the binary was built by the test run");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("the binary was built by the test run");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(printed.contains("cause: no space left on device") && printed.contains("hint: "), "{printed}");
}

#[test]
fn every_command_has_a_man_page() {
    let ran = Latlab::new().line("man --output pages/man1").stdout(empty()).stderr(contains("pages/man1")).success();
    for command in LISTED {
        let path = ran.directory().join(format!("pages/man1/latlab-{command}.1"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for part in [".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH EXAMPLES", ".SH \"EXIT STATUS\""] {
            assert!(text.contains(part), "{command} lacks {part}");
        }
        assert!(text.is_ascii(), "{command} has characters that not every formatter can read");
    }
    let first = fs::read_to_string(ran.directory().join("pages/man1/latlab.1")).expect("the first page");
    let printed = Latlab::new().line("man").stderr(empty()).success().stdout;
    assert_eq!(first, printed);
    assert!(!printed.contains("reflector"), "a hidden command is in the man page");
    let ping = fs::read_to_string(ran.directory().join("pages/man1/latlab-ping.1")).expect("a page");
    assert!(ping.contains("[,\\&...]"), "the page must have a character that is escaped");
}

#[test]
fn man_pages_name_every_long_option() {
    let ran = Latlab::new().line("man --output .").success();
    for command in LISTED {
        let text = fs::read_to_string(ran.directory().join(format!("latlab-{command}.1"))).expect("written");
        let text = text.replace('\\', "");
        let help = page(&format!("{command} --help"));
        let options: Vec<&str> = help.lines().filter_map(long_option).collect();
        assert!(options.contains(&"--help"), "{command}: {options:?}");
        for option in options {
            assert!(text.contains(option), "{command} {option}");
        }
    }
}

/// The long option that a line of help begins with, after its short form.
fn long_option(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mut words = line.split([' ', ',', '=', '[']).filter(|_| line.starts_with('-'));
    words.find(|word| word.starts_with("--"))
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_with_exit_code_3() {
    Latlab::new()
        .file("taken", "a file")
        .line("man --output taken/man1")
        .stderr(contains("error: cannot write `taken/man1`\n  cause: "))
        .stderr(contains("\n  hint: "))
        .failure(3);
}

#[test]
fn completions_have_the_commands_and_their_options() {
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

fn page(line: &str) -> String {
    Latlab::new().line(line).stderr(empty()).success().stdout
}

#[test]
fn help_of_serve_describes_options_of_the_reflector() {
    let help = page("serve --help");
    assert!(help.contains("Pin the answering thread") && help.contains("This end only"), "{help}");
    assert!(!help.contains("Pin the measuring thread") && !help.contains("Both ends do so"), "{help}");
}

#[test]
fn help_lists_every_command() {
    let first = page("--help");
    for command in LISTED {
        assert!(first.contains(&format!("\n  {command} ")), "{command} is not in\n{first}");
    }
    for hidden in ["reflector", "stressor"].into_iter().chain(HIDDEN) {
        assert!(!first.contains(hidden), "{hidden} is in\n{first}");
    }
}

#[test]
fn short_help_fits_50_lines_of_80_columns() {
    for line in LISTED.map(|command| format!("{command} -h")).into_iter().chain(["-h".to_owned()]) {
        let page = page(&line);
        assert!(page.lines().count() <= 50, "{line} has {} lines", page.lines().count());
        let widest = page.lines().max_by_key(|row| row.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= 80, "{line}: {widest}");
    }
}

#[test]
fn each_help_page_ends_with_two_examples() {
    for line in LISTED.map(|command| format!("{command} --help")).into_iter().chain(["--help".to_owned()]) {
        let page = page(&line);
        let (_, examples) = page.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{line} has no examples"));
        let count = examples.lines().filter(|row| row.starts_with("  latlab ")).count();
        assert_eq!((count, examples.lines().count()), (2, 4), "{line}:\n{examples}");
    }
}

#[test]
fn short_help_of_ping_has_ten_options_and_long_help_all() {
    let options = |page: &str| {
        let is_option = |row: &&str| row.trim_start().starts_with('-') && row.starts_with("  ");
        page.lines().filter(is_option).filter(|row| !row.contains("--help")).count()
    };
    let (short, long) = (page("ping -h"), page("ping --help"));
    assert_eq!(options(&short), 10, "{short}");
    for option in
        "--count --duration --interval --poisson --seed --size --warmup --timeout --wait --transport --protocol -4 -6 \
         --bind --peer-addr --source-port --dscp --df --cpu --peer-cpu --fifo --mlock --psk-file --load --set --tag --quantiles --window \
         --deadline --half --gate --gate-strict --max-backlog --output --store --no-record --json --quiet --verbose"
            .split_whitespace()
    {
        let named = long.split_whitespace().any(|word| word.trim_end_matches(',') == option);
        assert!(named, "{option} is not in\n{long}");
    }
}

#[test]
fn the_version_is_printed_to_stdout() {
    let expected = format!("latlab {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(page("--version"), expected);
    assert_eq!(page("-V"), expected);
}
