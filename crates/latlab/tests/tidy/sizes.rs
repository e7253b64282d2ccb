//! Files and functions stay small enough to be read at once.

use crate::functions::functions;
use crate::source::{Source, shipped};
use crate::{Breach, expect_none, repository};

/// Maximum of shipped lines of a file; unit tests are not counted. A longer file needs a row in [`LONG`].
const FILE_LINES: usize = 600;
/// Maximum of shipped lines of a file that has a row in [`LONG`].
const LONG_FILE_LINES: usize = 800;
/// Files of more than [`FILE_LINES`], and why each is one decision all the same.
const LONG: [(&str, &str); 0] = [];
/// Maximum of lines of a file of tests or benches.
const TEST_FILE_LINES: usize = 600;
/// Maximum of lines of a function; hot loops are no exception.
pub(crate) const FUNCTION_LINES: usize = 70;
/// Maximum of shipped lines of a file with a bare loop. The loop is the reference for latlab's overhead and must stay
/// simple.
const BARE_LINES: usize = 150;

/// The most lines that the file at `path` may have, given the reasons in `long`.
fn limit_of(path: &str, long: &[(&str, &str)]) -> usize {
    let name = path.rsplit('/').next().unwrap_or(path);
    match path {
        _ if path.contains("/src/measure/") && name.starts_with("bare") => BARE_LINES,
        _ if long.iter().any(|(known, _)| *known == path) => LONG_FILE_LINES,
        _ => FILE_LINES,
    }
}

fn long_file(source: &Source, long: &[(&str, &str)]) -> Option<Breach> {
    let (lines, limit) = (source.shipped_lines, limit_of(&source.path, long));
    (lines > limit).then(|| {
        let advice = if limit == FILE_LINES { "split it by decision, or give a reason in `LONG`" } else { "split it" };
        format!("{}: {lines} shipped lines, the limit is {limit}; {advice}", source.path)
    })
}

/// Rows of `long` whose file is not long, or that have no reason.
fn needless(long: &[(&str, &str)], shipped: &[Source]) -> Vec<Breach> {
    let is_long = |path: &str| shipped.iter().any(|file| file.path == path && file.shipped_lines > FILE_LINES);
    let needless = long.iter().filter(|(path, reason)| !is_long(path) || reason.is_empty());
    needless.map(|(path, _)| format!("{path}: a row in `LONG` without need or without a reason; remove it")).collect()
}

/// A file of tests, benches or fuzzing that is too long; all its lines count.
fn long_test_file(source: &Source) -> Option<Breach> {
    let lines = source.text.lines().count();
    (lines > TEST_FILE_LINES)
        .then(|| format!("{}: {lines} lines, the limit is {TEST_FILE_LINES}; split it by what is tested", source.path))
}

fn long_functions(source: &Source) -> Vec<Breach> {
    functions(source)
        .into_iter()
        .filter(|function| function.lines > FUNCTION_LINES)
        .map(|function| {
            let (path, line) = (&source.path, function.line);
            format!("{path}:{line}: `{}` has {} lines, the limit is {FUNCTION_LINES}", function.name, function.lines)
        })
        .collect()
}

#[test]
fn files_are_short() {
    let own = repository::own_sources().into_iter().chain(repository::sources("crates/latlab-sys/src"));
    let shipped = shipped(&own.collect::<Vec<_>>());
    let mut breaches: Vec<Breach> = shipped.iter().filter_map(|source| long_file(source, &LONG)).collect();
    breaches.extend(needless(&LONG, &shipped));
    let others = repository::sources("");
    let for_tests = others.iter().filter(|source| shipped.iter().all(|file| file.path != source.path));
    breaches.extend(for_tests.filter_map(long_test_file));
    expect_none(breaches);
}

#[test]
fn functions_are_short() {
    expect_none(repository::sources("").iter().flat_map(long_functions).collect());
}

#[test]
fn a_long_file_is_reported() {
    let file = |path: &str, lines: usize| Source::new(&format!("crates/latlab/src/{path}"), &"\n".repeat(lines));
    let long = [("crates/latlab/src/x.rs", "one table")];
    let cases = [
        (file("x.rs", 601), &[][..], 1),
        (file("x.rs", 600), &[], 0),
        (file("x.rs", 601), &long, 0),
        (file("x.rs", 801), &long, 1),
        (file("commands/ping.rs", 101), &[], 0),
        (file("measure/ping/bare_tcp.rs", 151), &[], 1),
        (file("cli/bare.rs", 151), &[], 0),
    ];
    for (source, long, expected) in cases {
        assert_eq!(long_file(&source, long).iter().count(), expected, "{}", source.path);
    }
    let tested = format!("{}#[cfg(test)]\nmod tests {{{}}}", "\n".repeat(600), "\n".repeat(300));
    assert_eq!(long_file(&Source::new("crates/latlab/src/x.rs", &tested), &[]), None);
    assert!(long_test_file(&file("x/tests.rs", 601)).is_some());
    assert!(long_test_file(&file("x/tests.rs", 600)).is_none());
}

#[test]
fn a_needless_reason_is_reported() {
    let file = |lines: usize| [Source::new("x.rs", &"\n".repeat(lines))];
    assert_eq!(needless(&[("x.rs", "one table")], &file(601)).len(), 0);
    assert_eq!(needless(&[("x.rs", "one table")], &file(600)).len(), 1);
    assert_eq!(needless(&[("x.rs", "")], &file(601)).len(), 1);
    assert_eq!(needless(&[("y.rs", "gone")], &file(601)).len(), 1);
}

#[test]
fn a_long_function_is_reported() {
    let long = format!("fn short() {{}}\nfn long() {{{}}}", "\n".repeat(70));
    let breaches = long_functions(&Source::new("x.rs", &long));
    assert_eq!(breaches, ["x.rs:2: `long` has 71 lines, the limit is 70"]);
    let limit = format!("fn limit() {{{}}}", "\n".repeat(69));
    assert_eq!(long_functions(&Source::new("x.rs", &limit)).len(), 0);
}
