//! The step of the clock that took values, as far as these show it: all of them are its multiples.

use crate::sample::INFINITE;

/// The greatest common divisor of finite or [`INFINITE`] values; 0 if it is 1, or without a value other than 0. A single value
/// that all have shows the place of its last digit other than 0 alone.
pub fn clock_step(values: impl Iterator<Item = i64>) -> f64 {
    let (mut step, mut first, mut is_constant) = (0, None, true);
    for value in values.filter(|value| *value != INFINITE) {
        is_constant &= value == *first.get_or_insert(value);
        step = common_divisor(step, value.unsigned_abs());
        if step == 1 {
            return 0.0;
        }
    }
    if is_constant {
        let places = (0..19).map(|power| 10_u64.pow(power)).take_while(|place| step > 0 && step % place == 0);
        step = places.last().unwrap_or(0);
    }
    if step > 1 { step as f64 } else { 0.0 }
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_what_all_values_are_multiples_of() {
        for (values, expected) in [
            (&[7_000, 9_000, 7_000, 12_000, INFINITE][..], 1_000.0),
            (&[-4_000_000, 0, 8_000_000], 4_000_000.0),
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
