//! Text as roff, the language of man pages, has it.

/// `text` as it stands: roff would turn quotes, hyphens and tildes into typography, and a shell would not take those.
pub(super) fn literal(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('~', "\\(ti")
}

/// What is no ASCII in `page`, as the escapes of groff_char(7), which mandoc knows as well: not every formatter reads
/// UTF-8. An ellipsis is three dots, since groff has none for an ASCII terminal; `\&` keeps them from beginning a line.
pub(super) fn in_ascii(page: &str) -> String {
    let sign = |c: char| match c {
        '…' => "\\&...".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\[u{:04X}]", u32::from(c)),
    };
    page.chars().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_become_escapes() {
        assert_eq!(in_ascii("p99 ≥ 1 µs, 😀\n.SH X"), "p99 \\[u2265] 1 \\[u00B5]s, \\[u1F600]\n.SH X");
        assert_eq!(in_ascii("BYTES[,…]"), "BYTES[,\\&...]");
        assert_eq!(literal("-i '~/a\\b'"), "\\-i \\(aq\\(ti/a\\eb\\(aq");
    }
}
