//! Lines of words.

use crate::units::human::columns as width;

/// Wraps `text` at spaces to lines of at most `available` columns. A figure is not separated from its sign and unit, nor text
/// in backticks, unless it is longer than a line; a longer word is not broken.
pub fn wrap(text: &str, available: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut add = |piece: &str| match lines.last_mut() {
        Some(line) if width(line) + 1 + width(piece) <= available => {
            line.push(' ');
            line.push_str(piece);
        }
        _ => lines.push(piece.to_owned()),
    };
    for piece in pieces(text) {
        if width(&piece) <= available { add(&piece) } else { piece.split(' ').for_each(&mut add) }
    }
    lines
}

/// The parts of `text` that stay in one line, each of one or more words.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut previous = "";
    for word in text.split_whitespace() {
        let is_code = |piece: &String| piece.matches('`').count() % 2 == 1;
        match pieces.last_mut().filter(|piece| is_code(piece) || is_one_figure(previous, word)) {
            Some(piece) => *piece += &format!(" {word}"),
            None => pieces.push(word.to_owned()),
        }
        previous = word;
    }
    pieces
}

/// Symbols of units, as they stand behind a figure.
const UNITS: &str = "ns µs ms s min h d % B kB KiB MB MiB GB GiB bit/s kbit/s Mbit/s Gbit/s B/s kB/s MB/s GB/s pps kpps Mpps \
                     packets/s samples/s kHz MHz GHz °C";

/// Whether the words are a figure with its unit, a sign with its figure, or a text with the separator behind it.
fn is_one_figure(word: &str, next: &str) -> bool {
    let is_sign = matches!(word.trim_start_matches('('), "≥" | "≤" | "<" | ">" | "±" | "n" | "%:");
    let begins_with_digit = next.starts_with(|char: char| char.is_ascii_digit());
    let ends_in_digit = word.ends_with(|char: char| char.is_ascii_digit());
    let next_bare = next.trim_end_matches([',', '.', ';', ':', ')', ']']);
    let is_unit = UNITS.split(' ').any(|unit| unit == next_bare);
    next == "·" || (is_sign && begins_with_digit) || (ends_in_digit && is_unit)
}
