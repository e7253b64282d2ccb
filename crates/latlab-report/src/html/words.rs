//! Texts and lists as markup: of bounded length, since they come from recordings, and without characters that would
//! change the text around them.

use maud::{Markup, html};

use crate::units::human;

/// The most parts of a section: tables, texts, plots.
pub(super) const MOST_PARTS: usize = 60;
/// The most characters of one text; tags and names have no limit of their own.
const LONGEST: usize = 2_000;
/// The most characters of a text of several lines, such as an experiment file.
const LONGEST_BLOCK: usize = 100_000;

/// A text in a line, with `code` between grave accents. An accent without a partner is shown as it is.
pub(super) fn words(text: &str) -> Markup {
    let text = harmless(text, LONGEST);
    let parts: Vec<&str> = text.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    html! {
        @if is_paired {
            @for (number, part) in parts.iter().enumerate() {
                @if number % 2 == 1 { code { (part) } } @else { (part) }
            }
        } @else { (text) }
    }
}

/// A text for an attribute or a title.
pub(super) fn plain(text: &str) -> String {
    harmless(text, LONGEST)
}

/// A text whose lines are kept.
pub(super) fn block(text: &str) -> String {
    harmless(text.trim_end(), LONGEST_BLOCK)
}

/// `text` up to `longest` characters, without control characters: HTML has no way to write NUL, and one that changes
/// the direction of writing would reorder what follows it.
fn harmless(text: &str, longest: usize) -> String {
    let is_kept = |char: char| matches!(char, '\n' | '\t') || !char.is_control();
    let reorders = |char: char| matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |char: char| if is_kept(char) && !reorders(char) { char } else { char::REPLACEMENT_CHARACTER };
    let mut chars = text.chars();
    let kept: String = chars.by_ref().take(longest).map(shown).collect();
    if chars.next().is_some() { kept + "…" } else { kept }
}

/// The first `most` of `all`, and a note on how many there are.
pub(super) fn first<T>(all: &[T], most: usize, noun: &str, each: impl Fn(&T) -> Markup) -> Markup {
    html! {
        @for one in all.iter().take(most) { (each(one)) }
        (omitted(all.len(), most, noun))
    }
}

/// Says that `most` of `count` things are shown, if there are more.
pub(super) fn omitted(count: usize, most: usize, noun: &str) -> Markup {
    let [count_shown, most_shown] = [count, most].map(|count| human::grouped(count as u64));
    html! { @if count > most { p.note.omitted { "The first " (most_shown) " of " (count_shown) " " (noun) "." } } }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, harmless, words};

    #[test]
    fn markup_is_escaped_inside_and_outside_of_code() {
        for (text, expected) in [
            ("a `<b>` & <i>", "a <code>&lt;b&gt;</code> &amp; &lt;i&gt;"),
            ("one ` <script>", "one ` &lt;script&gt;"),
            ("", ""),
        ] {
            assert_eq!(words(text).into_string(), expected);
        }
    }

    #[test]
    fn long_and_reordering_texts_are_bounded() {
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(harmless(&long, LONGEST).chars().count(), LONGEST + 1);
        assert!(harmless(&long, LONGEST).ends_with("x…"));
        assert_eq!(harmless("a\u{202e}b\0c\nd", LONGEST), "a\u{fffd}b\u{fffd}c\nd");
    }
}
