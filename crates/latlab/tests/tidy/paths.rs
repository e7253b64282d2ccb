//! Which modules a file names: `use crate::a::{b, c::d}`, `crate::a::f()`, `super::super::a`.

use crate::source::{Source, is_word};

/// One path into the crate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// Line, from 1.
    pub(crate) line: usize,
    /// Segments below the crate's root, as far as they are written.
    pub(crate) segments: Vec<String>,
}

/// Crates that are one module.
const SINGLE_MODULES: [&str; 6] = ["analysis", "formats", "platform", "recording", "report", "stats"];

/// The module that the file at `path` below `src/` is: `plan/mod.rs` → `[plan]`, `main.rs` → `[]`; in a crate that is one
/// module, `latlab-stats/src/order.rs` → `[stats, order]`.
pub(crate) fn module_of(path: &str) -> Vec<String> {
    let (before, inside) = path.rsplit_once("/src/").unwrap_or(("", path));
    let inside = inside.trim_end_matches(".rs");
    let single = before.rsplit_once("/latlab-").map(|(_, name)| name).filter(|name| SINGLE_MODULES.contains(name));
    let mut segments: Vec<String> = single.into_iter().chain(inside.split('/')).map(String::from).collect();
    if single.is_some() && inside == "lib" {
        segments.pop();
    }
    if segments.last().is_some_and(|last| last == "mod") || ["lib", "main"].contains(&inside) {
        segments.pop();
    }
    segments
}

/// Every mention in `source`, in order. Inline modules count as one step for `super`.
pub(crate) fn mentions(source: &Source) -> Vec<Mention> {
    let code = source.code.as_str();
    let mut found = Vec::new();
    for start in [source.find_word("crate"), source.find_word("super")].concat() {
        if code[..start].ends_with('$') || code[..start].trim_end().ends_with("::") {
            continue;
        }
        let Some((base, rest)) = anchor(source, start) else { continue };
        let mut leaves = Vec::new();
        expand(&code[rest..], &base, &mut leaves);
        let line = source.line_of(start);
        found.extend(leaves.into_iter().map(|segments| Mention { line, segments }));
    }
    found.sort_by_key(|mention| mention.line);
    found
}

/// Where the path that starts at `start` begins to descend: the module, and the offset after `::`.
fn anchor(source: &Source, start: usize) -> Option<(Vec<String>, usize)> {
    let code = source.code.as_str();
    if code[start..].starts_with("crate") {
        return after_colons(code, start + "crate".len()).map(|rest| (Vec::new(), rest));
    }
    let mut base = module_of(&source.path);
    base.extend(inline_modules(&code[..start]));
    let mut rest = start;
    while code[rest..].starts_with("super") {
        base.pop();
        rest = after_colons(code, rest + "super".len())?;
    }
    Some((base, rest))
}

/// The offset after `::` at `at`, blanks allowed.
fn after_colons(code: &str, at: usize) -> Option<usize> {
    let rest = code[at..].trim_start().strip_prefix("::")?.trim_start();
    Some(code.len() - rest.len())
}

/// The inline modules that are open at the end of `code`.
fn inline_modules(code: &str) -> Vec<String> {
    let mut open: Vec<Option<String>> = Vec::new();
    let mut named = None;
    for token in tokens(code) {
        match token {
            "{" => open.push(named.take().filter(|name: &String| name != "mod")),
            "}" => drop(open.pop()),
            "mod" => named = Some("mod".to_string()),
            name => named = named.filter(|last| last == "mod").map(|_| name.to_string()),
        }
    }
    open.into_iter().flatten().collect()
}

/// Identifiers, `::` and single marks.
pub(crate) fn tokens(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let word = rest.bytes().take_while(|byte| is_word(*byte)).count();
        let mark = if rest.starts_with("::") { 2 } else { rest.chars().next()?.len_utf8() };
        let length = if word > 0 { word } else { mark };
        let (token, tail) = rest.split_at(length);
        rest = tail;
        Some(token)
    })
}

/// Reads a path or a braced list of paths after `base`; returns how many bytes it took.
fn expand(code: &str, base: &[String], leaves: &mut Vec<Vec<String>>) -> usize {
    let mut path = base.to_vec();
    let mut at = 0;
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        if code[at..].starts_with('{') {
            return at + list(&code[at..], &path, leaves);
        }
        let word = code[at..].bytes().take_while(|byte| is_word(*byte)).count();
        if word > 0 && &code[at..at + word] != "self" {
            path.push(code[at..at + word].to_string());
        }
        match after_colons(code, at + word).filter(|_| word > 0) {
            Some(next) => at = next,
            None => {
                leaves.push(path);
                return at + word;
            }
        }
    }
}

/// A braced list, from its `{`; returns the bytes up to and with its `}`.
fn list(code: &str, base: &[String], leaves: &mut Vec<Vec<String>>) -> usize {
    let mut at = 1;
    while at < code.len() {
        match code.as_bytes()[at] {
            b'}' => return at + 1,
            b',' | b' ' | b'\n' | b'*' => at += 1,
            _ => {
                at += expand(&code[at..], base, leaves);
                // `a as b`: the new name says nothing about where it lives.
                at += code[at..].find([',', '}']).unwrap_or(0);
            }
        }
    }
    at
}

#[cfg(test)]
fn mentioned(path: &str, text: &str) -> Vec<String> {
    mentions(&Source::new(path, text)).into_iter().map(|mention| mention.segments.join("::")).collect()
}

#[test]
fn every_way_to_name_a_module_is_seen() {
    let cases: [(&str, &[&str]); 10] = [
        ("use crate::units::Nanos;", &["units::Nanos"]),
        (
            "use crate::{plan, units::{Nanos, human as text}, wire::*};",
            &["plan", "units::Nanos", "units::human", "wire"],
        ),
        ("pub(crate) fn f() { crate::host::facts() }", &["host::facts"]),
        ("fn f(x: crate :: load :: Load<u8>) {}", &["load::Load"]),
        ("use super::run::RunSpec;", &["plan::run::RunSpec"]),
        ("use super::super::session::{self, key};", &["session", "session::key"]),
        ("mod tests { use super::*; }", &["plan::ping"]),
        ("mod a { fn f() {} } use super::run;", &["plan::run"]),
        ("// use crate::host;\nlet text = \"crate::host\"; $crate::x", &[]),
        ("use crate::host::{\n    guard,\n    knob::Knob,\n};", &["host::guard", "host::knob::Knob"]),
    ];
    for (text, expected) in cases {
        assert_eq!(mentioned("crates/latlab/src/plan/ping.rs", text), expected, "{text}");
    }
}

#[test]
fn files_are_modules() {
    let cases =
        [("a/src/lib.rs", ""), ("a/src/clock.rs", "clock"), ("a/src/plan/mod.rs", "plan"), ("a/src/x/y.rs", "x::y")];
    for (path, module) in cases {
        assert_eq!(module_of(path).join("::"), module);
    }
}
