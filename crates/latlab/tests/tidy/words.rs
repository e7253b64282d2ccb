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

/// The code of each caveat that `source` makes, with its line; an `Err` where it cannot be read.
fn caveat_codes(source: &Source, constants: &[(String, String)]) -> Vec<(usize, Result<String, String>)> {
    let calls = source.code.match_indices("Caveat::new(").map(|(offset, call)| offset + call.len());
    calls
        .map(|start| {
            let code = second_argument(&source.code[start..], &source.text[start..]);
            let known = |name: &str| constants.iter().find(|constant| constant.0 == name).map(|found| found.1.clone());
            let read = match code.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
                Some(literal) => Ok(literal.to_string()),
                None => known(code.rsplit("::").next().unwrap_or_default()).ok_or(code),
            };
            (source.line_of(start), read)
        })
        .collect()
}

/// The second argument of a call, as written; `code` tells where commas are commas.
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
        for (line, code) in caveat_codes(source, &constants) {
            let at = format!("{}:{line}", source.path);
            match code {
                Err(code) => breaches.push(format!("{at}: caveat code `{code}` is neither a literal nor a constant")),
                Ok(code) if !is_kebab(&code) => breaches.push(format!("{at}: caveat code `{code}` is not kebab-case")),
                Ok(code) if !documented.contains(&format!("`{code}`")) => {
                    breaches.push(format!("{at}: caveat `{code}` is not in docs/metrics.md"));
                }
                Ok(_) => {}
            }
        }
    }
    breaches
}

#[test]
fn every_noun_is_in_the_glossary() {
    expect_none(missing_nouns(&repository::read("GLOSSARY.md")));
}

#[test]
fn every_caveat_is_documented() {
    let sources = repository::sources("crates/latlab/src");
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
    "#;
    let sources = [Source::new("x.rs", text)];
    assert_eq!(unlisted_caveats(&sources, "`send-slip` `recording-gap`").len(), 2);
    assert_eq!(unlisted_caveats(&sources, "`send-slip`").len(), 3);
    assert_eq!(unlisted_caveats(&sources, "").len(), 4);
}
