//! The words of the project stand in GLOSSARY.md, its warnings in docs/metrics.md.

use crate::source::{Source, is_word};
use crate::{Breach, expect_none, repository};

/// The nouns that names in code and sentences in documents are built from.
const NOUNS: [&str; 41] = [
    "metric",
    "singleton",
    "sample",
    "statistic",
    "Experiment",
    "Factor",
    "Condition",
    "Plan",
    "RunSpec",
    "Run",
    "Session",
    "SessionSender",
    "SessionReflector",
    "Probe",
    "Seq",
    "ProbeRecord",
    "Fate",
    "Schedule",
    "Pacer",
    "StopWhen",
    "Load",
    "Stressor",
    "offered",
    "achieved",
    "HostFacts",
    "Knob",
    "HostGuard",
    "Finding",
    "Recording",
    "Store",
    "FormatVersion",
    "Summary",
    "Comparison",
    "Verdict",
    "Lower",
    "Higher",
    "Equivalent",
    "Undecided",
    "Caveat",
    "ReportView",
    "Arrival",
];

fn missing_nouns(glossary: &str) -> Vec<Breach> {
    let defined =
        |noun: &&str| glossary.lines().any(|line| line.starts_with('|') && line.contains(&format!("**{noun}**")));
    NOUNS
        .into_iter()
        .filter(|noun| !defined(noun))
        .map(|noun| format!("GLOSSARY.md: no row defines `**{noun}**`"))
        .collect()
}

/// The codes of each caveat that `source` makes, with its line; empty if they cannot be read.
///
/// A code is a literal (or several: `if … { "a" } else { "b" }`), a constant, or a variable that the same
/// function sets from tuples which begin with the code: `let (code, message) = ("a", …)`.
fn caveat_codes(source: &Source, constants: &[(String, String)]) -> Vec<(usize, Vec<String>)> {
    let calls = source.code.match_indices("Caveat::new(").map(|(offset, call)| offset + call.len());
    calls
        .map(|start| {
            let code = second_argument(&source.code[start..], &source.text[start..]);
            let name = code.rsplit("::").next().unwrap_or_default();
            let constant = constants.iter().find(|constant| constant.0 == name).map(|found| found.1.clone());
            let codes = match constant {
                Some(constant) => vec![constant],
                None if code.contains('"') => code.split('"').skip(1).step_by(2).map(String::from).collect(),
                None => tuple_heads(function_before(&source.text, start)),
            };
            (source.line_of(start), codes)
        })
        .collect()
}

/// From the last line that begins a function to `end`.
fn function_before(text: &str, end: usize) -> &str {
    let start = ["\nfn ", "\npub fn ", " fn "].iter().filter_map(|start| text[..end].rfind(start)).max();
    &text[start.unwrap_or(0)..end]
}

/// The kebab-case literals that begin a tuple.
fn tuple_heads(text: &str) -> Vec<String> {
    let heads = text.split("(\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let heads = heads.filter(|(head, rest)| is_kebab(head) && rest.starts_with(','));
    heads.map(|(head, _)| head.to_string()).collect()
}

/// The second argument of a call, as written; `code` shows which commas separate arguments.
fn second_argument(code: &str, text: &str) -> String {
    let mut depth = 0;
    let mut commas = Vec::new();
    for (offset, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => break,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => commas.push(offset),
            _ => {}
        }
    }
    let start = commas.first().map_or(0, |comma| comma + 1);
    let end = commas.get(1).copied().unwrap_or(text.len().min(start + 40));
    text.get(start..end).unwrap_or_default().trim().to_string()
}

/// `const NAME: &str = "…"` anywhere in the sources.
fn string_constants(sources: &[Source]) -> Vec<(String, String)> {
    let lines = sources.iter().flat_map(|source| source.text.lines());
    lines
        .filter_map(|line| {
            let (name, value) = line.split_once("const ")?.1.split_once(": &str = \"")?;
            name.bytes()
                .all(is_word)
                .then(|| (name.to_string(), value.split('"').next().unwrap_or_default().to_string()))
        })
        .collect()
}

fn is_kebab(code: &str) -> bool {
    !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn unlisted_caveats(sources: &[Source], documented: &str) -> Vec<Breach> {
    let constants = string_constants(sources);
    let mut breaches = Vec::new();
    for source in sources {
        for (line, codes) in caveat_codes(source, &constants) {
            let at = format!("{}:{line}", source.path);
            if codes.is_empty() {
                breaches.push(format!("{at}: the code of this caveat cannot be read; make it a literal or a constant"));
            }
            for code in codes {
                if !is_kebab(&code) {
                    breaches.push(format!("{at}: caveat code `{code}` is not kebab-case"));
                } else if !documented.contains(&format!("`{code}`")) {
                    breaches.push(format!("{at}: caveat `{code}` is not in docs/metrics.md"));
                }
            }
        }
    }
    breaches
}

#[test]
fn every_noun_is_in_the_glossary() {
    expect_none(missing_nouns(&repository::read("GLOSSARY.md")));
}

/// Rows of the glossary whose source is missing: a reference, or `here:` with the reason for a term of our own.
fn rows_without_source(glossary: &str) -> Vec<Breach> {
    let rows = glossary.lines().filter(|line| line.starts_with("| **"));
    let without = rows.filter(|row| {
        let source = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim();
        source.is_empty() || source == "ours" || source.strip_prefix("here").is_some_and(|why| why.len() < 12)
    });
    without.map(|row| format!("GLOSSARY.md: no source and no reason: {row}")).collect()
}

#[test]
fn every_term_of_the_glossary_has_a_source_or_a_reason() {
    let glossary = repository::read("GLOSSARY.md");
    assert!(glossary.matches("\n| **").count() > NOUNS.len());
    expect_none(rows_without_source(&glossary));
}

#[test]
fn a_term_without_source_is_reported() {
    let row = |source: &str| rows_without_source(&format!("| **x** | y | {source} |")).len();
    assert_eq!(["ours", "", "here:", "here: a reason of some length", "RFC 2330"].map(row), [1, 1, 1, 0, 0]);
}

#[test]
fn every_caveat_is_documented() {
    let sources = repository::own_sources();
    expect_none(unlisted_caveats(&sources, &repository::read("docs/metrics.md")));
}

#[test]
fn a_missing_noun_is_seen() {
    assert_eq!(missing_nouns("").len(), NOUNS.len());
    assert_eq!(missing_nouns("| **Knob** | … |\n**Plan** outside of the table").len(), NOUNS.len() - 1);
}

#[test]
fn an_undocumented_caveat_is_seen() {
    let text = r#"
        pub const GAP: &str = "recording-gap";
        fn f() { Caveat::new(Severity::Note, "send-slip", format!("{}, {}", a, b), "", "") }
        fn g() { Caveat::new(worst(a, b), GAP, "", "", "") }
        fn h() { Caveat::new(Severity::Note, "Bad_Code", "", "", "") }
        fn i(code: &str) { Caveat::new(Severity::Note, code, "", "", "") }
        fn j() { Caveat::new(Severity::Note, if a { "lost" } else { "late" }, "", "", "") }
        fn k() {
            let (code, message) = if a { ("strays", "some") } else { ("steal", "more") };
            Caveat::new(Severity::Note, code, message, "", "")
        }
    "#;
    let sources = [Source::new("x.rs", text)];
    let documented = ["send-slip", "recording-gap", "lost", "late", "strays", "steal"].map(|code| format!("`{code}` "));
    let breaches = unlisted_caveats(&sources, &documented.concat());
    assert_eq!(breaches.len(), 2, "{breaches:?}");
    for missing in 0..documented.len() {
        let rest: String =
            documented.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, code)| &**code).collect();
        assert_eq!(unlisted_caveats(&sources, &rest).len(), 3, "without {}", documented[missing]);
    }
}
