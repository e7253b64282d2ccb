/// Where the numbers stand in a file of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextColumn {
    /// From 1.
    pub number: usize,
    /// What stands between columns, in runs of any length; a run at the beginning of a line is no column.
    pub delimiters: Vec<u8>,
}

impl TextColumn {
    /// Whether a number that begins a line and fills it is the one that is meant.
    pub(super) fn is_first_of_plain(&self) -> bool {
        let part_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
        self.number == 1 && !self.delimiters.iter().any(part_of_number)
    }

    /// The text in this column of `line`; none where the line is blank, a comment or too short.
    ///
    /// A comment begins with `#`, at the beginning of the line or in the place of the value.
    pub(super) fn of<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = line.trim_ascii_end();
        if line.trim_ascii_start().first() == Some(&b'#') {
            return None;
        }
        let mut columns = line.split(|byte| self.delimiters.contains(byte)).filter(|column| !column.is_empty());
        columns.nth(self.number - 1).filter(|column| !column.starts_with(b"#"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_past_runs_of_delimiters() {
        for (number, delimiters, line, expected) in [
            (1, " \t", "12", Some("12")),
            (1, " \t", "  12\t 13 \r", Some("12")),
            (2, " \t", "  12\t 13 \r", Some("13")),
            (3, " \t", "  12\t 13 \r", None),
            (2, ",", "1, 9", Some(" 9")),
            (2, ",", ",,1,,9,", Some("9")),
            (2, ",;", "1;9", Some("9")),
            (1, " \t", "", None),
            (1, " \t", " \t\r", None),
            (1, " \t", "# 5", None),
            (2, " \t", "  # 5", None),
            (2, " \t", "5 # five", None),
            (1, " \t", "5 # five", Some("5")),
        ] {
            let column = TextColumn { number, delimiters: delimiters.into() };
            assert_eq!(column.of(line.as_bytes()), expected.map(str::as_bytes), "{number} of {line:?}");
        }
    }
}
