//! What the CPUs did on which threads slept, in words.

use crate::analysis::explain::{CpuActivity, StateShare};
use crate::units::human::{percent, significant, typed_cpus};

/// Idle states with a smaller share of the time do not affect the median and are not shown.
const MIN_STATE_SHARE: f64 = 0.01;

/// Formats the idle ratio, idle states and clock rates over all CPUs, and states which of them the host does not
/// provide.
pub(super) fn words(activity: &[CpuActivity]) -> Option<String> {
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
    use crate::analysis::ClockRates;

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
