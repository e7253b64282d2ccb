//! Forms of lines: literal text with gaps. `{}` is a gap that is kept, `*` one that is not; between two pieces of text a gap
//! is as short as possible.
//!
//! ```text
//! {} : [{}], {} bytes, {} ms *
//! ```

use memchr::memmem;

use super::field::LogField;

/// The texts in the gaps `{}` of `form`, if `line` has that form; a form without a gap at an end begins or ends there.
pub(super) fn captured<'a, const N: usize>(line: LogField<'a>, form: &str) -> Option<[LogField<'a>; N]> {
    let mut found = [LogField { text: &[], column: 0 }; N];
    let (mut at, mut kept, mut gap) = (0, 0, None);
    let mut rest = form;
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix("{}") {
            (rest, gap) = (behind, Some(true));
        } else if let Some(behind) = rest.strip_prefix('*') {
            (rest, gap) = (behind, gap.or(Some(false)));
        } else {
            let length = rest.find(['{', '*']).unwrap_or(rest.len());
            let (literal, behind) = rest.split_at(length);
            let start = match gap {
                None => line.text[at..].starts_with(literal.as_bytes()).then_some(0)?,
                Some(_) => memmem::find(&line.text[at..], literal.as_bytes())?,
            };
            if gap.take() == Some(true) {
                *found.get_mut(kept)? = line.part(at, at + start);
                kept += 1;
            }
            at += start + length;
            rest = behind;
        }
    }
    match gap {
        Some(true) => *found.get_mut(kept)? = line.part(at, line.text.len()),
        Some(false) => {}
        None if at < line.text.len() => return None,
        None => {}
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::field::whole;
    use super::*;

    #[test]
    fn gaps_are_kept_with_their_columns() {
        let line = b"192.0.2.2 : [0], 64 bytes, 0.350 ms (0.350 avg, 0% loss)";
        let [host, seq, size, value] = captured(whole(line), "{} : [{}], {} bytes, {} ms *").expect("the form");
        assert_eq!(
            (host.text, seq.text, size.text, value.text),
            (&b"192.0.2.2"[..], &b"0"[..], &b"64"[..], &b"0.350"[..])
        );
        assert_eq!((host.column, seq.column, value.column), (1, 14, 28));
        for form in ["{} : [{}], timed out*", "{} bytes", "x*", "*x", "*loss"] {
            assert_eq!(captured::<4>(whole(line), form), None, "{form}");
        }
        let has_form = |line, form| captured::<0>(whole(line), form).is_some();
        assert!(has_form(line, "*% loss)") && has_form(b"", "*") && has_form(b"", "") && !has_form(b"a", ""));
        let [last] = captured(whole(b"seq= 7"), "seq={}").expect("a gap at the end");
        assert_eq!((last.text, last.column), (&b"7"[..], 6), "without blanks around it");
    }
}
