//! The order of levels, and with it which of them is the baseline.

use std::cmp::Ordering;

use crate::units::human;

/// `none` first, then numbers and times by size, then everything else by its letters, with numbers inside by size.
pub(super) fn order(one: &str, other: &str) -> Ordering {
    let by_size = match (size(one), size(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    let is_none = |level: &str| level == "none";
    is_none(other).cmp(&is_none(one)).then(by_size).then_with(|| naturally(one, other))
}

/// What a level that is a number or a time amounts to.
fn size(level: &str) -> Option<f64> {
    let number = level.parse::<f64>().ok().filter(|number| number.is_finite());
    number.or_else(|| human::parse_duration(&level.replace(' ', "")).ok().map(|time| time.0 as f64))
}

/// `net=9M` before `net=10M`.
fn naturally(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let (word, number, rest) = split(one);
        let (other_word, other_number, other_rest) = split(other);
        // longer numbers are larger once zeros in front are gone
        let key = |number: &str| {
            let digits = number.trim_start_matches('0');
            (digits.len(), digits.to_owned(), number.len())
        };
        let ordering = word.cmp(other_word).then_with(|| key(number).cmp(&key(other_number)));
        if ordering != Ordering::Equal || (one.is_empty() && other.is_empty()) {
            return ordering;
        }
        (one, other) = (rest, other_rest);
    }
}

/// What stands before the first digit, the digits, and the rest.
fn split(text: &str) -> (&str, &str, &str) {
    let begin = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
    let (word, rest) = text.split_at(begin);
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    (word, number, rest)
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn levels_have_the_order_that_a_reader_expects() {
        for expected in [
            vec!["64", "128", "1024"],
            vec!["none", "250 µs", "1 ms", "10 ms", "2 s"],
            vec!["none", "cpu=9%", "cpu=80%", "net=10Mbit/s", "net=90Mbit/s"],
            vec!["v1.2", "v1.10", "v1.10-rc", "v2"],
            vec!["-1", "0.5", "12", "a", "b"],
            vec!["7", "07"],
            vec!["new", "old"],
        ] {
            let mut sorted = expected.clone();
            sorted.reverse();
            sorted.sort_by(|one, other| order(one, other));
            assert_eq!(sorted, expected);
        }
    }
}
