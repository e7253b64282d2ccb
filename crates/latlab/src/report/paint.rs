//! Colour and line length. Colour only repeats what words and numbers say already.

/// How text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether the reader's terminal shows colours.
    pub colour: bool,
    /// Columns; 80 suffice for everything.
    pub width: usize,
}

impl Style {
    /// No colour, 80 columns: for files, pipes and tests.
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

/// How many columns `text` takes: one per character, as all of ours do.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// `text` in lines of at most `room` columns, broken at spaces; a longer word stands alone.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= room => {
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
    fn without_colour_nothing_is_added() {
        assert_eq!(Style::PLAIN.alarm("fatal"), "fatal");
        let style = Style { colour: true, width: 80 };
        assert_eq!((style.alarm("x"), style.quiet("")), ("\x1b[31mx\x1b[0m".into(), String::new()));
    }

    #[test]
    fn lines_break_at_spaces_and_count_characters() {
        assert_eq!(wrap("µµµ µµ µ", 6), ["µµµ µµ", "µ"]);
        assert_eq!(wrap("a incomprehensible b", 5), ["a", "incomprehensible", "b"]);
        assert!(wrap("  ", 5).is_empty());
    }
}
