//! Delivered rates that contenders print, read: bits of UDP payload a second. Pure.

use serde_json::Value;

pub(crate) fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON ({error}): {text}"))
}

/// A rate above zero at `pointer`.
pub(crate) fn rate(document: &Value, pointer: &str) -> Result<f64, String> {
    let found = document.pointer(pointer).and_then(Value::as_f64).filter(|rate| *rate > 0.0);
    found.ok_or_else(|| format!("no rate at `{pointer}` in {document}"))
}

/// What `latlab stream --json` says arrived.
pub(crate) fn latlab(text: &str) -> Result<f64, String> {
    rate(&parse(text)?, "/rates/delivered_bps")
}

/// What `latlab bare-stream` says arrived.
pub(crate) fn bare(text: &str) -> Result<f64, String> {
    rate(&parse(text)?, "/delivered_bps")
}

/// What `iperf3 -u -J` says arrived: the receiver's own sum, or what was sent less what was lost.
pub(crate) fn iperf3(text: &str) -> Result<f64, String> {
    let document = parse(text)?;
    rate(&document, "/end/sum_received/bits_per_second").or_else(|_| {
        let lost_percent = document.pointer("/end/sum/lost_percent").and_then(Value::as_f64);
        let lost_percent = lost_percent.ok_or_else(|| format!("nothing of losses in {document}"))?;
        Ok(rate(&document, "/end/sum/bits_per_second")? * (1.0 - lost_percent / 100.0))
    })
}

/// What `netperf -P 0 -t UDP_STREAM` says arrived: the last number of its last line, in 10^6 bits a second.
pub(crate) fn netperf(text: &str) -> Result<f64, String> {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let number = last.and_then(|line| line.split_whitespace().next_back()?.parse::<f64>().ok());
    number.filter(|mbps| *mbps > 0.0).map(|mbps| mbps * 1e6).ok_or_else(|| format!("no rate in:\n{text}"))
}
