//! The step of the clock that took values, as far as these show it: all of them are its multiples.

use crate::sample::INFINITE;

/// The largest power of ten of which all finite values are multiples; 0 if it is 1, or without a value other than 0 and
/// [`INFINITE`].
pub fn clock_step(values: impl Iterator<Item = i64>) -> f64 {
    let mut step = None;
    for value in values.filter(|value| ![0, INFINITE].contains(value)) {
        let mut place: i64 = step.unwrap_or(LARGEST);
        while value % place != 0 {
            place /= 10;
        }
        if place == 1 {
            return 0.0;
        }
        step = Some(place);
    }
    step.unwrap_or(0) as f64
}

/// The largest power of ten in an `i64`.
const LARGEST: i64 = 1_000_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_power_of_ten_that_all_values_are_multiples_of() {
        for (values, expected) in [
            (&[7_000, 9_000, 7_000, 12_000, INFINITE][..], 1_000.0),
            (&[-4_000_000, 0, 8_000_000], 1_000_000.0),
            (&[37_123, 0, 0, 0], 0.0),
            (&[123_457, 123_458, 123_457], 0.0),
            (&[250_000; 3], 10_000.0),
            (&[123_457; 3], 0.0),
            (&[0; 3], 0.0),
            (&[INFINITE], 0.0),
            (&[], 0.0),
        ] {
            assert_eq!(clock_step(values.iter().copied()), expected, "{values:?}");
        }
    }
}
