//! Text to numbers, fast where the number is plain.

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Whole numbers up to here are doubles.
const WHOLE_MAX: u64 = 1 << 53;
/// So many digits are below `WHOLE_MAX` whatever they are.
const DIGITS_MAX: usize = 15;

/// A number that begins `text` and ends with its line: its value, and where the next line begins.
///
/// Only what is plain: a sign, at most 15 digits, a point. A quotient of two exact doubles is rounded once, so that
/// the value is the one that the standard library finds (W. D. Clinger, "How to read floating point numbers
/// accurately", 1990).
#[inline]
pub(super) fn plain_line(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let first = usize::from(negative);
    let (mut digits, mut whole, mut point) = (0_usize, 0_u64, None);
    for (at, byte) in text.iter().enumerate().skip(first) {
        match byte {
            b'0'..=b'9' => {
                whole = whole * 10 + u64::from(byte - b'0');
                digits += 1;
                if digits > DIGITS_MAX {
                    return None;
                }
            }
            b'.' if point.is_none() => point = Some(digits),
            b'\n' if digits > 0 => {
                debug_assert!(whole < WHOLE_MAX);
                let fraction = point.map_or(0, |point| digits - point);
                let value = whole as f64 / POWERS[fraction];
                return Some((if negative { -value } else { value }, at + 1));
            }
            _ => return None,
        }
    }
    None
}

/// Any finite decimal number, with white space around it.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    // the library also reads words such as `inf`
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_have_the_value_of_the_library() {
        for text in [
            "0",
            "-0",
            "1",
            "-17",
            "007",
            "5.",
            ".5",
            "-.25",
            "0.1",
            "123456.789012345",
            "999999999999999",
            "0.00000000000001",
            "48.7",
            "3.141592653589",
            "100000000000001",
        ] {
            let line = format!("{text}\n2\n");
            let expected: f64 = text.parse().expect("a number");
            let (value, next) = plain_line(line.as_bytes()).expect(text);
            assert_eq!((value.to_bits(), next), (expected.to_bits(), text.len() + 1), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_library() {
        for line in ["", "\n", "-\n", ".\n", "1", "1 \n", "1e3\n", "+1\n", "1.2.3\n", "1234567890123456\n", "x\n"] {
            assert_eq!(plain_line(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn finite_decimals_are_numbers() {
        for (text, expected) in [(" 9", 9.0), ("+1", 1.0), ("1e3\r", 1000.0), ("1E-3", 0.001), ("5e-324", 5e-324)] {
            assert_eq!(number(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", " ", "NaN", "inf", "-Infinity", "1e400", "0x10", "12us", "1,5", "5 x", "\u{663}"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
