//! Parses the quantiles in the output of contenders. Pure.

use serde_json::Value;

/// One contender's figures of one round, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    /// `None` if the contender does not print it.
    pub(crate) p999_ns: Option<f64>,
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON ({error}): {text}"))
}

fn number(document: &Value, pointer: &str) -> Result<f64, String> {
    let found = document.pointer(pointer).and_then(Value::as_f64);
    found.ok_or_else(|| format!("no number at `{pointer}` in {document}"))
}

/// Quantile `q` of `metric` in a `latlab.summary/1` document.
pub(crate) fn quantile(document: &Value, metric: &str, q: f64) -> Result<f64, String> {
    let listed = document.pointer(&format!("/metrics/{metric}/quantiles")).and_then(Value::as_array);
    let found = listed.into_iter().flatten().find(|entry| entry["q"].as_f64() == Some(q));
    found.and_then(|entry| entry["value"].as_f64()).ok_or_else(|| format!("no quantile {q} of {metric} in {document}"))
}

/// The round-trip delay in a `latlab.summary/1` document.
///
/// # Errors
/// No probe was sent, or one was lost: the figures would include time-outs.
pub(crate) fn latlab(text: &str) -> Result<Reading, String> {
    of_metric(text, "round_trip_delay")
}

/// The wake-up latency in a `latlab.summary/1` document, with the errors of [`latlab`].
pub(crate) fn latlab_wakeup(text: &str) -> Result<Reading, String> {
    of_metric(text, "wakeup_latency")
}

/// The elapsed time in a `latlab.summary/1` document, with the errors of [`latlab`].
pub(crate) fn latlab_command(text: &str) -> Result<Reading, String> {
    of_metric(text, "elapsed_time")
}

/// The quantiles of these times in ns, interpolated linearly between order statistics, as those of latlab.
pub(crate) fn of_times(mut times: Vec<f64>) -> Result<Reading, String> {
    times.sort_by(f64::total_cmp);
    let last = times.len().checked_sub(1).ok_or("it printed no times")?;
    let quantile = |q: f64| {
        let place = q * last as f64;
        let (low, high) = (times[place.floor() as usize], times[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    Ok(Reading { p50_ns: quantile(0.5), p99_ns: quantile(0.99), p999_ns: None })
}

fn of_metric(text: &str, metric: &str) -> Result<Reading, String> {
    let document = parse(text)?;
    let (sent, answered) = (number(&document, "/sent")?, number(&document, "/answered")?);
    if sent != answered || sent == 0.0 {
        return Err(format!("answered {answered} of {sent}: a round with losses measures time-outs"));
    }
    let of = |q| quantile(&document, metric, q);
    Ok(Reading { p50_ns: of(0.5)?, p99_ns: of(0.99)?, p999_ns: of(0.999).ok() })
}

/// The output of `cyclictest -N -q -h NS` with one thread: a line `latency count` for each nanosecond. Quantiles are
/// interpolated linearly between order statistics, as those of latlab.
pub(crate) fn cyclictest(text: &str) -> Result<Reading, String> {
    let overflows = text.lines().find_map(|line| line.strip_prefix("# Histogram Overflows:"));
    let overflows = overflows.and_then(|count| count.trim().parse::<u64>().ok());
    let buckets = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (latency, count) = line.split_once(char::is_whitespace)?;
        Some((latency.parse::<u64>().ok()?, count.trim().parse::<u64>().ok()?))
    });
    let buckets: Vec<(u64, u64)> = buckets.filter(|(_, count)| *count > 0).collect();
    let n = buckets.iter().map(|(_, count)| count).sum::<u64>() + overflows.unwrap_or(0);
    if overflows.is_none() || buckets.is_empty() {
        return Err(format!(
            "no histogram of cyclictest's:
{}",
            text.chars().take(500).collect::<String>()
        ));
    }
    let value = |rank: u64| {
        let mut seen = 0;
        let found = buckets.iter().find(|(_, count)| {
            seen += count;
            seen > rank
        });
        found.map(|(latency, _)| *latency as f64).ok_or("the quantile lies beyond cyclictest's histogram".to_owned())
    };
    let quantile = |q: f64| {
        let place = q * (n - 1) as f64;
        let (low, high) = (value(place.floor() as u64)?, value(place.ceil() as u64)?);
        Ok::<f64, String>(low + (high - low) * place.fract())
    };
    Ok(Reading { p50_ns: quantile(0.5)?, p99_ns: quantile(0.99)?, p999_ns: quantile(0.999).ok() })
}

/// The output of a bare loop: quantiles in nanoseconds.
pub(crate) fn bare(text: &str) -> Result<Reading, String> {
    let document = parse(text)?;
    let p999_ns = number(&document, "/p999_ns").ok();
    Ok(Reading { p50_ns: number(&document, "/p50_ns")?, p99_ns: number(&document, "/p99_ns")?, p999_ns })
}

/// The last line of `ddsperf ping`: percentiles of half round trips in microseconds, which are doubled.
pub(crate) fn ddsperf(text: &str) -> Result<Reading, String> {
    let line =
        text.lines().rfind(|line| line.contains(" 50% ")).ok_or_else(|| format!("no percentiles in:\n{text}"))?;
    let percentile = |name: &str| {
        let value =
            line.split_once(&format!(" {name} ")).and_then(|(_, rest)| rest.split_once("us")?.0.parse::<f64>().ok());
        value.map(|half| 2e3 * half).ok_or_else(|| format!("no percentile {name} in: {line}"))
    };
    Ok(Reading { p50_ns: percentile("50%")?, p99_ns: percentile("99%")?, p999_ns: None })
}

/// The output of `sockperf ping-pong --full-rtt`: percentiles of whole round trips, in microseconds.
pub(crate) fn sockperf(text: &str) -> Result<Reading, String> {
    if !text.contains("Round trip is") {
        return Err(format!("not a report of whole round trips:\n{text}"));
    }
    let percentile = |name: &str| {
        let line = text.lines().find_map(|line| line.split_once(&format!("percentile {name} =")));
        let value = line.and_then(|(_, value)| value.trim().parse::<f64>().ok());
        value.map(|micros| micros * 1e3).ok_or_else(|| format!("no percentile {name} in:\n{text}"))
    };
    let p999_ns = percentile("99.900").ok();
    Ok(Reading { p50_ns: percentile("50.000")?, p99_ns: percentile("99.000")?, p999_ns })
}
