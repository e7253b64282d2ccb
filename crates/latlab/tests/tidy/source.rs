//! Rust source with everything that is not code blanked out, byte for byte.

use std::ops::Range;

use crate::paths::module_of;

pub(crate) struct Source {
    /// Relative to the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// As long as `text`; comments and the contents of string and character literals are spaces.
    pub(crate) code: String,
    /// Lines of `text`, comments and blank lines included, outside of items that are compiled for tests only.
    pub(crate) shipped_lines: usize,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let mut source = Source { path: path.into(), text: text.into(), code: blank(text), shipped_lines: 0 };
        let test_lines = |item: Range<usize>| source.line_of(item.end - 1) - source.line_of(item.start) + 1;
        let test_lines: usize = source.test_items().into_iter().map(test_lines).sum();
        source.shipped_lines = text.lines().count() - test_lines;
        source
    }

    /// The same without items compiled for tests only: `#[cfg(test)]` and the item below it.
    pub(crate) fn shipped(&self) -> Source {
        let mut code = self.code.clone().into_bytes();
        for item in self.test_items() {
            code[item].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        let code = String::from_utf8(code).expect("items begin and end with ASCII");
        Source { path: self.path.clone(), text: self.text.clone(), code, shipped_lines: self.shipped_lines }
    }

    /// Where the items stand that are compiled for tests only, from the attribute on; none lies within another.
    fn test_items(&self) -> Vec<Range<usize>> {
        let mut items: Vec<Range<usize>> = Vec::new();
        let mut marks: Vec<(usize, &str)> = TEST_ONLY.iter().flat_map(|mark| self.code.match_indices(mark)).collect();
        marks.sort_unstable();
        for (start, _) in marks {
            if items.last().is_none_or(|last| last.end <= start) {
                items.push(start..start + item_end(&self.code[start..]));
            }
        }
        items
    }

    /// The modules that are declared for tests only and stand in a file of their own, as that file's module path.
    fn test_modules(&self) -> Vec<Vec<String>> {
        self.test_items().into_iter().filter_map(|item| self.test_module(item)).collect()
    }

    fn test_module(&self, item: Range<usize>) -> Option<Vec<String>> {
        let (code, text) = (&self.code[item.clone()], &self.text[item]);
        let mut words = code.strip_suffix(';')?.rsplit(|char: char| char.is_whitespace());
        let name = words.next().filter(|name| name.bytes().all(is_word))?;
        words.next().filter(|word| *word == "mod")?;
        let elsewhere = text.split_once("#[path = \"").and_then(|(_, rest)| rest.split_once('"'));
        match (elsewhere, self.path.rsplit_once('/')) {
            (Some((file, _)), Some((folder, _))) => Some(module_of(&format!("{folder}/{file}"))),
            _ => Some([module_of(&self.path), vec![name.to_string()]].concat()),
        }
    }

    /// The line, from 1, of the byte at `offset`.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Line, from 1, and text of each comment, those behind code included.
    pub(crate) fn comments(&self) -> Vec<(usize, &str)> {
        let mut comments = Vec::new();
        let mut at = 0;
        while at < self.text.len() {
            let end = token_end(&self.text, at).max(at + 1);
            if end > at + 1 && self.text.as_bytes()[at] == b'/' {
                comments.push((self.line_of(at), &self.text[at..end]));
            }
            at = end;
        }
        comments
    }

    /// Offsets in `code` at which the identifier `word` stands alone.
    pub(crate) fn find_word(&self, word: &str) -> Vec<usize> {
        let bytes = self.code.as_bytes();
        self.code
            .match_indices(word)
            .map(|(offset, _)| offset)
            .filter(|offset| *offset == 0 || !is_word(bytes[offset - 1]))
            .filter(|offset| bytes.get(offset + word.len()).is_none_or(|byte| !is_word(*byte)))
            .collect()
    }
}

/// How attributes begin that leave an item to tests.
const TEST_ONLY: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test,"];

/// `sources` without the files that are compiled for tests only, each without its items for tests.
pub(crate) fn shipped(sources: &[Source]) -> Vec<Source> {
    let for_tests: Vec<Vec<String>> = sources.iter().flat_map(Source::test_modules).collect();
    let is_shipped = |source: &&Source| !for_tests.iter().any(|module| module_of(&source.path).starts_with(module));
    sources.iter().filter(is_shipped).map(Source::shipped).collect()
}

/// Bytes up to the end of the item that `code` begins with, attributes included: its last brace, or its semicolon.
fn item_end(code: &str) -> usize {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' if depth <= 1 => return offset + 1 + usize::from(code[offset + 1..].starts_with(';')),
            b'}' => depth -= 1,
            b';' if depth == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Whether `byte` may stand in an identifier.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `text` with comments and the insides of literals replaced by spaces; line breaks stay.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = token_end(text, at);
        let literal = matches!(bytes[at], b'"' | b'\'' | b'r') && end > at + 1;
        let hidden = if literal { at + 1..end.saturating_sub(1) } else { at..end };
        if literal || end > at + 1 {
            out[hidden].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("blanking whole characters keeps the text valid")
}

/// The end of the comment or literal that begins at `at`, or of one byte of code.
fn token_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
        b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
        b'"' => string_end(bytes, at + 1),
        b'r' if at == 0 || !is_word(bytes[at - 1]) || is_prefix(bytes, at) => raw_string_end(bytes, at),
        b'\'' => char_end(text, at),
        _ => at + 1,
    }
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| from + length)
}

fn comment_end(bytes: &[u8], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if bytes[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Whether the `r` at `at` follows a `b` or `c` that starts a literal.
fn is_prefix(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at - 1], b'b' | b'c') && (at == 1 || !is_word(bytes[at - 2]))
}

/// `r"…"`, `r#"…"#`; anything else that starts with r is one byte of an identifier.
fn raw_string_end(bytes: &[u8], from: usize) -> usize {
    let hashes = bytes[from + 1..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(from + 1 + hashes) != Some(&b'"') {
        return from + 1;
    }
    let mut fence = vec![b'"'];
    fence.resize(1 + hashes, b'#');
    let inside = from + 2 + hashes;
    bytes[inside..]
        .windows(fence.len())
        .position(|window| window == fence)
        .map_or(bytes.len(), |length| inside + length + fence.len())
}

/// A character literal, or one byte of a lifetime.
fn char_end(text: &str, from: usize) -> usize {
    let rest = &text[from + 1..];
    if let Some(escaped) = rest.strip_prefix('\\') {
        return escaped.char_indices().skip(1).find(|(_, char)| *char == '\'').map_or(from + 1, |(i, _)| from + i + 3);
    }
    match rest.chars().next() {
        Some(char) if rest[char.len_utf8()..].starts_with('\'') => from + 2 + char.len_utf8(),
        _ => from + 1,
    }
}

#[test]
fn only_code_is_left() {
    let cases = [
        ("a // crate::x\nb", "a            \nb"),
        ("a /* x /* y */ z */ b", "a                     b"),
        (r#"f("crate::x \" y", 1)"#, r#"f("             ", 1)"#),
        ("x'a: &'a str", "x'a: &'a str"),
        ("c == '\"' || d", "c == ' ' || d"),
        (r"c == '\'' || '\u{b5}' d", r"c == '  ' || '      ' d"),
        ("r#\"a \" b\"# c", "r         # c"),
        ("br\"a\" c", "br  \" c"),
        ("for_each(x)", "for_each(x)"),
    ];
    for (text, code) in cases {
        assert_eq!(blank(text).len(), text.len(), "{text}");
        assert_eq!(
            blank(text).split_whitespace().collect::<Vec<_>>(),
            code.split_whitespace().collect::<Vec<_>>(),
            "{text}"
        );
    }
}

#[test]
fn words_stand_alone() {
    let source = Source::new("x.rs", "exit process_exit exit2 // exit\nexit");
    assert_eq!(source.find_word("exit").iter().map(|offset| source.line_of(*offset)).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_is_for_tests_is_not_shipped() {
    let text = "use a;\n#[cfg(test)]\nmod deep;\n#[cfg(test)]\nuse b::{c, d};\nfn f() {}\n#[cfg(test)]\n#[derive(X)]\nmod tests { fn g() { e } #[cfg(test)] fn i() {} }\nh\n#[cfg(all(test, target_os = \"linux\"))]\nmod linux {\n}\n";
    let source = Source::new("x.rs", text);
    assert_eq!(source.shipped().code.split_whitespace().collect::<String>(), "usea;fnf(){}h");
    assert_eq!(source.shipped().code.len(), text.len());
    assert_eq!((text.lines().count(), source.shipped_lines), (13, 3));
}

#[test]
fn files_for_tests_are_not_shipped() {
    let file = |path: &str, text: &str| Source::new(&format!("crates/latlab/src/{path}"), text);
    let declared =
        "mod order;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod naive;\n#[cfg(test)]\nmod inline {}";
    let sources = [
        file("stats/mod.rs", declared),
        file("stats/naive.rs", ""),
        file("stats/tests.rs", ""),
        file("stats/tests/deep.rs", ""),
        file("stats/order.rs", "#[cfg(test)]\n#[path = \"order_tests.rs\"]\nmod tests;"),
        file("stats/order_tests.rs", ""),
    ];
    let kept: Vec<String> = shipped(&sources).into_iter().map(|source| source.path).collect();
    assert_eq!(kept, ["crates/latlab/src/stats/mod.rs", "crates/latlab/src/stats/order.rs"]);
}
