//! Output in general: stdout, stderr, colour, closed pipes; man pages, completions, help pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::commands::LISTED;
use crate::harness::{BINARY, Latlab, contains, empty};
use crate::skip::program;

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
        assert!(words.contains("done, with a negative result: a --gate does not hold"), "{page}");
    }
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
