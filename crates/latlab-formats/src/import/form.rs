//! Forms of lines, such as `{} : [{}], {} bytes, {} ms *`: literal text with gaps. `{}` is a gap that is kept, `*` one that is not;
//! between two pieces of text a gap is as short as possible.

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
