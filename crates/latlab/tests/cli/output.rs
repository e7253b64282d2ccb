//! Output in general: stdout, stderr, colour, closed pipes; man pages, completions, help pages.

use std::fs;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::commands::LISTED;
use crate::harness::{BINARY, Latlab, contains, empty};
use crate::skip::program;

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

/// What a formatter prints of a page: without overstriking, in lines of 78 characters.
fn rendered(groff: &Path, page: &Path) -> String {
    let plain = ["-man", "-Tutf8", "-rLL=78n", "-P-c", "-P-b", "-P-o", "-P-u"];
    let output = Command::new(groff).args(plain).arg(page).output().expect("groff starts");
    assert_eq!((output.status.success(), String::from_utf8_lossy(&output.stderr).as_ref()), (true, ""));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `text` with one space between words, as it is on a man page.
fn joined(text: &str) -> String {
    text.replace('…', "...").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names and value of an argument, as they stand on its man page.
fn tag(argument: &clap::Arg) -> String {
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    joined(&format!("{}{argument}", short.map(|letter| format!("-{letter}, ")).unwrap_or_default()))
}

fn help_text(argument: &clap::Arg) -> String {
    argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default()
}

#[test]
fn man_pages_show_each_argument_with_its_whole_text() {
    let Some(groff) = program("groff") else { return };
    let ran = Latlab::new().line("man --output .").success();
    let mut definition = latlab::cli::definition();
    definition.build();
    for command in LISTED {
        let page = rendered(&groff, &ran.directory().join(format!("latlab-{command}.1")));
        let words = joined(&page);
        let starts: Vec<String> = page.lines().map(joined).collect();
        let command = definition.find_subcommand(command).expect(command);
        let mut headings = Vec::new();
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let tag = tag(argument);
            let entry = format!("{tag} {}", joined(&help_text(argument)));
            assert!(words.contains(&entry), "{} lacks `{entry}`:\n{page}", command.get_name());
            for line in help_text(argument).lines().map(joined) {
                // The first words, since a long line is wrapped.
                let start: String = line.chars().take(20).collect();
                // The text stands beside a short tag.
                let begins =
                    |printed: &String| printed.trim_start_matches(&tag).trim_start().starts_with(start.trim_end());
                assert!(starts.iter().any(begins), "`{line}` in\n{page}");
            }
            headings.extend(argument.get_help_heading());
        }
        headings.dedup();
        let places: Vec<_> = headings.iter().map(|heading| starts.iter().position(|line| line == heading)).collect();
        assert!(places.is_sorted() && !places.contains(&None), "{headings:?} in\n{page}");
        assert!(words.contains("done, and the answer is no: a --gate does not hold"), "{page}");
    }
}

#[test]
fn help_of_a_command_is_its_long_help_page() {
    assert_eq!(page("help"), page("--help"));
    for command in LISTED {
        assert_eq!(page(&format!("help {command}")), page(&format!("{command} --help")));
    }
    Latlab::new().line("help pign").stdout(empty()).stderr(contains("did you mean `ping`?")).failure(2);
}

/// What the completions of `shell` offer for the last of `words`, one a line.
fn offered(shell: &str, words: &str, store: &Path) -> String {
    let words: Vec<&str> = ["--", "latlab"].into_iter().chain(words.split(' ')).collect();
    let index = (words.len() - 2).to_string();
    let lab = Latlab::new().args(words).environment("LATLAB_COMPLETE", shell).environment("_CLAP_IFS", "\n");
    let lab = lab.environment("_CLAP_COMPLETE_INDEX", &index);
    lab.environment("LATLAB_STORE", store.display().to_string()).stderr(empty()).success().stdout
}

#[test]
fn completions_offer_options_recipes_knobs_loads_and_recordings() {
    let store = tempfile::tempdir().expect("a temporary directory");
    let recording = store.path().join("20260101T000000Z-ping-1a2b");
    fs::create_dir(&recording).expect("a new directory");
    let recording = recording.display().to_string();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Latlab::new().args(["completions", shell]).stderr(empty()).success().stdout;
        assert!(script.contains("LATLAB_COMPLETE"), "{script}");
        for (words, expected) in [
            ("pi", "ping"),
            ("ping --max-b", "--max-backlog"),
            ("recipes pi-u", "pi-udp-load"),
            ("run dds", "dds-pingpong"),
            ("ping --set gov", "governor="),
            ("ping --load he", "heaters="),
            ("summary ", recording.as_str()),
            ("compare ", recording.as_str()),
        ] {
            let offered = offered(shell, words, store.path());
            // zsh escapes signs that it would interpret.
            assert!(offered.replace('\\', "").contains(expected), "{shell} {words}:\n{offered}");
        }
    }
    Latlab::new().environment("LATLAB_COMPLETE", "tcsh").stderr(contains("unknown shell `tcsh`")).failure(2);
}

#[test]
fn bash_completes_by_the_printed_script() {
    let Some(bash) = program("bash") else { return };
    let binary = Path::new(BINARY);
    let path = format!("{}:/usr/bin:/bin", binary.parent().expect("a file in a directory").display());
    let lines = "source <(latlab completions bash); COMP_WORDS=(latlab recipes pi-u); COMP_CWORD=2; COMP_TYPE=9; \
        _clap_complete_latlab latlab pi-u recipes; echo \"${COMPREPLY[@]}\"";
    let output = Command::new(bash).args(["-c", lines]).env("PATH", path).output().expect("bash starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "pi-udp-load\n", "{output:?}");
}

fn page(line: &str) -> String {
    Latlab::new().line(line).stderr(empty()).success().stdout
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
