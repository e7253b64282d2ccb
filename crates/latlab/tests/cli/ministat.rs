//! `latlab compare --ministat` against Debian's ministat (older than FreeBSD's): the same text for the same numbers,
//! except for the differences that docs/comparing.md lists; and `--ministat` of recordings.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Latlab, contains, empty, warnings_at_most};
use crate::skip::program;
use crate::store::recordings_in;

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

const FLAGS: [&str; 13] = [
    "",
    "-s",
    "-A",
    "-n",
    "-w 60",
    "-s -w 2",
    "-w 101",
    "-c 80",
    "-c 90",
    "-c 95",
    "-c 98 -A",
    "-c 99 -A",
    "-c 99.5 -A",
];

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

/// A linear congruential generator; its high bits are used, since the low ones are poor.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// One to seven groups of odd size, so that each median is one of the values.
    fn case(&mut self) -> String {
        let kind = self.below(3);
        let groups = 1 + self.below(7);
        let group = |drawn: &mut Drawn| {
            let most = [3, 7, 41][drawn.below(3) as usize];
            let size = 3 + 2 * drawn.below((most - 1) / 2);
            let value = |drawn: &mut Drawn| match kind {
                0 => format!("{}", drawn.below(21) as i64 - 5),
                1 => format!("{}.{:03}", 80 + drawn.below(40), drawn.below(1000)),
                _ => format!("{}", (drawn.below(2001) as i64 - 1000) * 50),
            };
            (0..size).map(|_| value(drawn)).collect::<Vec<_>>().join(" ")
        };
        (0..groups).map(|_| group(self)).collect::<Vec<_>>().join(" | ")
    }
}

#[test]
fn random_numbers_give_the_same_output_as_ministat() {
    if program("ministat").is_none() {
        return;
    }
    let mut drawn = Drawn(5);
    for _ in 0..150 {
        let home = tempfile::tempdir().expect("a temporary directory");
        let case = drawn.case();
        let files = write(home.path(), &case);
        let width = [74, 60, 2, 3, 10, 20, 101, 73][drawn.below(8) as usize];
        let bars = ["", "-s"][drawn.below(2) as usize];
        let level = ["80", "90", "95", "98", "99", "99.5"][drawn.below(6) as usize];
        let flags = format!("-w {width} {bars} -c {level}");
        assert_eq!(ours(home.path(), &flags, &files), debian(home.path(), &flags, &files), "{flags}: {case}");
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

#[test]
fn stdin_can_be_a_group() {
    let lab = || Latlab::new().file("numbers", "1\n2\n3\n").file("others", "11\n12\n14\n");
    let named = lab().stdin("numbers").line("compare --ministat").stdout(contains("x <stdin>\n")).success();
    let dash = lab().stdin("numbers").line("compare --ministat -").success();
    assert_eq!(named.stdout, dash.stdout);
    let both = lab().stdin("numbers").line("compare --ministat -A others -");
    both.stdout(contains("x others\n+ <stdin>\n")).stdout(contains("\n\t-10.3333 +/- ")).success();
}

#[test]
fn quiet_omits_names_and_heading() {
    let lab = |flags: &str| {
        let lab = Latlab::new().file("a", "1\n2\n3\n").file("b", "11\n12\n14\n");
        lab.line("compare --ministat").line(flags).line("a b").stderr(empty()).success().stdout
    };
    let whole = lab("-A");
    let rest: Vec<&str> = whole.lines().skip(2).filter(|line| !line.starts_with("    N ")).collect();
    assert_eq!(lab("-A -q").lines().collect::<Vec<_>>(), rest);
    assert_eq!(lab("-n -q").lines().count(), 2);
    assert!(lab("-n -q").starts_with("x   3             1             3             2             2             1\n"));
}

#[test]
fn patterns_select_the_files_of_a_group() {
    let lab = || {
        let lab = Latlab::new().file("a-1", "1\n2\n").file("a-2", "3\n").file("b-1", "11\n").file("b-2", "12\n14\n");
        let lab = lab.file("d-1", "11\n");
        lab.line("compare --ministat -A --group before=a-* --group after=b-*")
    };
    lab().stdout(contains("x before\n+ after\n")).stdout(contains("\n+   3            11            14 ")).success();
    let more = lab().line("--group before=d-1").stdout(contains("\nx   4             1            11 ")).success();
    assert_eq!(more.stdout.matches("before").count(), 1, "one name is one group: {}", more.stdout);
    let twice = lab().line("--group before=a-1").stderr(contains("a-1` is named more than once"));
    twice.stdout(contains("\nx   3             1             3 ")).success();
    let shared = lab().line("--group c=b-1").stdout(empty()).stderr(contains("`b-1` is named twice"));
    shared.stderr(contains("in the group `after` and in the group `c`")).failure(2);
    lab().line("--group c=c-*").stdout(empty()).stderr(contains("`c-*`")).stderr(contains("\n  hint: ")).failure(2);
    lab().line("--group c=c-[").stdout(empty()).stderr(contains("`c-[`")).stderr(contains("\n  hint: ")).failure(2);
}

#[test]
fn input_that_cannot_be_compared_is_refused() {
    for (text, flags, printed) in [
        ("", "", "it has 0 observations"),
        ("1\n2\n", "", "it has 2 observations"),
        ("1 5\n2 5\n3\n", "-C 2", "it has 2 observations"),
        ("1\n2\nabc\n", "", "`abc` on line 3 of `a`"),
        ("1\n2\n\nNaN\n", "", "`NaN` on line 4 of `a`"),
        ("1\n2\ninf\n", "", "`inf` on line 3 of `a`"),
        ("0x10\n2\n3\n", "", "`0x10` on line 1 of `a`"),
        ("1\n2\n3x\n", "", "`3x` on line 3 of `a`"),
        ("1,5\n2,5\n3,5\n", "", "`1,5` on line 1 of `a`"),
        ("1\n2\n3\n", "b c d e f g h", "8 groups"),
        ("1\n2\n3\n", "absent", "cannot read `absent`"),
    ] {
        let others = |lab: Latlab, name: &str| lab.file(name, "1\n2\n3\n");
        let lab = ["b", "c", "d", "e", "f", "g", "h"].into_iter().fold(Latlab::new().file("a", text), others);
        let lab = lab.line("compare --ministat a").line(flags).stdout(empty());
        lab.stderr(contains(printed)).stderr(contains("\n  hint: ")).failure(2);
    }
}

/// Three runs of each of two builds, and their mean round trips in ascending order. Each build has a store, since the order of
/// recordings of the same second is random and determines the order of the groups.
fn two_builds(home: &Path) -> (Vec<std::path::PathBuf>, [Vec<f64>; 2]) {
    let means = ["a", "b"].map(|build| {
        let mean = |_| {
            let lab = Latlab::at(home).line("ping -n 20 --warmup 0 --json -q --store").args([
                build,
                "--tag",
                &format!("build={build}"),
            ]);
            lab.success().json()["metrics"]["round_trip_delay"]["mean"].as_f64().expect("a mean")
        };
        let mut means: Vec<f64> = (0..3).map(mean).collect();
        means.sort_by(f64::total_cmp);
        means
    });
    (["a", "b"].iter().flat_map(|store| recordings_in(&home.join(store))).collect(), means)
}

#[test]
fn each_run_is_one_observation_of_ministat() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (recordings, means) = two_builds(home.path());
    let lab = Latlab::at(home.path()).line("compare --ministat -n --by tag:build").args(&recordings);
    let ran = lab.stdout(contains("x a\n+ b\n")).stderr(empty()).success();
    let figures: Vec<Vec<f64>> = ran
        .stdout
        .lines()
        .skip(3)
        .map(|line| line.split_whitespace().skip(1).map(|word| word.parse().expect("a number")).collect())
        .collect();
    for (figures, means) in figures.iter().zip(&means) {
        assert_eq!(figures[0], 3.0, "{}", ran.stdout);
        for (figure, mean) in figures[1..4].iter().zip([means[0], means[2], means[1]]) {
            assert!((figure / mean - 1.0).abs() < 1e-6, "min, max, median of {means:?}: {}", ran.stdout);
        }
    }
    let lab = || Latlab::at(home.path()).line("compare --ministat");
    let grouped = lab().line("-n -q --statistic p50 --group all=[ab]/*").stderr(empty()).success();
    let lines: Vec<&str> = grouped.stdout.lines().map(|line| &line[1..]).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("   6 "), "{}", grouped.stdout);
    for (flags, printed) in [
        ("", "`--by`, `--group`"),
        ("--by tag:buidl", "no run has it, and the runs do not differ in any other factor"),
        ("--by size --statistic medain", "there is no statistic `medain`"),
        ("--by size --metric rond_trip_delay", "round_trip_delay"),
    ] {
        let refused = lab().line(flags).args(&recordings[..2]).stdout(empty()).stderr(contains(printed));
        refused.stderr(contains("\n  hint: ")).failure(2);
    }
    let meant = lab().line("--by tag:buidl").args(&recordings).stdout(empty());
    meant.stderr(contains("did you mean `tag:build`?")).failure(2);
    let mixed = lab().arg(&recordings[0]).arg("numbers").file("numbers", "1\n2\n3\n").stdout(empty());
    mixed.stderr(contains("cannot compare numbers of files with recordings")).failure(2);
    let named = lab().line("numbers --statistic p99").stdout(empty());
    named.stderr(contains("`--statistic` cannot go with `files of numbers`")).failure(2);
}

#[test]
fn the_conditions_of_an_experiment_are_the_groups_of_ministat() {
    let file = "kind = \"ping\"\n[base]\ncount = 50\nwarmup = \"0\"\n[factors]\nsize = [24, 64]\n\
                [design]\nruns = 3\nwarmup-runs = 1\nsettle = \"0s\"\n";
    let lab = Latlab::new().file("x.toml", file);
    let home = lab.path("");
    let _done = lab.line("run x.toml").measured();
    let experiment = crate::store::only_recording(&home);
    let shown = Latlab::at(&home).line("compare --ministat -n").arg(&experiment).stdout(contains("x 24 B\n+ 64 B\n"));
    let shown = shown.stderr(contains("2 runs that warmed up")).success();
    assert_eq!(shown.stdout.lines().filter(|line| line[1..].starts_with("   3 ")).count(), 2, "{}", shown.stdout);
    // One group has a plot and figures too.
    let pattern = format!("all={}/runs/*", experiment.display());
    let alone = Latlab::at(&home).line("compare --ministat --group").arg(pattern);
    alone.stdout(contains("\nx   6 ")).success();
}
