//! Parses the delivered rate, in bits of UDP payload a second, in the output of the programs that are compared. Pure.

use serde_json::Value;

pub(crate) fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON ({error}): {text}"))
}

/// A rate above zero at `pointer`.
pub(crate) fn rate(document: &Value, pointer: &str) -> Result<f64, String> {
    let found = document.pointer(pointer).and_then(Value::as_f64).filter(|rate| *rate > 0.0);
    found.ok_or_else(|| format!("no rate at `{pointer}` in {document}"))
}

/// The delivered rate in the output of `latlab stream --json`.
pub(crate) fn latlab(text: &str) -> Result<f64, String> {
    rate(&parse(text)?, "/rates/delivered_bps")
}

/// The delivered rate in the output of a bare stream.
pub(crate) fn bare(text: &str) -> Result<f64, String> {
    rate(&parse(text)?, "/delivered_bps")
}

/// The delivered rate in the output of `iperf3 -u -J`: that of the receiver or, without it, the sent rate less the
/// losses.
pub(crate) fn iperf3(text: &str) -> Result<f64, String> {
    let document = parse(text)?;
    rate(&document, "/end/sum_received/bits_per_second").or_else(|_| {
        let lost_percent = document.pointer("/end/sum/lost_percent").and_then(Value::as_f64);
        let lost_percent = lost_percent.ok_or_else(|| format!("nothing of losses in {document}"))?;
        Ok(rate(&document, "/end/sum/bits_per_second")? * (1.0 - lost_percent / 100.0))
    })
}

/// The delivered rate in the output of `netperf -P 0 -t UDP_STREAM`: the last number of the last line, in 10^6 bits a
/// second.
pub(crate) fn netperf(text: &str) -> Result<f64, String> {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let number = last.and_then(|line| line.split_whitespace().next_back()?.parse::<f64>().ok());
    number.filter(|mbps| *mbps > 0.0).map(|mbps| mbps * 1e6).ok_or_else(|| format!("no rate in:\n{text}"))
}
