//! Two examples for the end of every help page and man page. Tests parse and resolve each of them.

/// An example of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    pub line: &'static str,
    /// Effect of the command line.
    pub effect: &'static str,
}

const fn example(line: &'static str, effect: &'static str) -> Example {
    Example { line, effect }
}

/// Examples of `latlab` without a command.
pub const OVERVIEW: [Example; 2] = [
    example("latlab ping", "ten seconds of round trips over loopback, with a recording"),
    example("latlab summary latlab-runs/*", "the statistics of every recording in the store"),
];

/// Examples of each command, by the command's name.
pub const COMMANDS: [(&str, [Example; 2]); 22] = [
    (
        "ping",
        [
            example("latlab ping --cpu 0 --peer-cpu 1", "this host alone, both ends pinned"),
            example("latlab ping ssh:pi3 -i 1ms -s 32,1024", "another host over ssh: a schedule, two sizes in turn"),
        ],
    ),
    (
        "stream",
        [
            example("latlab stream --cpu 0 --peer-cpu 1", "as fast as possible over loopback, both ends pinned"),
            example("latlab stream ssh:pi3 --search", "to another host: the highest rate without loss"),
        ],
    ),
    (
        "command",
        [
            example("latlab command -n 100 -- python3 -c 'import json'", "a hundred starts of a program"),
            example("latlab command --shell --timeout 5s -- 'sort words.txt | uniq -c'", "a pipeline of a shell"),
        ],
    ),
    (
        "wakeup",
        [
            example("latlab wakeup --cpu all -i 1ms", "a thread on each CPU, woken every millisecond"),
            example("latlab wakeup -i 1s -d 30s --via select,clock_nanosleep", "two ways of sleeping, in turn"),
        ],
    ),
    (
        "serve",
        [
            example("latlab serve --psk-file lab.key --tcp", "every address, UDP and TCP, authenticated sessions only"),
            example("latlab serve --bind 127.0.0.1:9000 --wait spin", "loopback needs no key"),
        ],
    ),
    (
        "keygen",
        [
            example("latlab keygen lab.key", "a fresh 256-bit key; copy it to the other host"),
            example("latlab keygen ~/.config/latlab.key", "readable by its owner only"),
        ],
    ),
    (
        "summary",
        [
            example("latlab summary latlab-runs/* --half", "one table of all, with `round trip / 2`"),
            example("latlab summary RECORDING --gate 'p99 <= 200us'", "exit code 1 unless it holds"),
        ],
    ),
    (
        "explain",
        [
            example("latlab explain RECORDING", "where the time went, the worst probes, what these have in common"),
            example("latlab explain 7f3a --worst 50 --json", "a recording of the store by its short id, as JSON"),
        ],
    ),
    (
        "compare",
        [
            example(
                "latlab compare --by tag:build latlab-runs/*",
                "runs tagged `build=…`, the first build as baseline",
            ),
            example("latlab compare --ministat before.txt after.txt", "numbers in files, as ministat shows them"),
        ],
    ),
    (
        "report",
        [
            example("latlab report latlab-runs/EXPERIMENT", "one HTML page: verdicts, tables, plots, caveats"),
            example("latlab report RECORDING --figure tail -o tail.svg", "one plot for a paper"),
        ],
    ),
    (
        "import",
        [
            example("latlab import rtt.csv --unit us", "a recording of a log, whose format is found by its content"),
            example("latlab import - --from ping --tag path=wifi < ping.log", "from standard input, with a tag"),
        ],
    ),
    (
        "export",
        [
            example(
                "latlab export latlab-runs -o runs.parquet",
                "the rows of all runs with their conditions, in one file",
            ),
            example("latlab export RECORDING -o latlab.prom", "histogram and counters for node_exporter"),
        ],
    ),
    (
        "check-published",
        [
            example(
                "latlab check-published RECORDING --claims 'mean=296us max=3256us n=50000'",
                "exit code 1 unless the recording has these values",
            ),
            example(
                "latlab check-published log.txt --unit ms --claims-file table.txt",
                "values of a log; mistakes that explain wrong ones",
            ),
        ],
    ),
    (
        "load",
        [
            example("latlab load --load cpu=80% -d 1m", "80 % of every CPU for a minute"),
            example("latlab load --load heaters=30 --load mem=2GB/s", "two loads at once, for ten seconds"),
        ],
    ),
    (
        "run",
        [
            example("latlab run udp.toml --dry-run", "the plan and its duration"),
            example(
                "latlab run --ab ./old ./new -- ping localhost:7000 --protocol echo",
                "two builds of a server, in turns",
            ),
        ],
    ),
    (
        "recipes",
        [
            example("latlab recipes", "the built-in experiments"),
            example("latlab recipes pi-udp-load > my.toml", "a file to be changed and run"),
        ],
    ),
    (
        "list",
        [
            example("latlab list --kind ping --since 2d", "the round trips of the last two days"),
            example("latlab list --before 30d --prune", "what is older than 30 days; --yes removes it"),
        ],
    ),
    (
        "doctor",
        [
            example("latlab doctor", "what would disturb a measurement, with the command that fixes it"),
            example("latlab doctor --calibrate --cpu 0 --peer-cpu 1", "measure the bare loop on these CPUs"),
        ],
    ),
    (
        "agent",
        [
            example("latlab agent --stdio < /dev/null", "test whether it can be started here: it greets and ends"),
            example("latlab agent --stdio", "what ssh:HOST starts on the other host"),
        ],
    ),
    (
        "completions",
        [
            example("latlab completions bash > ~/.local/share/bash-completion/completions/latlab", "for bash"),
            example("latlab completions fish > ~/.config/fish/completions/latlab.fish", "for fish"),
        ],
    ),
    (
        "man",
        [
            example("latlab man ping | man -l -", "read the page of `latlab ping`"),
            example("latlab man --output ~/.local/share/man/man1", "then: man latlab-ping"),
        ],
    ),
    (
        "help",
        [example("latlab help", "the commands"), example("latlab help compare", "the same as `latlab compare --help`")],
    ),
];

/// Renders the examples as the end of a help page.
pub fn text(examples: [Example; 2]) -> String {
    let lines = examples.map(|example| format!("  {}\n      {}\n", example.line, example.effect));
    format!("Examples:\n{}", lines.concat().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::cli::{self, resolve};

    /// Splits a line up to its redirection or pipe into words like a shell.
    fn words(line: &str) -> Vec<std::ffi::OsString> {
        let mut quoted = false;
        let mut words = vec![String::new()];
        for sign in line.chars() {
            match sign {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                '>' | '<' | '|' if !quoted => break,
                sign => words.last_mut().expect("never empty").push(sign),
            }
        }
        words.into_iter().filter(|word| !word.is_empty()).map(Into::into).collect()
    }

    #[test]
    fn each_example_resolves() {
        for example in COMMANDS.iter().flat_map(|(_, examples)| examples).chain(&OVERVIEW) {
            let typed = cli::parse(words(example.line)).unwrap_or_else(|error| panic!("{}: {error:?}", example.line));
            let settled = match typed.command {
                Command::Wakeup(args) => resolve::wakeup(&args, &resolve::Environment::default()).map(drop),
                Command::Stream(args) => resolve::stream(&args, &resolve::Environment::default()).map(drop),
                Command::Ping(args) => resolve::ping(&args, &resolve::Environment::default()).map(drop),
                Command::Serve(args) => resolve::serve(&args).map(drop),
                Command::Compare(args) => resolve::sources(&args.grouping, &args.column, &args.paths).map(drop),
                Command::Report(args) => resolve::report(&args).map(drop),
                Command::Export(args) => resolve::export(&args).map(drop),
                Command::Load(args) => resolve::hold(&args).map(drop),
                Command::Run(args) => resolve::run(&args, &resolve::Environment::default()).map(drop),
                Command::Recipes(args) => resolve::recipes(&args).map(drop),
                _ => Ok(()),
            };
            assert_eq!(settled, Ok(()), "{}", example.line);
        }
    }
}
