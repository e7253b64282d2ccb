//! Figures of loads: the same number reads differently in each of their units.

use super::{bit_rate, byte_rate, percent, significant};

/// A figure of a load in the unit of that name (`facts::load`): `79.8 %`, `1.98 GB/s`, `1.93 CPUs`.
pub fn load_figure(unit: &str, value: f64) -> String {
    match unit {
        "share" => percent(value),
        "bytes_per_second" => byte_rate(value),
        "bits_per_second" => bit_rate(value),
        "cpus" => format!("{} CPUs", significant(value)),
        other => format!("{} {}", significant(value), other.replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::load::{BITS_PER_SECOND, BYTES_PER_SECOND, CPUS, PACKETS_PER_SECOND, SHARE};

    #[test]
    fn every_unit_has_its_words() {
        for (unit, value, text) in [
            (SHARE, 0.798, "79.8 %"),
            (BYTES_PER_SECOND, 1.98e9, "1.98 GB/s"),
            (BITS_PER_SECOND, 98.3e6, "98.3 Mbit/s"),
            (CPUS, 1.93, "1.93 CPUs"),
            (PACKETS_PER_SECOND, 12_345.0, "12,300 packets per second"),
        ] {
            assert_eq!(load_figure(unit, value), text);
        }
    }
}
