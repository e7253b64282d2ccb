//! The commands and options in the help pages of the binary.

use std::process::Command;

/// The help pages: of latlab, and of each command.
pub(crate) struct Manual {
    pages: Vec<(String, String)>,
}

impl Manual {
    /// Runs the binary with `--help`.
    pub(crate) fn read() -> Manual {
        let overview = page(&["--help"]);
        let commands = commands(&overview);
        assert!(commands.iter().any(|command| command == "ping"), "no commands in:\n{overview}");
        let pages = commands.into_iter().map(|command| (command.clone(), page(&[&command, "--help"])));
        Manual { pages: pages.collect::<Vec<_>>().into_iter().chain([(String::new(), overview)]).collect() }
    }

    /// A message for the subcommand and each long option of the command line `command` that the help pages lack.
    pub(crate) fn missing(&self, command: &str) -> Vec<String> {
        // The words up to a pipe or redirection belong to latlab.
        let ours = command.split(['|', '>', ';']).next().unwrap_or_default();
        // Quoted words belong to another program.
        let unquoted: String = ours.split('\'').step_by(2).collect();
        // Behind `latlab run … --` is another command of latlab.
        if let Some((run, measuring)) = unquoted.split_once(" -- ").filter(|_| unquoted.starts_with("latlab run ")) {
            // `COMMAND` stands for any.
            let measuring = Some(measuring).filter(|words| !words.starts_with("COMMAND"));
            let measuring = measuring.map(|words| self.missing(&format!("latlab {words}")));
            return [self.missing(run), measuring.unwrap_or_default()].concat();
        }
        let mut words = unquoted.split_whitespace().peekable();
        let name = words.next_if_eq(&"latlab").and_then(|_| words.next_if(|word| !word.starts_with('-')));
        if name.is_some_and(|name| !self.pages.iter().any(|page| page.0 == name)) {
            return vec![format!("`{ours}`: no command `{}`", name.unwrap_or_default())];
        }
        let options = words.filter(|word| word.starts_with("--") && word.len() > 2);
        let long = options.map(|word| word.split(['=', ',', '…']).next().unwrap_or_default());
        long.filter(|option| !self.has_option(name, option))
            .map(|option| format!("`{ours}`: no option `{option}`"))
            .collect()
    }

    /// Whether the page of `command` has `option`; without a command, whether any page has it.
    fn has_option(&self, command: Option<&str>, option: &str) -> bool {
        let pages = self.pages.iter().filter(|page| command.is_none_or(|name| page.0 == name));
        pages.map(|page| page.1.as_str()).any(|text| contains_option(text, option))
    }
}

fn contains_option(text: &str, option: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-');
    text.match_indices(option).any(|(at, _)| ends(&text[at + option.len()..]) && !text[..at].ends_with('-'))
}

/// The words that start the lines below `Commands:`.
fn commands(overview: &str) -> Vec<String> {
    let below = overview.lines().skip_while(|line| line.trim() != "Commands:").skip(1);
    let listed = below.take_while(|line| line.starts_with("  ") || line.is_empty());
    let entries = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    entries.filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
}

fn page(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_latlab")).args(arguments).output().expect("the binary starts");
    assert!(output.status.success(), "latlab {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[cfg(test)]
fn small_manual() -> Manual {
    let overview = "A tool\n\nCommands:\n  ping  Measures\n        twice\n  list  Lists\n\nOptions:\n  -h, --help";
    assert_eq!(commands(overview), ["ping", "list"]);
    let pages = [("ping", "--count <N>\n--no-record"), ("list", "--store <DIR>"), ("", overview)];
    Manual { pages: pages.map(|(name, text)| (name.to_string(), text.to_string())).to_vec() }
}

#[test]
fn unknown_commands_and_options_are_found() {
    let manual = small_manual();
    let known = [
        "latlab ping --count 5",
        "latlab --help",
        "--store DIR",
        "latlab ping | sort --numeric-sort",
        "latlab ping --count=5",
        "latlab ping 'cmd:x --y' --count 5",
    ];
    for command in known {
        assert!(manual.missing(command).is_empty(), "{command}: {:?}", manual.missing(command));
    }
    for command in ["latlab pong", "latlab list --count 5", "latlab ping --record", "--cou", "latlab ping --no"] {
        assert_eq!(manual.missing(command).len(), 1, "{command}");
    }
}
