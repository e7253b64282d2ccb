//! The shape of the code in numbers, each held by a ceiling. `just shape` prints them.
//!
//! What is counted: the shipped code of `crates/latlab/src`; for functions and types that of `crates/latlab-sys/src` too. Items
//! under `#[cfg(test)]` and files that are compiled for tests only are left out. A line counts whether it holds code, a
//! comment or nothing. Quantiles are shown without a ceiling, since removing a small function or file raises them.
//!
//! A number that rises above its ceiling fails the test. A number that falls should take its ceiling along: the table
//! of `just shape` says which ones can be lowered, and `LATLAB_SHAPE_EXACT=1` makes the test fail until [`CEILINGS`]
//! are within 2 % of the numbers.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::circles::{Circle, circles};
use crate::functions::{functions, tuple_aliases};
use crate::repository;
use crate::sizes::FUNCTION_LINES;
use crate::source::{Source, is_word, shipped};
use crate::voice;

/// A measure and the most that it may be.
type Ceiling = (Measure, usize);

/// Lower these as the numbers fall; never raise one without a reason in the commit.
const CEILINGS: [Ceiling; 9] = [
    (Measure::ShippedLines, 104_400),
    (Measure::Files, 520),
    (Measure::SmallFiles, 114),
    (Measure::Circles, 0),
    (Measure::FilesInCircles, 0),
    (Measure::RepeatedTypeNames, 0),
    (Measure::TupleParameters, 0),
    (Measure::LongFunctions, 0),
    (Measure::UnclearWords, 0),
];

/// Lines below which a file is small.
const SMALL_FILE_LINES: usize = 100;

/// A measure of the shape, which has a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    ShippedLines,
    Files,
    SmallFiles,
    Circles,
    FilesInCircles,
    RepeatedTypeNames,
    TupleParameters,
    LongFunctions,
    UnclearWords,
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Measure::ShippedLines => "shipped lines of crates/latlab/src",
            Measure::Files => "files of crates/latlab/src",
            Measure::SmallFiles => "files under 100 lines",
            Measure::Circles => "import circles",
            Measure::FilesInCircles => "files in import circles",
            Measure::RepeatedTypeNames => "public type names defined more than once",
            Measure::TupleParameters => "functions with tuple parameters",
            Measure::LongFunctions => "functions over 70 lines",
            Measure::UnclearWords => "unclear words in comments and test names",
        }
    }

    /// The remedy if the number has risen.
    fn advice(self) -> &'static str {
        match self {
            Measure::ShippedLines => {
                "remove duplication or dead code elsewhere, or raise the ceiling and say what the lines buy"
            }
            Measure::Files | Measure::SmallFiles => "merge files that only one other file needs into that one",
            Measure::Circles | Measure::FilesInCircles => {
                "move the shared type below both files; `just shape` lists the imports of each circle"
            }
            Measure::RepeatedTypeNames => "give each public type a name of its own; `just shape` lists them",
            Measure::TupleParameters => {
                "group what belongs together in a struct, or use separate parameters; `just shape` lists them"
            }
            Measure::LongFunctions => "split long functions by what they do",
            Measure::UnclearWords => "write plain technical English; tests/tidy/voice.rs has the words",
        }
    }

    fn value(self, shape: &Shape) -> usize {
        match self {
            Measure::ShippedLines => shape.own_file_lines().iter().sum(),
            Measure::Files => shape.own_file_lines().len(),
            Measure::SmallFiles => shape.own_file_lines().iter().filter(|lines| **lines < SMALL_FILE_LINES).count(),
            Measure::Circles => shape.circles.len(),
            Measure::FilesInCircles => shape.circles.iter().map(|circle| circle.files.len()).sum(),
            Measure::RepeatedTypeNames => shape.repeated_types.len(),
            Measure::TupleParameters => shape.tuple_parameters.len(),
            Measure::LongFunctions => shape.function_lines.iter().filter(|lines| **lines > FUNCTION_LINES).count(),
            Measure::UnclearWords => shape.unclear_words.len(),
        }
    }
}

struct Shape {
    /// Path and shipped lines of each file.
    file_lines: Vec<(String, usize)>,
    function_lines: Vec<usize>,
    circles: Vec<Circle>,
    /// Public type names that are defined more than once, with the files of their definitions.
    repeated_types: Vec<(String, Vec<String>)>,
    /// `path:line: name(parameters)` of each function that takes a tuple.
    tuple_parameters: Vec<String>,
    /// `path:line: word` of each unclear word in a comment or the name of a test, tests and benches included.
    unclear_words: Vec<String>,
}

/// The crate whose files and circles are counted.
const SYSTEM: &str = "crates/latlab-sys/src/";

impl Shape {
    /// `own` and `system` are the shipped sources of `crates/latlab/src` and `crates/latlab-sys/src`.
    fn of(own: &[Source], system: &[Source]) -> Shape {
        let all = || own.iter().chain(system);
        let aliases: Vec<String> = all().flat_map(tuple_aliases).collect();
        Shape {
            file_lines: all().map(|source| (source.path.clone(), source.shipped_lines)).collect(),
            function_lines: all().flat_map(functions).map(|function| function.lines).collect(),
            circles: circles(own),
            repeated_types: repeated_types(all()),
            tuple_parameters: all().flat_map(|source| tuple_parameters(source, &aliases)).collect(),
            unclear_words: all().flat_map(voice::unclear_words).collect(),
        }
    }

    fn of_repository() -> Shape {
        let system = shipped(&repository::sources("crates/latlab-sys/src"));
        let counted = Shape::of(&shipped(&repository::own_sources()), &system);
        Shape { unclear_words: voice::of_repository(), ..counted }
    }

    /// The lines of each file of `crates/latlab/src`.
    fn own_file_lines(&self) -> Vec<usize> {
        self.file_lines.iter().filter(|(path, _)| !path.starts_with(SYSTEM)).map(|(_, lines)| *lines).collect()
    }

    /// Files and lines of each crate.
    fn layers(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut layers = BTreeMap::new();
        for (path, lines) in &self.file_lines {
            let layer = path.strip_prefix("crates/").and_then(|inside| inside.split('/').next()).unwrap_or_default();
            let counted: &mut (usize, usize) = layers.entry(layer).or_default();
            *counted = (counted.0 + 1, counted.1 + lines);
        }
        layers
    }

    fn table(&self, ceilings: &[Ceiling]) -> String {
        let mut text = format!("\n{:<44}{:>8}{:>9}\n", "measure", "value", "ceiling");
        for (measure, ceiling) in ceilings {
            let value = measure.value(self);
            let _ = writeln!(text, "{:<44}{value:>8}{ceiling:>9}{}", measure.title(), note(value, *ceiling));
        }
        for (title, lines) in [("a file", self.own_file_lines()), ("a function", self.function_lines.clone())] {
            let _ = writeln!(text, "{:<44}{:>8}", format!("lines of {title}, median"), quantile(&lines, 50));
            let _ = writeln!(text, "{:<44}{:>8}", format!("lines of {title}, p90"), quantile(&lines, 90));
        }
        let _ = writeln!(text, "\n{:<44}{:>8}{:>9}", "crate", "files", "lines");
        for (layer, (files, lines)) in self.layers() {
            let _ = writeln!(text, "{layer:<44}{files:>8}{lines:>9}");
        }
        text + &self.names()
    }

    /// The circles, type names and functions that are counted.
    fn names(&self) -> String {
        let short = |text: &str| text.replace("crates/", "");
        let mut lines = Vec::new();
        for circle in &self.circles {
            lines.push(format!("\ncircle of {} files: {}", circle.files.len(), short(&circle.files.join(", "))));
            lines.extend(circle.imports.iter().map(|import| format!("  {}", short(import))));
        }
        lines.push(String::new());
        for (name, files) in &self.repeated_types {
            lines.push(format!("type `{name}`: {}", short(&files.join(", "))));
        }
        lines.push(String::new());
        lines.extend(self.unclear_words.iter().map(|word| format!("word: {}", short(word))));
        lines.extend(self.tuple_parameters.iter().map(|function| format!("tuple: {}", short(function))));
        lines.join("\n") + "\n"
    }
}

/// The value that `percent` of `values` do not exceed (nearest rank); 0 of none.
fn quantile(values: &[usize], percent: usize) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Whether `value` is so far below `ceiling` that the ceiling should follow: by more than 2 %.
fn is_slack(value: usize, ceiling: usize) -> bool {
    ceiling.saturating_sub(value) * 50 > ceiling
}

/// The remark of the table after `value`.
fn note(value: usize, ceiling: usize) -> &'static str {
    match value > ceiling {
        true => "  above the ceiling",
        false if is_slack(value, ceiling) => "  lower the ceiling to the value",
        false => "",
    }
}

fn tuple_parameters(source: &Source, aliases: &[String]) -> Vec<String> {
    functions(source)
        .iter()
        .filter(|function| !function.tuple_parameters(aliases).is_empty())
        .map(|function| {
            let parameters = function.tuple_parameters(aliases).join(", ");
            format!("{}:{}: {}({parameters})", source.path, function.line, function.name)
        })
        .collect()
}

/// Names that more than one public type bears, with the files of the definitions.
fn repeated_types<'a>(sources: impl Iterator<Item = &'a Source>) -> Vec<(String, Vec<String>)> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        for name in public_types(source) {
            defined.entry(name).or_default().push(source.path.clone());
        }
    }
    defined.into_iter().filter(|(_, files)| files.len() > 1).collect()
}

/// The names of types that are visible outside of their module: `pub`, `pub(crate)`, `pub(super)`, `pub(in …)`.
fn public_types(source: &Source) -> Vec<String> {
    let is_public = |before: &str| {
        let before = before.trim_end();
        let before = before.strip_suffix("unsafe").unwrap_or(before).trim_end();
        let scope = before.strip_suffix(')').and_then(|inside| inside.rsplit_once('('));
        scope.map_or(before, |(before, _)| before).trim_end().ends_with("pub")
    };
    let mut names = Vec::new();
    for keyword in ["struct", "enum", "union", "trait", "type"] {
        for offset in source.find_word(keyword).into_iter().filter(|offset| is_public(&source.code[..*offset])) {
            let rest = source.code[offset + keyword.len()..].trim_start();
            names.push(rest.chars().take_while(|char| char.is_ascii() && is_word(*char as u8)).collect());
        }
    }
    names
}

/// What is wrong with the numbers: each that is above its ceiling, and, if `exact`, each whose ceiling should follow.
fn breaches(shape: &Shape, ceilings: &[Ceiling], exact: bool) -> Vec<String> {
    let of_measure =
        |(measure, ceiling): &Ceiling| breach(measure.title(), measure.value(shape), *ceiling, exact, measure.advice());
    ceilings.iter().filter_map(of_measure).collect()
}

fn breach(title: &str, value: usize, ceiling: usize, exact: bool, advice: &str) -> Option<String> {
    let remedy = match value > ceiling {
        true => advice.to_string(),
        false if exact && is_slack(value, ceiling) => format!("lower the ceiling to {value}"),
        false => return None,
    };
    Some(format!("{title}: {value}, the ceiling is {ceiling}; {remedy}"))
}

#[test]
#[allow(clippy::print_stdout, reason = "`just shape` shows the table")]
fn no_measure_is_above_its_ceiling() {
    let shape = Shape::of_repository();
    println!("{}", shape.table(&CEILINGS));
    let exact = std::env::var_os("LATLAB_SHAPE_EXACT").is_some();
    crate::expect_none(breaches(&shape, &CEILINGS, exact));
}

#[cfg(test)]
fn small_shape() -> Shape {
    let own = [
        ("lib.rs", "mod a;\nmod b;\n".to_string()),
        ("a/mod.rs", "use crate::b::B;\npub struct Place;\npub struct A;\n".to_string()),
        (
            "b.rs",
            format!("use crate::a::A;\npub(super) enum Place {{}}\nfn f((a, b): (A, B)) {{{}}}\n", "\n".repeat(97)),
        ),
        ("c.rs", "#[cfg(test)]\nmod tests {\n    pub struct A;\n}\n".to_string()),
    ];
    let own: Vec<Source> =
        own.iter().map(|(path, text)| Source::new(&format!("crates/latlab/src/{path}"), text)).collect();
    let system = [
        Source::new("crates/latlab-sys/src/lib.rs", "// in vain\npub struct Place;\nfn g(pair: Pair) {}\n"),
        Source::new("crates/latlab-sys/src/elsewhere.rs", "pub struct A; type Pair = (u8, u8);\n"),
    ];
    Shape::of(&shipped(&own), &shipped(&system))
}

#[test]
fn every_measure_counts() {
    let shape = small_shape();
    let expected = [
        (Measure::ShippedLines, 105),
        (Measure::Files, 4),
        (Measure::SmallFiles, 3),
        (Measure::Circles, 1),
        (Measure::FilesInCircles, 2),
        (Measure::RepeatedTypeNames, 1),
        (Measure::TupleParameters, 2),
        (Measure::LongFunctions, 1),
        (Measure::UnclearWords, 1),
    ];
    for (measure, value) in expected {
        assert_eq!(measure.value(&shape), value, "{measure:?}");
    }
    assert_eq!(expected.map(|(measure, _)| measure), CEILINGS.map(|(measure, _)| measure));
    let names = shape.names();
    for name in [
        "circle of 2 files: latlab/src/a/mod.rs, latlab/src/b.rs\n",
        "  latlab/src/b.rs -> latlab/src/a/mod.rs: A\n",
        "type `Place`: latlab/src/a/mod.rs, latlab/src/b.rs, latlab-sys/src/lib.rs\n",
    ] {
        assert!(names.contains(name), "{name}: {names}");
    }
    assert!(names.contains("tuple: latlab/src/b.rs:3: f((a, b): (A, B))\n"), "{names}");
}

#[test]
fn a_risen_measure_and_a_slack_ceiling_are_seen() {
    let shape = small_shape();
    for (measure, _) in CEILINGS {
        let value = measure.value(&shape);
        assert_eq!(breaches(&shape, &[(measure, value)], true), [""; 0]);
        let risen = breaches(&shape, &[(measure, value - 1)], false);
        assert!(risen[0].contains(&format!("{}: {value}, the ceiling is {}", measure.title(), value - 1)), "{risen:?}");
        let slack = breaches(&shape, &[(measure, value * 2)], true);
        assert!(slack[0].ends_with(&format!("lower the ceiling to {value}")), "{slack:?}");
        assert_eq!(breaches(&shape, &[(measure, value * 2)], false), [""; 0]);
    }
    let table = shape.table(&[(Measure::Files, 3), (Measure::Circles, 1), (Measure::TupleParameters, 3)]);
    assert_eq!(table.matches("above the ceiling").count(), 1, "{table}");
    assert_eq!(table.matches("lower the ceiling").count(), 1, "{table}");
}

#[test]
fn a_ceiling_may_be_two_per_cent_above() {
    assert!(!is_slack(100, 102) && !is_slack(0, 0) && !is_slack(9, 9));
    assert!(is_slack(97, 100) && is_slack(8, 9) && is_slack(0, 1));
}

#[test]
fn quantiles_are_nearest_ranks() {
    assert_eq!(quantile(&[3, 1, 2], 50), 2);
    assert_eq!(quantile(&(1..=10).collect::<Vec<_>>(), 90), 9);
    assert_eq!(quantile(&[7], 90), 7);
    assert_eq!(quantile(&[], 50), 0);
}

#[test]
fn public_types_are_seen() {
    let text = "pub struct A<T>(T);\npub(crate) enum B {}\n  pub(in crate::x) type C = u8;\npub unsafe trait D {}\nstruct E;\n\
        impl X { type F = u8; }\ntrait G { type H; }\n// pub struct I\npub fn f() -> J { struct K; }\nfn g() { h(x) } enum L {}";
    assert_eq!(public_types(&Source::new("x.rs", text)), ["A", "B", "D", "C"]);
}
