//! Text as roff, the language of man pages, has it.

/// `text` as it stands: roff would turn quotes, hyphens and tildes into typography, and a shell would not take those.
pub(super) fn literal(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('~', "\\(ti")
}

/// What is no ASCII in `page`, as the escapes of groff_char(7), which mandoc knows as well: not every formatter reads
/// UTF-8.
pub(super) fn in_ascii(page: &str) -> String {
    let sign = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) };
    page.chars().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_become_escapes() {
        assert_eq!(in_ascii("p99 ≥ 1 µs, 😀\n.SH X"), "p99 \\[u2265] 1 \\[u00B5]s, \\[u1F600]\n.SH X");
        assert_eq!(literal("-i '~/a\\b'"), "\\-i \\(aq\\(ti/a\\eb\\(aq");
    }
}
