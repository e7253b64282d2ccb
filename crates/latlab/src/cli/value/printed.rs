//! Values of `latlab command --metric`.

use super::{Refusal, refusal};
use crate::analysis::comparison::parse_estimand;
use crate::measure::OutputPattern;
use crate::metric::Metric;
use crate::plan::PrintedSpec;

const FORM: &str = "such as `tokens=([0-9.]+) tokens/s:tok/s:higher`, `tail=/latency/p99:us` or `delay=*:ns`";

/// Parses `NAME=PATTERN[:UNIT][:higher]`. A last word behind a colon is a unit if it has letters, `%` and `/` only.
pub fn printed(typed: &str) -> Result<PrintedSpec, Refusal> {
    let (name, rest) = typed.split_once('=').ok_or_else(|| refusal("it has no `=`", FORM))?;
    if name.is_empty() || !name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_') {
        return Err(refusal("its name does not consist of letters, digits and `_`", FORM));
    }
    let is_built_in = Metric::built_in().any(|metric| metric.name().eq_ignore_ascii_case(name));
    if is_built_in || parse_estimand(None, name).is_ok() {
        return Err(refusal(format!("latlab has a metric or statistic `{name}` of its own"), "choose another name"));
    }
    let higher_is_better = rest.ends_with(":higher");
    let rest = rest.strip_suffix(":higher").unwrap_or(rest);
    let is_unit = |unit: &str| !unit.is_empty() && unit.chars().all(|char| char.is_alphabetic() || "%/".contains(char));
    let (pattern, unit) = rest.rsplit_once(':').filter(|(_, unit)| is_unit(unit)).unwrap_or((rest, ""));
    OutputPattern::parse(pattern).map_err(|cause| refusal(cause, FORM))?;
    let spec = PrintedSpec { name: name.into(), pattern: pattern.into(), unit: unit.into(), higher_is_better };
    // Declared, so that a gate can name it.
    spec.metric();
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_behind_colons_are_unit_and_direction() {
        for (typed, pattern, unit, factor, higher) in [
            ("x=*", "*", "", 1.0, false),
            ("x=/a/b:us", "/a/b", "us", 1e3, false),
            ("x=/a:MB/s:higher", "/a", "MB/s", 1.0, true),
            ("x=a: ([0-9]+):%", "a: ([0-9]+)", "%", 1.0, false),
            ("x=([0-9]+):higher", "([0-9]+)", "", 1.0, true),
            ("x=([0-9]+):[a-z]+", "([0-9]+):[a-z]+", "", 1.0, false),
            ("x=(?:([0-9]+):end)", "(?:([0-9]+):end)", "", 1.0, false),
        ] {
            let spec = printed(typed).expect(typed);
            let found = (spec.pattern.as_str(), spec.unit.as_str(), spec.factor(), spec.higher_is_better);
            assert_eq!(found, (pattern, unit, factor, higher), "{typed}");
        }
    }
}
