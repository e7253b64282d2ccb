//! Remarks on CPU activity during sleeps and on slow probes that coincided with late wake-ups.

use super::figures::sure;
use super::quantiles::in_words;
use super::view::RemarkView;
use crate::analysis::experiment::ColumnFigure;
use crate::analysis::{Coincidence, CpuActivity, LateBeyond, StateShare, Summary, Threshold};
use crate::recipe::Column;
use crate::units::Nanos;
use crate::units::human::{grouped, percent, quantile, significant, span, typed_cpus};

/// Returns the lines of a run of probes with concurrent wake-ups. `name` identifies the run among several.
pub(super) fn coincidence_remarks(summary: &Summary, name: &str) -> Vec<RemarkView> {
    let Some(found) = &summary.coincidence else { return Vec::new() };
    let of = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let line = |label: &str, text: String| RemarkView { label: label.into(), text: format!("{of}{text}") };
    vec![line("wake-ups", wakeups(found)), line("coincidence", coincidence(found))]
}

fn wakeups(found: &Coincidence) -> String {
    let cpus: Vec<String> = found.cpus.iter().map(ToString::to_string).collect();
    let on = match cpus.as_slice() {
        [] => String::new(),
        [one] => format!(" on CPU {one}, the sender's"),
        several => format!(" on CPUs {}, where the sender may run", several.join(", ")),
    };
    let latency = &found.wakeup_latency;
    let quantiles = latency.quantiles.iter().map(|estimate| estimate.q).filter(|q| [0.5, 0.99].contains(q));
    let figures = quantiles.map(|q| {
        let figure = ColumnFigure::of(Column::Quantile(q), latency);
        format!("{} {}", quantile(q), in_words(figure, rounded))
    });
    let figures = figures.chain(latency.max.map(|max| format!("max {}", span(Nanos(max as i64)))));
    let figures: String = figures.map(|figure| format!(" · {figure}")).collect();
    format!("every {}{on} · n {}{figures}", span(found.interval_ns), grouped(latency.n))
}

fn coincidence(found: &Coincidence) -> String {
    if found.is_backlog {
        return "no result: the threads on the CPUs of the slow probes were nearly always late; use a longer \
         interval of `--with-wakeup`"
            .into();
    }
    let (Some(slow), Some(late)) = (beyond(found.slow_beyond, "--deadline"), late(&found.late_beyond)) else {
        return "no result: no probe was answered, or no wake-up was measured".into();
    };
    let (Some(share), Some(chance)) = (found.slow.value, found.chance) else {
        return format!("no probe took longer than {slow}");
    };
    let n = grouped(found.slow.n);
    let probes = if found.slow.n == 1 { "probe" } else { "probes" };
    // Without late wake-ups, a share of 0 with a chance of 0 would be misread as a result.
    if found.slow.hits == 0 && chance <= 0.0 {
        return format!("{n} {probes} slower than {slow}; no wake-up on their CPUs was later than {late}");
    }
    format!(
        "of {n} {probes} slower than {slow} {} were on their way while a wake-up was later than {late}: {}; by chance {}",
        grouped(found.slow.hits),
        sure(share, found.slow.interval),
        percent(chance)
    )
}

/// Formats as `80 µs (p99)` or, for several CPUs, as `80 µs on CPU 0, 12 ms on CPU 1 (p99)`, truncated for many.
fn late(beyond: &LateBeyond) -> Option<String> {
    const NAMED: usize = 4;
    let tails = match beyond {
        LateBeyond::Stated(beyond) => return Some(format!("{} (stated)", rounded(*beyond))),
        LateBeyond::Tails(tails) => tails,
    };
    let named = |(cpu, beyond): (&Option<u16>, &f64)| match cpu.filter(|_| tails.len() > 1) {
        Some(cpu) => format!("{} on CPU {cpu}", rounded(*beyond)),
        None => rounded(*beyond),
    };
    let several: Vec<String> = tails.iter().take(NAMED).map(named).collect();
    let more = if tails.len() > NAMED { ", …" } else { "" };
    (!several.is_empty()).then(|| format!("{}{more} (p99)", several.join(", ")))
}

fn rounded(ns: f64) -> String {
    span(Nanos(ns.round() as i64))
}

/// Formats as `121 µs (p99)`.
fn beyond(threshold: Threshold, stated: &str) -> Option<String> {
    let why = if threshold.stated { stated } else { "p99" };
    Some(format!("{} ({why})", rounded(threshold.beyond_ns?)))
}

/// Idle states with a smaller share of the time do not affect the median and are not shown.
const MIN_STATE_SHARE: f64 = 0.01;

/// Formats the idle ratio, idle states and clock rates over all CPUs, and states which of them the host does not
/// provide.
pub(super) fn cpu_activity(summary: &Summary) -> Option<String> {
    let activity = &summary.wakeups.as_ref()?.cpu_activity;
    if activity.is_empty() {
        return None;
    }
    let cpus: Vec<u16> = activity.iter().map(|one| one.cpu).collect();
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let idle = mean(activity.iter().filter_map(|one| one.idle)).map(|share| format!(" idle {}", percent(share)));
    let head = format!("{noun} {}{}", typed_cpus(&cpus), idle.unwrap_or_default());
    Some([head, states(activity), rates(activity)].join(" · "))
}

fn states(activity: &[CpuActivity]) -> String {
    let known = |one: &&CpuActivity| !one.states.is_empty();
    let Some(first) = activity.iter().find(known) else { return "idle states: not reported by this host".into() };
    // CPUs of one host have the same states, except on hybrid hosts, whose states differ by name.
    let mut shares: Vec<(&StateShare, f64)> = Vec::new();
    for state in activity.iter().flat_map(|one| &one.states) {
        match shares.iter_mut().find(|(seen, _)| seen.name == state.name) {
            Some((_, sum)) => *sum += state.share,
            None => shares.push((state, state.share)),
        }
    }
    let count = activity.iter().filter(known).count() as f64;
    let words = shares.iter().map(|(state, sum)| (state, sum / count)).filter(|(_, share)| *share >= MIN_STATE_SHARE);
    let words: Vec<String> =
        words.map(|(state, share)| format!("{} {}{}", state.name, percent(share), exit(state))).collect();
    if words.is_empty() {
        format!("in each of {} idle states for less than 1 % of the time", first.states.len())
    } else {
        words.join(", ")
    }
}

fn exit(state: &StateShare) -> String {
    let longest = state.exit_latency_us.filter(|us| *us > 0);
    longest.map(|us| format!(" (exit up to {us} µs)")).unwrap_or_default()
}

fn rates(activity: &[CpuActivity]) -> String {
    let seen = || activity.iter().filter_map(|one| one.rate);
    let ends = (seen().map(|rate| rate.min_khz).min(), seen().map(|rate| rate.max_khz).max());
    let (Some(low), Some(high)) = ends else { return "clock rate: not reported by this host".into() };
    let mhz = |khz: f64| significant(khz / 1e3);
    if low == high {
        return format!("{} MHz", mhz(low as f64));
    }
    let mean = mean(seen().map(|rate| rate.mean_khz)).unwrap_or_default();
    format!("{} to {} MHz, {} on average", mhz(low as f64), mhz(high as f64), mhz(mean))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory, closed};
    use crate::analysis::{ClockRates, SummaryOptions, summarise};
    use crate::plan::{ConcurrentWakeups, WakeupCpus, Work};
    use crate::schemas::check;
    use crate::view::Showing;

    /// 1,000 probes of 50 µs, 20 of them of 2 ms while CPU 3 was kept busy, on which slots are due every millisecond.
    fn summary(cpus: Vec<u16>, late_ns: Option<Nanos>) -> Summary {
        let slow = |seq: u64| (500..520).contains(&seq);
        let row = |seq: u64| closed(seq, seq as i64 * 2_000, if slow(seq) { 1_500 + seq as i64 } else { 50 });
        let mut source = InMemory::of(CLOSED, (0..1_000).map(row).collect());
        let slot = |slot: i64| {
            let due = slot * 1_000_000;
            let woke = if (1_000..1_041).contains(&slot) { 1_041_000_000 } else { due + 70_000 };
            (Some(3), due, woke)
        };
        source.wakeups = (0..2_000).map(slot).collect();
        let Work::Ping(ping) = &mut source.manifest.spec.work else { panic!("a ping") };
        ping.with_wakeup =
            Some(ConcurrentWakeups { interval_ns: Nanos::from_millis(1), late_ns, cpus: WakeupCpus::These(cpus) });
        summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory")
    }

    #[test]
    fn text_and_document_report_the_coincidence() {
        let found = summary(vec![3], Some(Nanos::from_micros(200)));
        let words: Vec<String> = coincidence_remarks(&found, "").into_iter().map(|remark| remark.text).collect();
        assert!(words[0].starts_with("every 1 ms on CPU 3, the sender's · n 2,000 · p50 70 µs"), "{words:?}");
        assert!(words[1].starts_with("of 10 probes slower than 2.01 ms (p99) 10 were on their way"), "{words:?}");
        assert!(words[1].contains("later than 200 µs (stated): 100 %"), "{words:?}");
        assert!(words[1].contains("by chance 2."), "{words:?}");
        let showing =
            Showing { half: false, every_metric: false, kept: true, like: None, wide: false, of_store: false };
        let text = crate::json::render(std::slice::from_ref(&found), showing);
        check("summary", &text);
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let coincidence = &document["coincidence"];
        assert_eq!(
            (&coincidence["slow"], &coincidence["coincident"], &coincidence["late"]),
            (&10.into(), &10.into(), &41.into())
        );
        assert_eq!((&coincidence["slow_beyond"], &coincidence["late_beyond"]), (&"p99".into(), &"stated".into()));
    }

    #[test]
    fn several_cpus_and_several_runs_are_named() {
        let found = summary(vec![0, 3], None);
        let words = coincidence_remarks(&found, "64 B");
        assert!(words[0].text.starts_with("64 B: every 1 ms on CPUs 0, 3, where the sender may run"), "{words:?}");
        assert!(words[1].text.contains("(p99): "), "{words:?}");
    }

    #[test]
    fn no_slow_probe_is_reported_as_such() {
        let mut found = summary(vec![3], None).coincidence.expect("wake-ups");
        (found.slow.value, found.chance) = (None, None);
        assert!(coincidence(&found).starts_with("no probe took longer than 2.01 ms"));
        (found.slow.n, found.slow.hits, found.slow.value, found.chance) = (1, 0, Some(0.0), Some(0.0));
        found.late_beyond = LateBeyond::Tails([(Some(0), 8e4), (Some(1), 1.2e7)].into());
        let words = "1 probe slower than 2.01 ms (p99); no wake-up on their CPUs was later than ";
        assert_eq!(coincidence(&found), format!("{words}80 µs on CPU 0, 12 ms on CPU 1 (p99)"));
        found.is_backlog = true;
        assert!(coincidence(&found).starts_with("no result: the threads"), "{}", coincidence(&found));
        found.is_backlog = false;
        found.slow_beyond.beyond_ns = None;
        assert!(coincidence(&found).starts_with("no result"));
    }

    fn cpu(cpu: u16, deep: f64, rate: Option<(i64, i64)>) -> CpuActivity {
        let state = |name: &str, us, share| StateShare { name: name.into(), exit_latency_us: Some(us), share };
        CpuActivity {
            cpu,
            idle: Some(0.96),
            states: vec![state("POLL", 0, 0.001), state("C1", 2, 0.2), state("C6", 133, deep)],
            rate: rate.map(|(min_khz, max_khz)| ClockRates { min_khz, mean_khz: 1e6, max_khz }),
        }
    }

    #[test]
    fn idle_states_and_clock_rates_cover_all_cpus_or_are_reported_missing() {
        let activity = [cpu(0, 0.7, Some((600_000, 1_800_000))), cpu(1, 0.5, Some((700_000, 1_000_000)))];
        assert_eq!(states(&activity), "C1 20 % (exit up to 2 µs), C6 60 % (exit up to 133 µs)");
        assert_eq!(rates(&activity), "600 to 1,800 MHz, 1,000 on average");
        assert_eq!(rates(&[cpu(0, 0.7, Some((600_000, 600_000)))]), "600 MHz");
        let silent = [CpuActivity { states: Vec::new(), rate: None, ..cpu(0, 0.0, None) }];
        assert_eq!(states(&silent), "idle states: not reported by this host");
        assert_eq!(rates(&silent), "clock rate: not reported by this host");
    }
}
