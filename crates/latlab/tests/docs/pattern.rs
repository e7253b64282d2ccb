//! The comparison of printed output with the output in a document.
//!
//! Figures differ from run to run, so: a number matches any number, and a unit of time after it any unit of
//! time; the name of a recording matches any other; bars and blanks match any of their kind, of any length. `…`
//! matches anything within a line, and a line that is only `…` or `...` matches any number of lines.
//! Everything else must be the same.

/// Whether `printed` matches `shown`, without blank lines at the end.
pub(crate) fn matches(shown: &[String], printed: &[String]) -> bool {
    let shown: Vec<String> = shown.iter().map(|line| canonical(line)).collect();
    let printed: Vec<String> = printed.iter().map(|line| canonical(line)).collect();
    lines_match(trimmed(&shown), trimmed(&printed))
}

/// The number of `shown` lines with a letter or a digit, which are more than `…`, bars and blanks.
pub(crate) fn compared(shown: &[String]) -> usize {
    shown.iter().filter(|line| line.chars().any(|char| char.is_alphanumeric())).count()
}

fn trimmed(lines: &[String]) -> &[String] {
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

fn lines_match(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if is_gap(line) => (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..])),
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| line_matches(line, first) && lines_match(rest, others))
        }
    }
}

fn is_gap(line: &str) -> bool {
    ["…", "..."].contains(&line)
}

/// `…` in `shown` matches any text. `printed` must begin with the first of the pieces that `…` separates, end with
/// the last, and have the others in order in between.
fn line_matches(shown: &str, printed: &str) -> bool {
    let pieces: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = pieces.as_slice() else { return shown == printed };
    let Some(mut rest) = printed.strip_prefix(first.trim_end()) else { return false };
    for piece in middle {
        match rest.find(piece.trim()) {
            Some(at) => rest = &rest[at + piece.trim().len()..],
            None => return false,
        }
    }
    rest.ends_with(last.trim_start())
}

/// `line` with everything that may differ written one way.
fn canonical(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let word = plain(word);
        let unit = word.trim_end_matches(|char: char| char.is_ascii_punctuation());
        let is_unit = ["ns", "µs", "us", "ms", "s"].contains(&unit);
        let after_number = words.last().is_some_and(|last: &String| last.ends_with('#'));
        if is_unit && after_number {
            words.push(format!("TIME{}", &word[unit.len()..]));
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

/// A word without its figures: numbers are `#`, bars are `|`, names of recordings are `RECORDING`.
fn plain(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(char) = rest.chars().next() {
        let (token, length) = token(rest, out.chars().last());
        if !(token == "|" && out.ends_with('|')) {
            out.push_str(&token);
        }
        rest = &rest[length.max(char.len_utf8())..];
    }
    out
}

/// The first token of `rest` in its plain form, and its length.
fn token(rest: &str, before: Option<char>) -> (String, usize) {
    let char = rest.chars().next().expect("not empty");
    let starts = before.is_none_or(|before| !before.is_alphanumeric() && before != '#');
    if let Some(length) = recording(rest) {
        return ("RECORDING".into(), length);
    }
    if is_bar(char) {
        return ("|".into(), char.len_utf8());
    }
    let sign = if starts && matches!(char, '-' | '−' | '+' | '±') { char.len_utf8() } else { 0 };
    let digits = number(&rest[sign..]);
    if digits == 0 {
        return (char.to_string(), char.len_utf8());
    }
    let after = &rest[sign + digits..];
    let unit = ["ns", "µs", "us", "ms", "s"].into_iter().find(|unit| {
        after.strip_prefix(unit).is_some_and(|tail| !tail.starts_with(|next: char| next.is_alphanumeric()))
    });
    match unit {
        Some(unit) => ("#TIME".into(), sign + digits + unit.len()),
        None => ("#".into(), sign + digits),
    }
}

/// Bytes of the number at the start of `text`: digits, with `,` `.` `_` between digits.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut length = 0;
    while digit(length) || (length > 0 && matches!(bytes.get(length), Some(b',' | b'.' | b'_')) && digit(length + 1)) {
        length += 1;
    }
    length
}

/// Bytes of a recording's name such as `20261121T021500Z-ping-7f3a`.
fn recording(text: &str) -> Option<usize> {
    let name = text.split(|char: char| !(char.is_ascii_alphanumeric() || char == '-')).next()?;
    let mut parts = name.split('-');
    let (start, kind, id) = (parts.next()?, parts.next()?, parts.next()?);
    let stamp = start.len() == 16 && start.as_bytes()[8] == b'T' && start.ends_with('Z');
    let valid =
        stamp && kind.bytes().all(|byte| byte.is_ascii_lowercase()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (valid && parts.next().is_none()).then_some(name.len())
}

fn is_bar(char: char) -> bool {
    ('\u{2580}'..='\u{259f}').contains(&char) || ('\u{2500}'..='\u{257f}').contains(&char)
}

#[cfg(test)]
fn shows(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    matches(&lines(shown), &lines(printed))
}

#[test]
fn figures_may_differ() {
    let same = [
        ("p50 48.7 µs", "p50  1,204 ns"),
        ("n 203,118 · lost 0", "n 5 · lost 12"),
        ("±0.2  −15.4 % [−17.1, −13.6]", "±11  3 % [+1, 2]"),
        ("48.7µs x", "3ms x"),
        ("p50 is 48.7 µs: `p50", "p50 is 1.8 ms: `p50"),
        ("44 µs ▕███▌   3", "2 ms ▕█ 1,000"),
        ("recording  latlab-runs/20261121T021500Z-ping-7f3a", "recording latlab-runs/20270101T000000Z-ping-00ab"),
        ("a … c", "a b c"),
        ("first\n…\nlast 1", "first\nx\ny\nlast 2\n\n"),
        ("first\n...\n", "first\n"),
        ("…", ""),
        ("hint: …", "hint: do this"),
    ];
    for (shown, printed) in same {
        assert!(shows(shown, printed), "`{shown}` should match `{printed}`");
    }
}

#[test]
fn words_may_not_differ() {
    let different = [
        ("p50 48.7 µs", "p99 48.7 MB"),
        ("n 5 · lost 0", "n 5"),
        ("a … c", "a b d"),
        ("error: x", "warning: x"),
        ("first\nlast", "first\nmiddle\nlast"),
        ("first", ""),
        ("", "something"),
        ("lost 0", "lost none"),
        ("… c d", "b c"),
    ];
    for (shown, printed) in different {
        assert!(!shows(shown, printed), "`{shown}` should not match `{printed}`");
    }
}
