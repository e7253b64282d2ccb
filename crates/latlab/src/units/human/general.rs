/// `value` as C's `%.{digits}g` writes it: that many significant digits without trailing zeros, with an exponent
/// where the number is very small or has more digits in front of the point; `inf`, `-inf` and `nan`.
///
/// For tables that stand beside those of other tools; people are shown figures with a unit.
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let digits = digits.max(1);
    // the exponent after rounding decides: 9.9999999e5 with six digits is 1e+06
    let rounded = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", bare(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    bare(&format!("{value:.decimals$}")).into()
}

/// Without the zeros at the end of a fraction.
fn bare(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `printf` of the C library prints.
    #[test]
    fn figures_are_those_of_printf() {
        for (value, digits, expected) in [
            (0.0, 8, "0"),
            (-0.0, 8, "-0"),
            (300.0, 8, "300"),
            (238.047_614_284_761_67, 8, "238.04761"),
            (1.290_994_448_735_805_6, 8, "1.2909944"),
            (99_999_999.4, 8, "99999999"),
            (99_999_999.5, 8, "1e+08"),
            (123_456_789.0, 8, "1.2345679e+08"),
            (0.000_1, 8, "0.0001"),
            (0.000_099_999_999, 6, "0.0001"),
            (0.000_01, 6, "1e-05"),
            (2.333_333_333e-300, 8, "2.3333333e-300"),
            (1e300, 8, "1e+300"),
            (-28.571_428_57, 6, "-28.5714"),
            (1_000_000.0, 6, "1e+06"),
            (999_999.5, 6, "1e+06"),
            (0.5, 6, "0.5"),
            (2.5, 1, "2"),
            (f64::INFINITY, 6, "inf"),
            (f64::NEG_INFINITY, 6, "-inf"),
            (-f64::NAN, 6, "nan"),
        ] {
            assert_eq!(general(value, digits), expected, "{value:e} with {digits} digits");
        }
    }
}
