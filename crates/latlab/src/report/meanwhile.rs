//! What CPUs did while threads slept on them, in one line.

use crate::analysis::{CpuMeanwhile, StateShare, Summary};
use crate::units::human::{percent, significant, typed_cpus};

/// States in which the CPUs were for less than this share of the time explain no median.
const WORTH_TELLING: f64 = 0.01;

/// How much the CPUs were idle, in which states, and how fast they ran: over all of them; what this host does not tell
/// is said to be so.
pub(super) fn line(summary: &Summary) -> Option<String> {
    let told = &summary.wakeups.as_ref()?.meanwhile;
    if told.is_empty() {
        return None;
    }
    let cpus: Vec<u16> = told.iter().map(|one| one.cpu).collect();
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let idle = mean(told.iter().filter_map(|one| one.idle)).map(|share| format!(" idle {}", percent(share)));
    let head = format!("{noun} {}{}", typed_cpus(&cpus), idle.unwrap_or_default());
    Some([head, states(told), rates(told)].join(" · "))
}

fn states(told: &[CpuMeanwhile]) -> String {
    let known = |one: &&CpuMeanwhile| !one.states.is_empty();
    let Some(first) = told.iter().find(known) else { return "idle states: not told by this host".into() };
    // CPUs of one host have the same states; a hybrid one has others, which go by their own names.
    let mut shares: Vec<(&StateShare, f64)> = Vec::new();
    for state in told.iter().flat_map(|one| &one.states) {
        match shares.iter_mut().find(|(seen, _)| seen.name == state.name) {
            Some((_, sum)) => *sum += state.share,
            None => shares.push((state, state.share)),
        }
    }
    let count = told.iter().filter(known).count() as f64;
    let words = shares.iter().map(|(state, sum)| (state, sum / count)).filter(|(_, share)| *share >= WORTH_TELLING);
    let words: Vec<String> =
        words.map(|(state, share)| format!("{} {}{}", state.name, percent(share), exit(state))).collect();
    match words.is_empty() {
        true => format!("in none of {} idle states for 1 % of the time", first.states.len()),
        false => words.join(", "),
    }
}

fn exit(state: &StateShare) -> String {
    let longest = state.exit_latency_us.filter(|us| *us > 0);
    longest.map(|us| format!(" (up to {us} µs to leave)")).unwrap_or_default()
}

fn rates(told: &[CpuMeanwhile]) -> String {
    let seen = || told.iter().filter_map(|one| one.rate);
    let ends = (seen().map(|rate| rate.min_khz).min(), seen().map(|rate| rate.max_khz).max());
    let (Some(low), Some(high)) = ends else { return "clock rate: not told by this host".into() };
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
    use crate::analysis::RatesSeen;

    fn cpu(cpu: u16, deep: f64, rate: Option<(i64, i64)>) -> CpuMeanwhile {
        let state = |name: &str, us, share| StateShare { name: name.into(), exit_latency_us: Some(us), share };
        CpuMeanwhile {
            cpu,
            idle: Some(0.96),
            states: vec![state("POLL", 0, 0.001), state("C1", 2, 0.2), state("C6", 133, deep)],
            rate: rate.map(|(min_khz, max_khz)| RatesSeen { min_khz, mean_khz: 1e6, max_khz }),
        }
    }

    #[test]
    fn states_and_rates_are_told_over_all_cpus_and_never_invented() {
        let told = [cpu(0, 0.7, Some((600_000, 1_800_000))), cpu(1, 0.5, Some((700_000, 1_000_000)))];
        assert_eq!(states(&told), "C1 20 % (up to 2 µs to leave), C6 60 % (up to 133 µs to leave)");
        assert_eq!(rates(&told), "600 to 1,800 MHz, 1,000 on average");
        assert_eq!(rates(&[cpu(0, 0.7, Some((600_000, 600_000)))]), "600 MHz");
        let silent = [CpuMeanwhile { states: Vec::new(), rate: None, ..cpu(0, 0.0, None) }];
        assert_eq!(states(&silent), "idle states: not told by this host");
        assert_eq!(rates(&silent), "clock rate: not told by this host");
    }
}
