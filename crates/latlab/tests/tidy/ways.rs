//! The ways through the code that ARCHITECTURE.md describes: at most ten lines each, each of which names a function, and
//! the functions that they name exist.

use std::ops::RangeInclusive;

use crate::functions::{body, functions};
use crate::paths::module_of;
use crate::source::{Source, shipped};
use crate::{Breach, expect_none, repository};

/// How a section that describes a way begins.
const HEADING: &str = "### The way of ";
const LINES_MAX: usize = 10;

/// Heading and lines of each way in `text`.
fn ways(text: &str) -> Vec<(String, Vec<String>)> {
    let mut ways: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with('#') {
            inside = line.starts_with(HEADING);
            if inside {
                ways.push((line.trim_start_matches(['#', ' ']).to_string(), Vec::new()));
            }
        } else if let Some((_, lines)) = ways.last_mut().filter(|_| inside && !line.trim().is_empty()) {
            lines.push(line.to_string());
        }
    }
    ways
}

/// The functions and types in backticks: `function`, `Type`, `module::function`, `module::Type::method`.
fn paths(line: &str) -> Vec<Vec<String>> {
    let quoted = line.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| {
        text.starts_with(char::is_alphabetic) && text.chars().all(|char| char.is_alphanumeric() || "_:".contains(char))
    };
    let paths = quoted.filter(is_path);
    paths.map(|path| path.split("::").map(String::from).collect()).collect()
}

fn is_type(segment: &str) -> bool {
    segment.starts_with(char::is_uppercase)
}

/// Whether `path` ends in a function.
fn is_function(path: &[String]) -> bool {
    path.last().is_some_and(|name| !is_type(name))
}

/// Whether `path` exists in one of `sources`: in a file whose module path begins with the modules of `path`. A function
/// after a type must be in an `impl` or `trait` block of that type; any other type must only be mentioned.
fn exists(path: &[String], sources: &[Source]) -> bool {
    let Some((name, rest)) = path.split_last() else { return false };
    let modules: Vec<&String> = rest.iter().filter(|segment| !is_type(segment)).collect();
    let types: Vec<&String> = path.iter().filter(|segment| is_type(segment)).collect();
    sources.iter().any(|source| {
        let module = module_of(&source.path);
        let in_module = module.len() >= modules.len() && module.iter().zip(&modules).all(|(own, asked)| own == *asked);
        in_module
            && types.iter().all(|word| !source.find_word(word).is_empty())
            && (is_type(name)
                || functions(source).iter().any(|function| {
                    function.name == *name
                        && types.iter().all(|word| blocks(source, word).any(|block| block.contains(&function.line)))
                }))
    })
}

/// The type that an `impl` block is of, or the trait that is declared, from the code after `impl` or `trait`.
fn subject(header: &str) -> Option<&str> {
    let header = header.split_once('{')?.0.split("where").next()?;
    let of = header.rsplit_once(" for ").map_or_else(|| without_parameters(header), |(_, of)| of);
    let path = of.trim().split(['<', ':']).find(|part| part.starts_with(char::is_uppercase))?;
    Some(path.trim())
}

/// The header of an `impl` block without its own generic parameters: `<T> Type<T>` is `Type<T>`.
fn without_parameters(header: &str) -> &str {
    if !header.starts_with('<') {
        return header;
    }
    let mut depth = 0;
    let end = header.find(|char| {
        depth += i32::from(char == '<') - i32::from(char == '>');
        depth == 0
    });
    end.map_or(header, |end| &header[end + 1..])
}

/// The lines of each `impl` block of the type `word`, and of the declaration of that trait.
fn blocks<'a>(source: &'a Source, word: &'a str) -> impl Iterator<Item = RangeInclusive<usize>> + 'a {
    // An `impl` inside of a line is a type.
    let is_item = |at: usize| {
        let line = source.code[..at].rsplit('\n').next().unwrap_or_default();
        line.split_whitespace().all(|word| word.starts_with("pub") || word == "unsafe")
    };
    let items = ["impl", "trait"]
        .into_iter()
        .flat_map(|keyword| source.find_word(keyword).into_iter().map(move |at| (at, at + keyword.len())));
    items.filter(move |(at, _)| is_item(*at)).filter_map(move |(at, after)| {
        let code = &source.code[at..];
        let is_its = subject(&source.code[after..]) == Some(word);
        is_its.then(|| Some(source.line_of(at)..=source.line_of(at + body(code)?)))?
    })
}

fn wrong_ways(text: &str, sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (heading, lines) in ways(text) {
        if lines.len() > LINES_MAX {
            breaches.push(format!("ARCHITECTURE.md: `{heading}` has {} lines, the limit is {LINES_MAX}", lines.len()));
        }
        for line in lines.iter().filter(|line| !paths(line).iter().any(|path| is_function(path))) {
            breaches.push(format!("ARCHITECTURE.md: `{heading}` has a line without a function: {line}"));
        }
        for path in lines.iter().flat_map(|line| paths(line)).filter(|path| !exists(path, sources)) {
            breaches.push(format!("ARCHITECTURE.md: `{heading}` names `{}`, which does not exist", path.join("::")));
        }
    }
    breaches
}

#[test]
fn the_ways_of_architecture_name_functions_that_exist() {
    let text = repository::read("ARCHITECTURE.md");
    let named: usize = ways(&text).iter().flat_map(|(_, lines)| lines).map(|line| paths(line).len()).sum();
    assert!(ways(&text).len() >= 4 && named >= 20, "{} ways with {named} functions", ways(&text).len());
    expect_none(wrong_ways(&text, &shipped(&repository::own_sources())));
}

#[test]
fn a_wrong_way_is_reported() {
    let sources = [Source::new(
        "crates/latlab/src/a/b.rs",
        "impl<A> T<A> { fn f() {} }\nimpl From<U> for T { fn from() {} }\npub fn g() -> impl I<T> {}",
    )];
    let text = |lines: &str| format!("### The way of one probe\n{lines}\n## Other\n`a::b::missing`\n");
    let cases = [
        ("1. `a::b::g`, then `a::T::f`; `a::g`", 0),
        ("1. `a::b::missing`", 1),
        ("1. `c::g` and `a::U::f`", 2),
        ("1. `T::f`", 0),
        ("1. `T::g`", 1),
        ("1. `T::from`", 0),
        ("1. `U::from`", 1),
        ("1. `g` and `T` beside `--option` and `/proc`", 0),
        ("1. `g`\n2. `T` and `a/b/`", 1),
        ("1. `f` and `missing`", 1),
        ("`a::b` `g`", 1),
    ];
    for (lines, expected) in cases {
        assert_eq!(wrong_ways(&text(lines), &sources).len(), expected, "{lines}");
    }
    assert_eq!(wrong_ways(&text(&"`g`\n".repeat(11)), &sources).len(), 1);
}
