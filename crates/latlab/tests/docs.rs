//! The documents are tests: each `$ latlab …` line in README.md and docs/*.md runs with the real binary,
//! what it prints matches what stands below it, and what is named exists.
//!
//! A block is fenced as `console` or `text`. Its info string may say more, separated by commas: `exit=N` (the last
//! command's exit code), `root` (not run by another user), `norun="reason"` (not run; its commands and options must exist
//! all the same). Commands of one
//! block share a directory; one that ends in `&` runs beside the next ones. Lines that start with `$` and another program
//! are for people. A failed block whose output says that the host was busy is repeated.
//!
//! Figures differ from run to run, so a number matches any number, and a unit of time after it any unit of time; the name
//! of a recording matches any other; bars are blanks. `…` matches anything within a line, and a line that is only `…` or
//! `...` matches any number of lines. Everything else must be the same.

#[path = "docs/job.rs"]
mod job;
mod scheduling;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, fs, iter, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::scheduling::{is_late, precedence};

/// A command that takes longer hangs.
const DEADLINE_S: u64 = 60;

/// The most runs of a block that fails on a busy host.
const ATTEMPTS: usize = 5;

/// README.md and the documents directly below docs/, by name: what users read.
fn documents() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = fs::read_dir(root.join("docs")).expect("docs/ is there").map(|entry| entry.expect("readable").path());
    let pages = entries.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let name = |path: &Path| path.file_name().expect("a file").to_string_lossy().into_owned();
    let all = pages.chain([root.join("README.md")]);
    all.map(|path| (name(&path), fs::read_to_string(&path).expect("UTF-8"))).collect()
}

/// PATH with the freshly built binary first.
pub(crate) fn search_path() -> OsString {
    let folder = Path::new(env!("CARGO_BIN_EXE_latlab")).parent().expect("the binary lies in a folder").to_path_buf();
    let old = env::var_os("PATH").unwrap_or_default();
    env::join_paths([folder].into_iter().chain(env::split_paths(&old))).expect("a path without colons")
}

/// A fenced block.
struct Block {
    /// Its line, from 1.
    line: usize,
    info: String,
    /// Each `latlab` command as typed, and its output.
    commands: Vec<(String, String)>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut lines = text.lines().enumerate();
    let next = || {
        let (line, fence) = lines.find(|(_, line)| line.trim_start().starts_with("```"))?;
        let indent = fence.len() - fence.trim_start().len();
        let inside = lines.by_ref().map(|(_, line)| line.get(indent..).unwrap_or_default());
        let inside: String =
            inside.take_while(|line| !line.starts_with("```")).map(|line| format!("\n{line}")).collect();
        let joined = inside.replace("\\\n", " ");
        let commands = joined.split("\n$ ").skip(1).filter(|command| command.starts_with("latlab "));
        let parts = commands.map(|command| command.split_once('\n').unwrap_or((command, "")));
        let commands = parts.map(|(typed, output)| (typed.trim_end().to_owned(), output.to_owned())).collect();
        Some(Block { line: line + 1, info: fence.trim().trim_start_matches('`').to_owned(), commands })
    };
    let shown = |block: &Block| block.info.starts_with("console") || block.info.starts_with("text");
    iter::from_fn(next).filter(shown).collect()
}

/// A process that runs beside the next commands; it and what it has started end with the value.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        // timeout(1) passes the signal on. It may have ended already.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Runs the commands of `block` in a fresh directory: what is wrong, and all that was printed.
fn attempt(block: &Block) -> (Vec<String>, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join(".output");
    let (mut failures, mut all, mut background) = (Vec::new(), String::new(), Vec::new());
    let code = block.info.split(',').find_map(|word| word.strip_prefix("exit=")?.parse().ok());
    for (index, (typed, shown)) in block.commands.iter().enumerate() {
        let command = typed.trim_end_matches('&');
        let _ = fs::remove_file(&log);
        let mut child = Command::new("timeout")
            .args([&DEADLINE_S.to_string(), "sh", "-c", &format!("exec >.output 2>&1; {command}")])
            .current_dir(directory.path())
            .env("PATH", search_path())
            .env("NO_COLOR", "1")
            .env_remove("LATLAB_STORE")
            .stdin(Stdio::null())
            .spawn()
            .expect("coreutils are installed");
        let printed = || fs::read_to_string(&log).unwrap_or_default();
        let wanted = if index + 1 == block.commands.len() { code.unwrap_or(0) } else { 0 };
        let ended = if command.len() < typed.len() {
            let start = Instant::now();
            while !matches(shown, &printed()) && start.elapsed() < Duration::from_secs(DEADLINE_S) {
                thread::sleep(Duration::from_millis(20));
            }
            background.push(Background(child));
            Some(wanted)
        } else {
            child.wait().expect("our own child").code()
        };
        let printed = printed();
        if ended != Some(wanted) || !matches(shown, &printed) {
            failures.push(format!("`{typed}` ended with {ended:?}\n--- shown\n{shown}\n--- printed\n{printed}"));
        }
        all += &printed;
    }
    (failures, all)
}

/// Whether output says that probes left late, or that other processes used the CPUs: figures of late probes have more digits,
/// which change the layout, and a search finds no rate.
fn was_busy(printed: &str) -> bool {
    printed.lines().any(|line| is_late(line) || line.contains("warning: other processes on this host used"))
}

fn matches(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| text.trim_end().lines().map(canonical).collect::<Vec<_>>();
    lines_match(&lines(shown), &lines(printed))
}

fn lines_match(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if ["…", "..."].contains(&line.as_str()) => {
            (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..]))
        }
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| line_matches(line, first) && lines_match(rest, others))
        }
    }
}

/// `printed` must begin with the first of the pieces that `…` separates, end with the last, and have the others in between.
fn line_matches(shown: &str, printed: &str) -> bool {
    let pieces: Vec<&str> = shown.split('…').map(str::trim).collect();
    let [first, middle @ .., last] = &pieces[..] else { return shown == printed };
    let rest = middle.iter().try_fold(printed.strip_prefix(first).unwrap_or("\n"), |rest, piece| {
        rest.find(piece).map(|at| &rest[at + piece.len()..])
    });
    rest.is_some_and(|rest| rest.ends_with(last) && rest != "\n")
}

/// `line` with everything that may differ written one way.
fn canonical(line: &str) -> String {
    let blank = line.replace(|char| ('\u{2500}'..='\u{259f}').contains(&char), " ");
    let line: Vec<char> = blank.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let is_digit = |at: usize| line.get(at).is_some_and(char::is_ascii_digit);
    let word = |from: usize| line[from..].iter().take_while(|char| char.is_alphanumeric() || **char == '-');
    let (mut plain, mut at) = (String::new(), 0);
    while at < line.len() {
        if !is_digit(at) {
            plain.push(line[at]);
            at += 1;
        } else if word(at).nth(8) == Some(&'T') && word(at).nth(15) == Some(&'Z') {
            plain += "RECORDING";
            at += word(at).count();
        } else {
            if plain.ends_with(['-', '−', '+', '±']) {
                plain.pop();
            }
            while is_digit(at) || (matches!(line.get(at), Some(',' | '.' | '_')) && is_digit(at + 1)) {
                at += 1;
            }
            let unit = at + usize::from(line.get(at) == Some(&' '));
            let name: String = line[unit.min(line.len())..].iter().take_while(|char| char.is_alphanumeric()).collect();
            let is_time = ["ns", "µs", "us", "ms", "s"].contains(&name.as_str());
            plain += if is_time { "#TIME" } else { "#" };
            at = if is_time { unit + name.chars().count() } else { at };
        }
    }
    plain
}

/// What is wrong with `block` of the document `name`, once the host was idle enough to say so.
fn faults(name: &str, block: &Block) -> Vec<String> {
    let mut attempts = (0..ATTEMPTS).map(|_| attempt(block));
    let ended = attempts.find(|(failures, printed)| failures.is_empty() || !was_busy(printed));
    let wrong = ended.unwrap_or_else(|| attempt(block)).0;
    wrong.into_iter().map(|failure| format!("{name}:{}: {failure}", block.line)).collect()
}

#[test]
fn every_block_runs_and_prints_what_it_says() {
    let documents = documents();
    let may_run =
        |block: &Block| !block.info.split(',').any(|word| word == "root") || rustix::process::geteuid().is_root();
    let runs = |block: &Block| !block.info.contains("norun=") && may_run(block) && !block.commands.is_empty();
    let all = documents.iter().flat_map(|(name, text)| blocks(text).into_iter().map(move |block| (name, block)));
    let all: Vec<_> = all.filter(|(_, block)| runs(block)).collect();
    // Reflectors of two blocks would have one port.
    let (serving, others): (Vec<_>, Vec<_>) =
        all.iter().partition(|(_, block)| block.commands.iter().any(|(typed, _)| typed.ends_with('&')));
    let _precedence = precedence();
    let next = Mutex::new(others.into_iter());
    let check = |blocks: &mut dyn Iterator<Item = &(&String, Block)>| -> Vec<String> {
        blocks.flat_map(|(name, block)| faults(name, block)).collect()
    };
    let take = || check(&mut iter::from_fn(|| next.lock().expect("no thread panics with it").next()));
    // Most commands wait for most of their time.
    let failures: Vec<String> = thread::scope(|scope| {
        let others = [scope.spawn(take), scope.spawn(take)];
        let serving = check(&mut serving.into_iter());
        others.into_iter().flat_map(|thread| thread.join().expect("no panic")).chain(serving).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let shown = all.iter().flat_map(|(_, block)| block.commands.iter().flat_map(|command| command.1.lines()));
    let compared = shown.filter(|line| line.len() > 3).count();
    assert!(compared >= 50, "documents show only {compared} lines that are compared with what is printed");
}

#[test]
fn words_are_compared_and_figures_are_not() {
    for (shown, printed) in [
        ("±0.2  −15.4 % [−17.1, −13.6], p50  1,204 ns", "±11  3 % [+1, 2], p50 48.7 µs"),
        ("44 µs ▕███▌   3", "2ms ▕█ 1,000"),
        ("in latlab-runs/20261121T021500Z-ping-7f3a", "in latlab-runs/20270101T000000Z-ping-00ab"),
        ("first\n…\na … c\n", "first\nx\ny\na b c\n\n"),
    ] {
        assert!(matches(shown, printed), "`{shown}` should match `{printed}`");
    }
    for (shown, printed) in [
        ("p50 48.7 µs", "p99 48.7 MB"),
        ("a … c", "a b d"),
        ("… c d", "b c"),
        ("a\nb", "a\nc\nb"),
        ("", "a"),
        ("a", ""),
    ] {
        assert!(!matches(shown, printed), "`{shown}` should not match `{printed}`");
    }
}

/// The help page of each command, and of latlab as that of ``.
fn manual() -> BTreeMap<String, String> {
    let page = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_latlab")).args(words).output().expect("the binary starts");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let overview = page(&["--help"]);
    let commands = overview.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let pages =
        commands.filter(|name| name.starts_with(char::is_alphabetic)).map(|name| (name, page(&[name, "--help"])));
    pages.chain([("", overview.clone())]).map(|(name, page)| (name.to_owned(), page)).collect()
}

/// What `manual` lacks of the command line or the options `line`.
fn missing(manual: &BTreeMap<String, String>, line: &str) -> Vec<String> {
    // The words up to a pipe or redirection belong to latlab, and quoted words to another program.
    let ours: String = line.split(['|', '>', ';']).next().unwrap_or_default().split('\'').step_by(2).collect();
    // Behind `latlab run … --` is another command of latlab, behind `latlab command --` one of the host.
    let (ours, measuring) = ours.split_once(" -- ").unwrap_or((&ours, "COMMAND"));
    let mut words = ours.split_whitespace().peekable();
    let command = words.next_if_eq(&"latlab").and_then(|_| words.next_if(|word| !word.starts_with('-')));
    let pages: Vec<_> = manual.iter().filter(|(name, _)| command.is_none_or(|command| command == **name)).collect();
    let options = words.filter(|word| word.starts_with("--") && word.len() > 2);
    let names = options.map(|word| word.split(['=', ',', '…']).next().unwrap_or_default());
    let is_name = |char: char| char.is_alphanumeric() || char == '-';
    let is_known =
        |name: &str| pages.iter().any(|(_, page)| page.split(|char| !is_name(char)).any(|word| word == name));
    let lacking = names.filter(|name| !is_known(name)).chain(command.filter(|_| pages.is_empty()));
    let lacking = lacking.map(|word| format!("`{line}`: no `{word}`"));
    let is_further = command != Some("command") && measuring.split(' ').next() != Some("COMMAND");
    let further = is_further.then(|| missing(manual, &format!("latlab {measuring}")));
    lacking.chain(further.into_iter().flatten()).collect()
}

#[test]
fn what_documents_name_exists() {
    let manual = manual();
    for line in ["latlab ping --count=5 | sort --numeric-sort", "latlab ping 'cmd:x --y' --count 5", "--store DIR"] {
        assert_eq!(missing(&manual, line), [""; 0]);
    }
    for line in ["latlab pong", "latlab keygen --count 5", "latlab run --ab x y -- ping --record", "--cou"] {
        assert_eq!(missing(&manual, line).len(), 1, "{line}");
    }
    let mut failures = Vec::new();
    for (name, text) in documents() {
        let commands = blocks(&text).into_iter().flat_map(|block| block.commands).map(|command| command.0);
        // Code spans outside of fences.
        let prose = text.split("```").step_by(2).flat_map(str::lines);
        let spans = prose.flat_map(|line| line.split('`').skip(1).step_by(2));
        let spans = spans.filter(|span| span.starts_with("latlab ") || span.starts_with("--")).map(str::to_owned);
        let wrong = commands.chain(spans).flat_map(|line| missing(&manual, &line));
        failures.extend(wrong.map(|failure| format!("{name}: {failure}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
