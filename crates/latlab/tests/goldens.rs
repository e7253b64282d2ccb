//! Transcripts of the real binary: whatever it prints from recordings, experiments and static data, to the letter.
//!
//! Each file of `testdata/goldens/` is the transcript of one [`Case`]: command lines with exit code, stdout and stderr.
//! `LATLAB_UPDATE_GOLDENS=1 cargo test --test goldens` rewrites all of them; the change is then reviewed as a diff.
//! Nothing here measures: what depends on this host or on time does not belong here, and what cannot be avoided of it is
//! masked (see `transcript::masked`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[path = "goldens/caveats.rs"]
mod caveats;
mod commands;
#[path = "goldens/commands_page.rs"]
mod commands_page;
#[path = "goldens/comparisons.rs"]
mod comparisons;
#[path = "goldens/diff.rs"]
mod diff;
#[path = "goldens/documents.rs"]
mod documents;
#[path = "goldens/experiments.rs"]
mod experiments;
#[path = "goldens/hosts.rs"]
mod hosts;
#[path = "goldens/json.rs"]
mod json;
#[path = "goldens/pages.rs"]
mod pages;
#[path = "goldens/refusals.rs"]
mod refusals;
#[path = "goldens/reports.rs"]
mod reports;
mod skip;
#[path = "goldens/summaries.rs"]
mod summaries;
#[path = "goldens/transcript.rs"]
mod transcript;

/// Command lines that are run one after the other in one fresh directory.
struct Case {
    /// The transcript, below `testdata/goldens/` and without its extension.
    name: String,
    /// What is copied into the directory beforehand: files and directories below `testdata/`, each under its own name;
    /// `x as y` copies it as `y`.
    inputs: Vec<String>,
    /// One command line a line. Before a line may stand `~`: only what differs from the last whole output is shown; or
    /// `valid:NAME,…`: only these members of the JSON document are shown, which has to be valid under its schema. Before the arguments of `latlab` may stand `NAME=value` for the environment and `tty` for
    /// a terminal, after them `< FILE`. `write NAME TEXT` makes a file (`\n` ends a line of it), `patch RECORDING JSON`
    /// changes facts in its manifest, `cat PATH` shows a file, or each file of a directory.
    lines: Vec<String>,
}

/// A case with the lines of `lines`.
fn case(name: &str, inputs: &[&str], lines: &str) -> Case {
    let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
    Case { name: name.to_owned(), inputs, lines: lines_of(lines) }
}

/// The lines of `text` that are not empty.
fn lines_of(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The directories in `folder` of testdata, by name.
fn directories(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(testdata().join(folder)).expect("test data").map(|entry| entry.expect("an entry"));
    let directories = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = directories.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Every transcript below `folder`, by its path from there.
fn transcripts(folder: &Path) -> BTreeSet<PathBuf> {
    fn visit(folder: &Path, root: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(&path, root, found)
            } else {
                _ = found.insert(path.strip_prefix(root).expect("below it").to_owned())
            }
        }
    }
    let mut found = BTreeSet::new();
    visit(folder, folder, &mut found);
    found
}

/// The transcript of each case, in the order of the cases; several at a time.
fn all_of(cases: &[Case]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![String::new(); cases.len()]);
    let work = || {
        while let Some((index, case)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, cases.get(i)?)))
        {
            let text = transcript::of(case);
            done.lock().expect("no thread panics with it")[index] = text;
        }
    };
    let threads = thread::available_parallelism().map_or(2, usize::from) * 2;
    thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    done.into_inner().expect("no thread panics with it")
}

/// Every golden as it would be now, by name; without `has_terminal` without the lines that need a terminal.
fn goldens(has_terminal: bool) -> Vec<(String, String)> {
    let cases = [
        pages::cases(),
        refusals::cases(),
        summaries::cases(),
        caveats::cases(),
        comparisons::cases(),
        experiments::cases(),
        reports::cases(),
        hosts::cases(),
    ];
    let mut cases: Vec<Case> = cases.into_iter().flatten().collect();
    for case in &mut cases {
        case.lines.retain(|line| has_terminal || !transcript::needs_terminal(line));
    }
    let texts = all_of(&cases);
    cases.into_iter().map(|case| case.name).zip(texts).chain(documents::all()).collect()
}

#[test]
fn everything_printed_is_as_in_the_goldens() {
    let script = skip::find_program("script");
    if let Err(reason) = &script {
        skip::skip(format_args!("only its lines with `tty`: {reason}"));
    }
    let goldens = goldens(script.is_ok());
    let folder = testdata().join("goldens");
    let path_of = |name: &str| PathBuf::from(format!("{name}.txt"));
    let wanted: BTreeSet<PathBuf> = goldens.iter().map(|(name, _)| path_of(name)).collect();
    assert_eq!(wanted.len(), goldens.len(), "two goldens have one name");
    let update = std::env::var_os("LATLAB_UPDATE_GOLDENS").is_some();
    assert!(script.is_ok() || !update, "goldens are rewritten with all their lines: {script:?}");
    let mut wrong = Vec::new();
    for (name, actual) in goldens {
        let path = folder.join(path_of(&name));
        let golden = fs::read_to_string(&path).unwrap_or_default();
        let expected = if script.is_ok() { golden } else { transcript::without_terminal(&golden) };
        if actual == expected {
            continue;
        }
        if update {
            fs::create_dir_all(path.parent().expect("it is in the folder")).expect("made");
            fs::write(&path, &actual).expect("written");
        } else {
            wrong.push(format!("{} differs (- golden, + now):\n{}", path.display(), diff::of(&expected, &actual)));
        }
    }
    for superfluous in transcripts(&folder).difference(&wanted) {
        if update {
            fs::remove_file(folder.join(superfluous)).expect("removed")
        } else {
            wrong.push(format!("{} belongs to no case", superfluous.display()))
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n\nIf this is meant: LATLAB_UPDATE_GOLDENS=1 cargo test -p latlab --test goldens",
        wrong.join("\n\n")
    );
}
