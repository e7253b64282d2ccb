//! Colour and line wrapping. Colour never carries information that the text does not have.

/// Style of text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// True if the terminal supports colour.
    pub colour: bool,
    /// Line width in columns; 80 suffices for all output.
    pub width: usize,
}

impl Style {
    /// No colour and 80 columns, for files, pipes and tests.
    pub const PLAIN: Style = Style { colour: false, width: 80 };

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn quiet(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn alarm(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }
}

/// Returns the width of `text` in columns: one per character.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Wraps `text` at spaces to lines of at most `available` columns; a longer word is not broken.
pub(super) fn wrap(text: &str, available: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= available => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_no_escape_sequence_is_added() {
        assert_eq!(Style::PLAIN.alarm("fatal"), "fatal");
        let style = Style { colour: true, width: 80 };
        assert_eq!((style.alarm("x"), style.quiet("")), ("\x1b[31mx\x1b[0m".into(), String::new()));
    }

    #[test]
    fn lines_are_wrapped_at_spaces_by_characters() {
        assert_eq!(wrap("µµµ µµ µ", 6), ["µµµ µµ", "µ"]);
        assert_eq!(wrap("a incomprehensible b", 5), ["a", "incomprehensible", "b"]);
        assert!(wrap("  ", 5).is_empty());
    }
}
