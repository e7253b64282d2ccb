//! Caveats of loads that were not achieved as requested.

use crate::diagnostics::{Caveat, Severity};
use crate::facts::LoadReport;
use crate::facts::load::{CPUS, SHARE};
use crate::units::Nanos;
use crate::units::human;

/// Tolerance of a CPU load, in shares of a CPU.
const POINT: f64 = 0.01;
/// Tolerance of every other load, relative to it: memory is copied and packets are sent in bursts.
const RELATIVE: f64 = 0.05;
/// Windows of this length keep to the tolerance.
const LONG: Nanos = Nanos::from_secs(5);
/// A shorter measurement has too few bursts to judge a load.
const SHORTEST: Nanos = Nanos::from_secs(1);

/// A caveat for each load that was not achieved, or whose rate is unknown.
pub fn unreached_loads(loads: &[LoadReport]) -> Vec<Caveat> {
    loads.iter().filter_map(unreached).collect()
}

fn unreached(load: &LoadReport) -> Option<Caveat> {
    if let Some(lost) = lost(load) {
        return Some(lost);
    }
    let (offered, measured) = load.offered.zip(load.measured_ns)?;
    // Heaters may be more than the CPUs: the CPU time that they get is not promised.
    if load.unit == CPUS || measured < SHORTEST {
        return None;
    }
    let [least, most] = load.five_seconds.or(load.achieved.map(|mean| [mean, mean]))?;
    let tolerance = tolerance(load, offered, measured.min(LONG));
    let missed = least < offered - tolerance || most > offered + tolerance;
    missed.then(|| {
        let reached = human::load_figure(&load.unit, load.achieved.unwrap_or(least));
        let range = format!("{} to {}", human::load_figure(&load.unit, least), human::load_figure(&load.unit, most));
        let range = load.five_seconds.map(|_| format!(", {range} over 5 s")).unwrap_or_default();
        Caveat::new(
            Severity::Warning,
            "load-unreached",
            format!("the load `{}` at `{}` reached {reached}{range}", load.load, load.at),
            "the figures belong to a different load than the requested one",
            hint(load, offered),
        )
    })
}

/// The allowed deviation of a load: its tolerance, and the effect of a burst cut by the end of the window (at most
/// P·(1 − P) of a period).
fn tolerance(load: &LoadReport, offered: f64, window: Nanos) -> f64 {
    if load.unit != SHARE {
        return RELATIVE * offered;
    }
    let period = load.period_ns.unwrap_or_default();
    POINT + offered * (1.0 - offered) * period.0 as f64 / window.0 as f64
}

fn hint(load: &LoadReport, offered: f64) -> String {
    match load.kind.as_str() {
        "cpu" => {
            let share = human::percent(offered);
            format!("other threads use the same CPUs: leave {share} of each free, or choose other CPUs with `:cpus=`")
        }
        "mem" => "a smaller load, or fewer other processes that use memory and CPUs".into(),
        _ => "a smaller load, or less other traffic on the path".into(),
    }
}

/// A load that ended before the run. Without any figures it did too: recordings from before `ended_early` report it
/// this way. A network load that both ends counted, but for less than a window, was only too short.
fn lost(load: &LoadReport) -> Option<Caveat> {
    let unknown = load.measured_ns.is_none() && load.stream.is_none();
    let reason = load.ended_early.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    (load.ended_early.is_some() || unknown).then(|| {
        Caveat::new(
            Severity::Warning,
            "load-unreached",
            format!("the load `{}` at `{}` ended before the run did{reason}", load.load, load.at),
            "an unknown part of the figures was measured without this load",
            "remove the cause and measure again; if its process was killed, the kernel log (`dmesg`) may show why",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::StreamReport;
    use crate::facts::load::BYTES_PER_SECOND;

    fn cpu(offered: f64, achieved: f64, five_seconds: Option<[f64; 2]>) -> LoadReport {
        LoadReport {
            load: "cpu=80%".into(),
            kind: "cpu".into(),
            at: "local".into(),
            unit: SHARE.into(),
            offered: Some(offered),
            achieved: Some(achieved),
            min: Some(0.5),
            max: Some(1.0),
            five_seconds,
            measured_ns: Some(Nanos::from_secs(10)),
            period_ns: Some(Nanos::from_micros(16_180)),
            cpus: vec![0, 1],
            ended_early: None,
            stream: None,
        }
    }

    fn memory(achieved: f64) -> LoadReport {
        LoadReport { kind: "mem".into(), unit: BYTES_PER_SECOND.into(), ..cpu(2e9, achieved, None) }
    }

    #[test]
    fn a_load_is_judged_over_five_seconds_if_it_lasted_as_long() {
        let slow = LoadReport { period_ns: Some(Nanos::from_secs(1)), ..cpu(0.5, 0.5, Some([0.46, 0.54])) };
        let heaters = LoadReport { unit: CPUS.into(), kind: "heaters".into(), ..cpu(30.0, 1.9, Some([1.8, 2.0])) };
        let short = LoadReport { measured_ns: Some(Nanos::from_millis(900)), ..cpu(0.8, 0.7, None) };
        for (load, caveat) in [
            (cpu(0.8, 0.8, Some([0.791, 0.809])), false),
            (cpu(0.8, 0.8, Some([0.785, 0.805])), true),
            (cpu(0.8, 0.8, Some([0.795, 0.815])), true),
            (cpu(0.8, 0.809, None), false),
            (cpu(0.8, 0.62, None), true),
            (slow, false),
            (heaters, false),
            (short, false),
            (memory(1.95e9), false),
            (memory(1.85e9), true),
        ] {
            assert_eq!(unreached_loads(std::slice::from_ref(&load)).len(), usize::from(caveat), "{load:?}");
        }
    }

    #[test]
    fn the_caveat_has_the_achieved_rate() {
        let [caveat] = &unreached_loads(&[cpu(0.8, 0.623, Some([0.601, 0.641]))])[..] else { panic!("not reached") };
        assert_eq!(caveat.message, "the load `cpu=80%` at `local` reached 62.3 %, 60.1 % to 64.1 % over 5 s");
        assert_eq!((caveat.code.as_str(), caveat.severity), ("load-unreached", Severity::Warning));
        let [caveat] = &unreached_loads(&[memory(1.5e9)])[..] else { panic!("not reached") };
        assert!(caveat.message.ends_with("reached 1.50 GB/s"), "{}", caveat.message);
    }

    #[test]
    fn a_load_that_died_has_a_caveat() {
        let silent = LoadReport { achieved: None, five_seconds: None, measured_ns: None, ..cpu(0.8, 0.8, None) };
        let endless = LoadReport { kind: "net".into(), offered: None, load: "net=max".into(), ..silent.clone() };
        let killed = "its process ended: killed by SIGKILL";
        for (dead, reason) in [
            (silent.clone(), ""),
            (endless.clone(), ""),
            (silent.that_ended_early(killed), ": its process ended: killed by SIGKILL"),
            (endless.that_ended_early(killed), ": its process ended: killed by SIGKILL"),
        ] {
            let [caveat] = &unreached_loads(std::slice::from_ref(&dead))[..] else { panic!("nothing of {dead:?}") };
            let expected = format!("the load `{}` at `local` ended before the run did{reason}", dead.load);
            assert_eq!((caveat.code.as_str(), &caveat.message), ("load-unreached", &expected));
        }
    }

    #[test]
    fn a_network_load_that_was_too_short_to_judge_has_no_caveat() {
        let stream = StreamReport {
            size_bytes: 1_400,
            wire: false,
            offered_bps: Some(1e6),
            searched_bps: None,
            search_trials: 0,
            sent: None,
            delivered: None,
            windows: 0,
            measured_ns: None,
            sent_packets: 3,
            skipped_packets: 0,
            refused_packets: 0,
            delivered_packets: 3,
            lost_packets: 0,
            reordered_packets: 0,
            duplicate_packets: 0,
            socket_drops: Some(0),
        };
        let endless = StreamReport { offered_bps: None, ..stream.clone() };
        for short in
            [stream.as_load("net=1Mbit/s".into(), "local".into()), endless.as_load("net=max".into(), "peer".into())]
        {
            assert_eq!(unreached_loads(std::slice::from_ref(&short)), [], "{short:?}");
        }
    }
}
