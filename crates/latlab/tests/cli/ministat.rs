//! `latlab compare --ministat` against Debian's ministat (older than FreeBSD's): the same text for the same numbers,
//! except for the differences that docs/comparing.md lists; and `--ministat` of recordings.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Latlab, warnings_at_most};
use crate::skip::program;

/// An accepted difference between the two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// The median of an even number of values: ours is the mean of the two in the middle, Debian's the upper one.
    Median,
    /// The standard deviation and what follows from it: Debian's computes it from the squares of the values.
    Spread,
    /// 0/0 is `nan` in ours and `-nan` in Debian's.
    Sign,
}
use Difference::{Median, Sign, Spread};

/// Groups of numbers, separated by `|`, and the accepted difference.
const CASES: [(&str, &[Difference]); 34] = [
    ("50 200 150 400 750 400 150 | 150 400 720 500 930", &[]),
    ("1 2 3", &[]),
    ("3 1 2 | 2 3 1", &[]),
    ("1 2 3 | 11 12 13 | 21 22 23", &[]),
    ("1 2 3 | 11 12 13 | 21 22 23 | 1 2 3", &[]),
    ("1 2 3 | 11 12 13 | 1 2 3 | 11 12 13 | 1 2 3", &[]),
    ("1 2 3 | 11 12 13 | 21 22 23 | 11 12 13 | 11 12 13 | 11 12 13", &[]),
    ("1 2 3 | 1 2 3 | 1 2 3 | 1 2 3 | 1 2 3 | 1 2 3 | 1 2 3", &[]),
    ("1 2 3 | 4 5 6 | 7 8 9 | 10 11 12 | 13 14 15 | 16 17 18 | 19 20 21", &[]),
    ("5 5 5", &[]),
    ("5 5 5 | 5 5 5", &[]),
    ("7 7 7 | 5 5 5", &[]),
    ("5 5 5 | 5 5 6 5 5", &[]),
    ("0 0 0 | 0 0 0", &[]),
    ("0 0 0 | 10 11 12", &[]),
    ("0 0 0 | 5 5 5", &[Sign]),
    ("-1 0 1 | 10 11 12", &[]),
    ("-12 -11 -10 | 10 11 12", &[]),
    ("10 11 12 | -12 -11 -10", &[]),
    ("1 1 1 10 1 | 1 1 1", &[]),
    ("1 1 1 1 1 2 2 9 9 | 2 2 5 | 1 1 1 2 9", &[]),
    ("9 3 15", &[]),
    ("0.1 0.2 0.3 | 0.15 0.25 0.4 0.41 0.39", &[]),
    ("1e-10 2e-10 4e-10 | 3e-10 5e-10 6e-10", &[]),
    ("1e100 2e100 4e100 | 1e99 2e99 5e99", &[]),
    ("48.71 48.69 49.02 47.98 51.3 | 41.2 41.25 40.9", &[]),
    ("+1 .5 5. 1e3 1E-3 | -7 -7.50 -8", &[]),
    ("123456 123457 123459 | 123456 123458 123460", &[Spread]),
    ("1 2 3 4", &[Median]),
    ("1 2 3 10 | 4 4 4 5 | 1 2 3", &[Median]),
    ("50 200 150 400 | 150 400 720 500 930 1000", &[Median]),
    ("1000000001 1000000002 1000000004 | 1000000011 1000000012 1000000014", &[Spread]),
    ("1e-300 2e-300 4e-300 | 1e-300 2e-300 3e-300", &[Spread]),
    ("1e300 2e300 3e300 | 10 11 12", &[Spread]),
];

const FLAGS: [&str; 7] = ["", "-s", "-A", "-n", "-w 60", "-s -w 2", "-c 99.5"];

/// The output of Debian's ministat for `files` in `directory`.
fn debian(directory: &Path, flags: &str, files: &[String]) -> String {
    let mut command = Command::new("ministat");
    let output =
        command.args(flags.split_whitespace()).args(files).current_dir(directory).stdin(Stdio::null()).output();
    let output = output.expect("it has been run before");
    assert!(output.status.success(), "ministat {flags} {files:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Our output for the same.
fn ours(directory: &Path, flags: &str, files: &[String]) -> String {
    let lab = Latlab::at(directory).line("compare --ministat").line(flags).args(files).stderr(warnings_at_most());
    lab.success().stdout
}

/// Writes one file for each group of `case`, with one number a line.
fn write(directory: &Path, case: &str) -> Vec<String> {
    let write = |(number, group): (usize, &str)| {
        let name = format!("group-{number}");
        let text: String = group.split_whitespace().map(|value| format!("{value}\n")).collect();
        std::fs::write(directory.join(&name), text).expect("the directory takes a file");
        name
    };
    case.split('|').enumerate().map(write).collect()
}

/// The kind of a line of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Figures,
    Bars,
    Other,
}

fn kind(line: &str) -> Line {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [symbol, _, _, _, _, _, _] if symbol.len() == 1 && "x+*%#@O".contains(symbol) => Line::Figures,
        _ if line.starts_with('|') && line.contains(['A', 'M']) => Line::Bars,
        _ => Line::Other,
    }
}

/// Expects that `theirs` differs from `ours` only in what the difference allows.
#[track_caller]
fn differences(story: &str, theirs: &str, ours: &str, allowed: &[Difference]) -> Vec<Difference> {
    if theirs == ours {
        return Vec::new();
    }
    let story = format!("{story}\n--- ministat\n{theirs}--- latlab\n{ours}");
    let mut found = Vec::new();
    if allowed.contains(&Spread) {
        // The scale of the plot and the test follow from the standard deviation: only the other figures are compared.
        let figures = |text: &str| text.lines().filter(|line| kind(line) == Line::Figures).map(String::from).collect();
        let (theirs, ours): (Vec<String>, Vec<String>) = (figures(theirs), figures(ours));
        for (theirs, ours) in theirs.iter().zip(&ours) {
            assert_eq!(but_last_word(theirs), but_last_word(ours), "{story}");
        }
        return vec![Spread];
    }
    assert_eq!(theirs.lines().count(), ours.lines().count(), "{story}");
    for (theirs, ours) in theirs.lines().zip(ours.lines()).filter(|(theirs, ours)| theirs != ours) {
        let word = |line: &str, number: usize| line.split_whitespace().nth(number).unwrap_or_default().to_owned();
        match kind(ours) {
            Line::Figures => {
                let same = |number: &usize| word(theirs, *number) == word(ours, *number);
                let differing: Vec<usize> = (0..7).filter(|number| !same(number)).collect();
                assert_eq!(differing, [4], "{story}");
                assert_eq!(theirs.len(), ours.len(), "{story}");
                let n: u64 = word(ours, 1).parse().expect("a count");
                assert_eq!(n % 2, 0, "only the median of an even number may differ: {story}");
                found.push(Median);
            }
            Line::Bars => found.push(Median),
            Line::Other => {
                assert_eq!(theirs.replace("-nan", "nan"), ours, "{story}");
                found.push(Sign);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn but_last_word(line: &str) -> &str {
    line.rsplit_once(' ').map_or(line, |(rest, _)| rest.trim_end())
}

#[test]
fn the_output_equals_that_of_ministat_except_for_listed_differences() {
    if program("ministat").is_none() {
        return;
    }
    for (case, expected) in CASES {
        let home = tempfile::tempdir().expect("a temporary directory");
        let files = write(home.path(), case);
        let mut found = Vec::new();
        for flags in FLAGS {
            let (theirs, ours) = (debian(home.path(), flags, &files), ours(home.path(), flags, &files));
            found.extend(differences(&format!("{case}: {flags}"), &theirs, &ours, expected));
        }
        found.sort();
        found.dedup();
        assert_eq!(found, expected, "{case}");
    }
}

/// ministat has a table of t with three decimals; each entry shows in a margin.
#[test]
fn margins_equal_those_of_ministat_at_each_degree_of_freedom_and_level() {
    if program("ministat").is_none() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    // From 4 degrees of freedom on: three observations in the first group, three or more in the others.
    let group = |size: usize, offset: usize| (0..size).map(|at| format!("{} ", offset + at % 2)).collect::<String>();
    let sizes: Vec<usize> = (3..=103).collect();
    for sizes in sizes.chunks(6) {
        let groups = [3].iter().chain(sizes).enumerate().map(|(number, size)| group(*size, 1000 * number));
        let files = write(home.path(), &groups.collect::<Vec<_>>().join("|"));
        for level in ["80", "90", "95", "98", "99", "99.5"] {
            let flags = format!("-A -c {level}");
            let margins = |text: String| text.lines().filter(|line| line.starts_with('\t')).map(String::from).collect();
            let (theirs, ours): (Vec<String>, Vec<String>) =
                (margins(debian(home.path(), &flags, &files)), margins(ours(home.path(), &flags, &files)));
            assert_eq!(theirs.len(), 3 * sizes.len(), "all differences are proven");
            assert_eq!(ours, theirs, "{level} %, groups of {sizes:?}");
        }
    }
}

#[test]
fn columns_and_comments_are_parsed_as_by_ministat() {
    if program("ministat").is_none() {
        return;
    }
    for (flags, text) in [
        ("", "1\n\n# c\n2\n3\n"),
        ("", "1\r\n2\r\n3\r\n"),
        ("", "1\n2\n3"),
        ("", "#1\n#2\n1\n2\n3\n #4\n"),
        ("", "1 # one\n2\tx\n  3\n\t\n"),
        ("-C 2", "# a b\n1 9\n2 8\n3 7\n4\n5 5\n6 6\n"),
        ("-C 2", "  1\t9\n2  8\n3 7 # c\n"),
        ("-C 2 -d ,", "1, 9\n2, 8 \n3,7\n"),
        ("-C 2 -d ,", ",,1,9\n2,,8\n3,7\n"),
        ("-C 3 -d ;:", "1;2:3;x\n1:2:4\n;1:2;;5\n"),
    ] {
        let home = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(home.path().join("columns"), text).expect("the directory takes a file");
        let files = ["columns".to_owned()];
        assert_eq!(ours(home.path(), flags, &files), debian(home.path(), flags, &files), "{flags}: {text:?}");
    }
}
