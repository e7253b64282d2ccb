//! The text exposition format of Prometheus (0.0.4), for the textfile collector of node_exporter.
//!
//! Each condition is a series: a histogram of the metric over its runs, counters of the fates of its probes, the number of
//! its runs and the start of the newest. Infinite singletons are in no bucket, not even in `+Inf`, which equals `_count`:
//! they are in the counter of fates. The families beside the histogram are named alike for every metric: their label `metric`
//! keeps the files of several metrics apart.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::is_control;
use crate::metric::Metric;
use crate::sample::INFINITE;

/// Buckets of each doubling: those of the schema 2 of native histograms, so that each bucket is one of theirs. A quantile
/// that is interpolated in a bucket is at most 19 % off.
const BUCKETS_PER_DOUBLING: i32 = 4;
/// Upper edges of times: from 2⁻²⁰ s, about 1 µs, to 2⁶ s, above the longest time-out.
const TIME_POWERS: [i32; 2] = [-20, 6];
/// Upper edges of rates: from 2¹⁰ bit/s to 2⁴⁰ bit/s, about 1 Tbit/s.
const RATE_POWERS: [i32; 2] = [10, 40];

/// The runs of one condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrometheusSeries {
    /// Names and values of its labels, as they are named elsewhere: `tag:build`.
    pub labels: Vec<(String, String)>,
    /// Finite singletons in each bucket, not cumulated; the last is above every edge.
    buckets: Vec<u64>,
    /// The sum of the finite singletons, ns or bits a second.
    sum: i128,
    /// Fate → measured probes; empty for runs without probes, or whose losses are not known.
    pub fates: BTreeMap<&'static str, u64>,
    pub runs: u64,
    /// When the newest run began, in seconds since the epoch, if known.
    pub started: Option<f64>,
}

impl PrometheusSeries {
    /// A condition without runs so far.
    pub fn of(labels: Vec<(String, String)>) -> PrometheusSeries {
        PrometheusSeries { labels, ..PrometheusSeries::default() }
    }

    /// Adds the values of a run with their counts, in the unit of `metric`.
    pub fn add(&mut self, metric: Metric, values: impl Iterator<Item = (i64, u64)>) {
        let edges: Vec<f64> = edges(metric).map(|edge| edge * unit(metric)).collect();
        self.buckets.resize(edges.len() + 1, 0);
        for (value, count) in values.filter(|(value, _)| *value != INFINITE) {
            self.buckets[edges.partition_point(|edge| *edge < value as f64)] += count;
            self.sum += i128::from(value) * i128::from(count);
        }
        self.runs += 1;
    }
}

/// The unit of exposition in units of `metric`.
fn unit(metric: Metric) -> f64 {
    if metric.is_rate() { 1.0 } else { 1e9 }
}

/// The upper edges of the buckets but the last, in seconds or bits a second.
fn edges(metric: Metric) -> impl Iterator<Item = f64> {
    let [low, high] = if metric.is_rate() { RATE_POWERS } else { TIME_POWERS };
    let power = |step: i32| f64::from(step) / f64::from(BUCKETS_PER_DOUBLING);
    (low * BUCKETS_PER_DOUBLING..=high * BUCKETS_PER_DOUBLING).map(move |step| power(step).exp2())
}

/// Writes the families of all `series`, whose labels differ.
///
/// # Errors
/// If `target` refuses bytes.
pub fn write(target: &mut impl Write, metric: Metric, series: &[PrometheusSeries]) -> io::Result<()> {
    let name = format!("latlab_{}_{}", metric.name(), if metric.is_rate() { "bits_per_second" } else { "seconds" });
    let labels = labels_of(series);
    let family = |target: &mut dyn Write, name: &str, form: &str, help: &str| {
        writeln!(target, "# HELP {name} {help}\n# TYPE {name} {form}")
    };
    let help = format!("{} of the measured probes of the runs; lost ones are in no bucket.", metric.title());
    family(target, &name, "histogram", &help)?;
    for (one, labels) in series.iter().zip(&labels) {
        let mut count = 0;
        let edges = edges(metric).map(|edge| edge.to_string()).chain(["+Inf".to_owned()]);
        for (edge, in_bucket) in edges.zip(&one.buckets) {
            count += in_bucket;
            writeln!(target, "{name}_bucket{} {count}", with(labels, &[("le", &edge)]))?;
        }
        writeln!(target, "{name}_sum{} {}", with(labels, &[]), one.sum as f64 / unit(metric))?;
        writeln!(target, "{name}_count{} {count}", with(labels, &[]))?;
    }
    let of_metric = ("metric", metric.name());
    if series.iter().any(|one| !one.fates.is_empty()) {
        family(target, "latlab_probes_total", "counter", "Measured probes of the runs by fate.")?;
        for (one, labels) in series.iter().zip(&labels) {
            for (fate, probes) in &one.fates {
                writeln!(target, "latlab_probes_total{} {probes}", with(labels, &[of_metric, ("fate", fate)]))?;
            }
        }
    }
    family(target, "latlab_runs", "gauge", "Runs that the other families are of.")?;
    for (one, labels) in series.iter().zip(&labels) {
        writeln!(target, "latlab_runs{} {}", with(labels, &[of_metric]), one.runs)?;
    }
    let mut starts = series.iter().zip(&labels).filter_map(|(one, labels)| Some((one.started?, labels))).peekable();
    if starts.peek().is_some() {
        family(target, "latlab_run_timestamp_seconds", "gauge", "When the newest of the runs began.")?;
    }
    for (started, labels) in starts {
        writeln!(target, "latlab_run_timestamp_seconds{} {started}", with(labels, &[of_metric]))?;
    }
    target.flush()
}

/// The labels of each of `series` as text, without braces. Names that become equal get numbers: `tag:a-b`, `tag:a_b`.
fn labels_of(series: &[PrometheusSeries]) -> Vec<Vec<String>> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for (label, _) in series.iter().flat_map(|one| &one.labels) {
        if names.contains_key(label.as_str()) {
            continue;
        }
        let plain = label_name(label);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let is_free = |name: &String| names.values().all(|known| known != name);
        if let Some(name) = std::iter::once(plain.clone()).chain(numbered).find(is_free) {
            names.insert(label, name);
        }
    }
    let pair = |(label, value): &(String, String)| format!("{}=\"{}\"", names[label.as_str()], label_value(value));
    series.iter().map(|one| one.labels.iter().map(pair).collect()).collect()
}

/// `{a="b",le="0.5"}`, or nothing without a label.
fn with(labels: &[String], further: &[(&str, &str)]) -> String {
    let further = further.iter().map(|(name, value)| format!("{name}=\"{value}\""));
    let all: Vec<String> = labels.iter().cloned().chain(further).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

/// Labels that the families have themselves, and that the scrape sets.
const RESERVED: [&str; 5] = ["le", "fate", "metric", "job", "instance"];

/// `label` with letters, digits and `_` only: `tag:build` is `tag_build`.
fn label_name(label: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    let name: String = label.chars().map(plain).collect();
    let is_reserved = RESERVED.contains(&name.as_str());
    if is_reserved || name.starts_with(|first: char| first.is_ascii_digit() || first == '_') {
        return format!("latlab_{name}");
    }
    name
}

/// `text` with its escapes. A character that a terminal obeys becomes its number: the format has no escape for it.
fn label_value(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\\' | '"' => value.extend(['\\', char]),
            '\n' => value.push_str("\\n"),
            char if is_control(char) => value.push_str(&format!("<U+{:04X}>", u32::from(char))),
            char => value.push(char),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(labels: &[(&str, &str)], singletons: &[i64]) -> PrometheusSeries {
        let labels = labels.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect();
        let mut series = PrometheusSeries { labels, started: Some(1_800_000_000.25), ..PrometheusSeries::default() };
        series.add(Metric::RoundTripDelay, singletons.iter().map(|value| (*value, 1)));
        series
    }

    fn text(series: &[PrometheusSeries]) -> String {
        let mut text = Vec::new();
        write(&mut text, Metric::RoundTripDelay, series).expect("memory takes it");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn buckets_are_cumulated_and_infinite_values_are_in_none() {
        let mut one = series(&[("size", "64")], &[953, 954, 1_000_000_000, 1_000_000_001, 70_000_000_000, INFINITE]);
        one.fates.insert("lost", 1);
        let text = text(&[one]);
        for line in [
            "# TYPE latlab_round_trip_delay_seconds histogram",
            "latlab_round_trip_delay_seconds_bucket{size=\"64\",le=\"0.00000095367431640625\"} 1",
            "latlab_round_trip_delay_seconds_bucket{size=\"64\",le=\"1\"} 3",
            "latlab_round_trip_delay_seconds_bucket{size=\"64\",le=\"64\"} 4",
            "latlab_round_trip_delay_seconds_bucket{size=\"64\",le=\"+Inf\"} 5",
            "latlab_round_trip_delay_seconds_sum{size=\"64\"} 72.000001908",
            "latlab_round_trip_delay_seconds_count{size=\"64\"} 5",
            "latlab_probes_total{size=\"64\",metric=\"round_trip_delay\",fate=\"lost\"} 1",
            "latlab_runs{size=\"64\",metric=\"round_trip_delay\"} 1",
            "latlab_run_timestamp_seconds{size=\"64\",metric=\"round_trip_delay\"} 1800000000.25",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
        assert_eq!(text.matches("_bucket{").count(), 26 * 4 + 2);
    }

    #[test]
    fn labels_are_escaped_and_names_stay_distinct() {
        let text = text(&[series(&[("tag:a-b", "1"), ("tag:a_b", "2"), ("le", "\"\\\n\x1b")], &[])]);
        let expected = "latlab_runs{tag_a_b=\"1\",tag_a_b_2=\"2\",latlab_le=\"\\\"\\\\\\n<U+001B>\",metric=\"round_trip_delay\"} 1";
        assert!(text.lines().any(|line| line == expected), "{text}");
    }

    #[test]
    fn what_is_not_known_has_no_family() {
        let mut one = series(&[], &[5]);
        one.started = None;
        let text = text(&[one]);
        assert!(!text.contains("latlab_run_timestamp_seconds") && !text.contains("latlab_probes_total"), "{text}");
        assert!(text.ends_with("\nlatlab_runs{metric=\"round_trip_delay\"} 1\n"), "{text}");
    }

    #[test]
    fn edges_of_a_whole_doubling_are_powers_of_two() {
        let edges: Vec<f64> = edges(Metric::RoundTripDelay).collect();
        assert!(edges.iter().step_by(4).all(|edge| edge.log2().fract() == 0.0), "{edges:?}");
        assert!(edges.is_sorted());
    }
}
