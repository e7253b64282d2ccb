//! Rust source with everything that is not code blanked out, byte for byte.

/// One source file.
pub(crate) struct Source {
    /// Relative to the repository, with `/`.
    pub(crate) path: String,
    /// As written.
    pub(crate) text: String,
    /// As long as `text`; comments and the contents of string and character literals are spaces.
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into(), code: blank(text) }
    }

    /// The same without what is compiled for tests only: `#[cfg(test)]` and the item below it.
    pub(crate) fn shipped(&self) -> Source {
        let mut code = self.code.clone().into_bytes();
        for (start, mark) in self.code.match_indices(TEST_ONLY) {
            let end = start + mark.len() + item_end(&self.code[start + mark.len()..]);
            code[start..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        let code = String::from_utf8(code).expect("items begin and end with ASCII");
        Source { path: self.path.clone(), text: self.text.clone(), code }
    }

    /// The modules that are declared for tests only, in a file of their own.
    pub(crate) fn test_modules(&self) -> Vec<String> {
        let below = self.code.split(TEST_ONLY).skip(1).filter_map(|rest| rest.trim_start().strip_prefix("mod "));
        below
            .filter_map(|rest| rest.split_once(';'))
            .map(|(name, _)| name.trim().to_string())
            .filter(|name| name.bytes().all(is_word))
            .collect()
    }

    /// The line, from 1, of the byte at `offset`.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
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

const TEST_ONLY: &str = "#[cfg(test)]";

/// Bytes up to the end of the item that `code` begins with: its last brace, or its semicolon.
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
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at + 1),
            b'r' if at == 0 || !is_word(bytes[at - 1]) || is_prefix(bytes, at) => raw_string_end(bytes, at),
            b'\'' => char_end(text, at),
            _ => at + 1,
        };
        let literal = matches!(bytes[at], b'"' | b'\'' | b'r') && end > at + 1;
        let hidden = if literal { at + 1..end.saturating_sub(1) } else { at..end };
        if literal || end > at + 1 {
            out[hidden].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("blanking whole characters keeps the text valid")
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| from + length)
}

/// Block comments nest.
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
    let text = "use a;\n#[cfg(test)]\nmod deep;\n#[cfg(test)]\nuse b::{c, d};\nfn f() {}\n#[cfg(test)]\n#[derive(X)]\nmod tests { fn g() { e } }\nh";
    let source = Source::new("x.rs", text);
    assert_eq!(source.shipped().code.split_whitespace().collect::<String>(), "usea;fnf(){}h");
    assert_eq!(source.shipped().code.len(), text.len());
    assert_eq!(source.test_modules(), ["deep"]);
}
