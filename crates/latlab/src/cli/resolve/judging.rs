use super::{RequestError, value};
use crate::cli::args::JudgingArgs;
use crate::plan::{Judging, defaults};
use crate::units::Nanos;

/// What the summary shall say, the run's own settings and the defaults below it.
pub(super) fn judging(typed: &JudgingArgs) -> Result<Judging, RequestError> {
    Ok(Judging {
        quantiles: quantiles(&typed.quantiles)?.unwrap_or_else(|| defaults::QUANTILES.to_vec()),
        window_ns: window(typed)?,
        deadline_ns: deadline(typed)?,
        half: typed.half,
        like: None,
    })
}

/// Ascending, each once; none where none was typed.
pub(super) fn quantiles(typed: &[String]) -> Result<Option<Vec<f64>>, RequestError> {
    if typed.is_empty() {
        return Ok(None);
    }
    let mut quantiles = typed.iter().map(|one| quantile(one.trim())).collect::<Result<Vec<_>, _>>()?;
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    if quantiles.len() > defaults::QUANTILES_MAX {
        let cause = format!("{} quantiles are more than {}", quantiles.len(), defaults::QUANTILES_MAX);
        return Err(value::unusable("--quantiles", typed.join(","), cause, "give those that matter"));
    }
    Ok(Some(quantiles))
}

/// A row per so much time.
pub(super) fn window(typed: &JudgingArgs) -> Result<Option<Nanos>, RequestError> {
    typed.window.as_deref().map(|span| value::span("--window", span, defaults::DURATION_MAX)).transpose()
}

/// What counts as missed.
pub(super) fn deadline(typed: &JudgingArgs) -> Result<Option<Nanos>, RequestError> {
    typed.deadline.as_deref().map(|span| value::span("--deadline", span, defaults::DURATION_MAX)).transpose()
}

fn quantile(typed: &str) -> Result<f64, RequestError> {
    let refuse = |cause: &str| {
        let hint = "between 0 and 1, neither included: `0.99` is the 99th percentile";
        value::unusable("--quantiles", typed, cause, hint)
    };
    let quantile: f64 = typed.parse().map_err(|_| refuse("it is no number"))?;
    match quantile {
        q if q > 0.0 && q < 1.0 => Ok(q),
        q if q.is_finite() => Err(refuse("it does not lie between 0 and 1")),
        _ => Err(refuse("it is no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<Option<Vec<f64>>, RequestError> {
        quantiles(&list.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn quantiles_come_sorted_and_once() {
        assert_eq!(read("0.99,0.5, 0.9,0.5"), Ok(Some(vec![0.5, 0.9, 0.99])));
        assert_eq!(quantiles(&[]), Ok(None));
    }

    #[test]
    fn what_is_no_quantile_is_refused() {
        for typed in ["0", "1", "99", "-0.5", "NaN", "inf", "p99", "", "0.5,,0.9"] {
            let error = read(typed).expect_err(typed);
            assert!(error.hint().is_some_and(|hint| hint.contains("0.99")), "{typed}");
        }
        let many: Vec<String> = (1..=33).map(|n| format!("0.{n:02}")).collect();
        assert!(quantiles(&many).is_err());
    }
}
