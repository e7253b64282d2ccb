//! Remedies for late wake-ups and slow round trips, each a single change of a run.

use super::kind::Kind;
use super::run::{EndSpec, RunSpec, WaitMode, Work};
use super::setting::{Setting, SettingSpec};
use super::wakeup::Via;

crate::worded! {
    /// A change that may reduce the latency of a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Remedy: words {
        /// Sleep until an absolute time, without the slack of select(2).
        ClockNanosleep = "--via clock_nanosleep",
        /// Set the timer slack to its minimum.
        TimerSlack = "--set timer-slack=1ns",
        /// Wait for datagrams in a loop, so that the CPU is never idle.
        Spin = "--wait spin",
        /// Run the threads under SCHED_FIFO.
        Fifo = "--fifo 80",
        /// Lock all memory, so that none of it is swapped out.
        Mlock = "--mlock",
        Governor = "--set governor=performance",
        /// Keep CPUs out of idle states with a long exit latency.
        CpuDmaLatency = "--set cpu-dma-latency=0",
        /// Let the interface of the path interrupt at each packet.
        Coalesce = "--set coalesce=rx-usecs:0,adaptive-rx:off",
        /// Let poll(2) poll the driver before it sleeps.
        BusyPoll = "--set busy-poll=50us",
    }
}

/// Above the interrupt threads of the kernel, which have priority 50.
const PRIORITY: u8 = 80;

impl Remedy {
    /// Every remedy for runs of `kind`, those without side effects first.
    pub const fn of(kind: Kind) -> &'static [Remedy] {
        use Remedy::{BusyPoll, ClockNanosleep, Coalesce, CpuDmaLatency, Fifo, Governor, Mlock, Spin, TimerSlack};
        match kind {
            Kind::Wakeup => &[ClockNanosleep, TimerSlack, Fifo, Governor, CpuDmaLatency],
            Kind::Ping => &[Spin, Fifo, Mlock, Governor, CpuDmaLatency, Coalesce, BusyPoll],
            Kind::Command | Kind::Stream | Kind::Values => &[],
        }
    }

    /// The codes of the findings of `latlab doctor` that it corrects in a run of probes.
    pub const fn findings(self) -> &'static [&'static str] {
        match self {
            Remedy::ClockNanosleep | Remedy::TimerSlack => &[],
            // An idle virtual CPU is stopped, and the hypervisor has to start it again.
            Remedy::Spin => &["idle-states", "virtualised"],
            Remedy::Fifo => &["load-average"],
            Remedy::Mlock => &["memory-short", "swap"],
            Remedy::Governor => &["governor"],
            Remedy::CpuDmaLatency => &["idle-states"],
            Remedy::Coalesce => &["coalescing"],
            Remedy::BusyPoll => &["busy-poll-off"],
        }
    }

    /// `run` with this change, at both ends if latlab starts both.
    ///
    /// # Errors
    /// The reason why it would change nothing, or the user's option that it would replace.
    pub fn applied(self, run: &RunSpec) -> Result<RunSpec, String> {
        let via = run.wakeup().map(|wakeup| wakeup.via);
        match (self, via) {
            (Remedy::ClockNanosleep, Some(Via::ClockNanosleep)) => Err("the threads sleep in it already".into()),
            (Remedy::ClockNanosleep, _) => {
                let mut with = run.clone();
                let Work::Wakeup(wakeup) = &mut with.work else { return Err("no thread sleeps".into()) };
                wakeup.via = Via::ClockNanosleep;
                Ok(with)
            }
            (Remedy::TimerSlack, _) if run.here.fifo.is_some() => Err("SCHED_FIFO has no timer slack".into()),
            (Remedy::TimerSlack, Some(via)) if !via.has_slack() => Err(format!("{} has no timer slack", via.word())),
            (Remedy::TimerSlack, _) => with_setting(run, Setting::TimerSlack(1)),
            (Remedy::Spin, _) if run.here.wait != WaitMode::Block => {
                Err(format!("`--wait {}` was asked for", run.here.wait.word()))
            }
            (Remedy::Spin, _) => Ok(with_ends(run, |end| end.wait = WaitMode::Spin)),
            (Remedy::Fifo, _) if run.here.fifo.is_some() => Err("the threads run under SCHED_FIFO already".into()),
            (Remedy::Fifo, _) => Ok(with_ends(run, |end| end.fifo = Some(PRIORITY))),
            (Remedy::Mlock, _) if run.here.mlock => Err("memory is locked already".into()),
            (Remedy::Mlock, _) => Ok(with_ends(run, |end| end.mlock = true)),
            (Remedy::Governor, _) => with_setting(run, Setting::Governor("performance".into())),
            (Remedy::CpuDmaLatency, _) => with_setting(run, Setting::CpuDmaLatency(0)),
            (Remedy::Coalesce, _) => {
                with_setting(run, Setting::Coalesce(vec![("rx-usecs".into(), 0), ("adaptive-rx".into(), 0)]))
            }
            (Remedy::BusyPoll, _) => with_setting(run, Setting::BusyPoll(50)),
        }
    }
}

fn with_ends(run: &RunSpec, change: impl Fn(&mut EndSpec)) -> RunSpec {
    let mut with = run.clone();
    change(&mut with.here);
    with.peer.iter_mut().for_each(change);
    with
}

/// A knob that the user set is not changed.
fn with_setting(run: &RunSpec, setting: Setting) -> Result<RunSpec, String> {
    let is_here = |set: &&SettingSpec| set.ends(run.target.is_this_host()).is_local();
    if let Some(set) = run.settings.iter().filter(is_here).find(|set| set.setting.knob() == setting.knob()) {
        return Err(format!("`--set {set}` was asked for"));
    }
    let mut with = run.clone();
    with.settings.push(SettingSpec { setting, interface: None, side: None });
    Ok(with)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{WakeupCpus, WakeupSpec};
    use crate::units::Nanos;

    fn run(via: Via) -> RunSpec {
        let interval_ns = Nanos::from_millis(1);
        let cpus = WakeupCpus::Anywhere;
        RunSpec::here(Work::Wakeup(WakeupSpec { via, interval_ns, relative: false, cpus, break_ns: None }))
    }

    #[test]
    fn a_remedy_changes_one_parameter_or_gives_a_reason() {
        let possible = |run: &RunSpec| {
            Remedy::of(Kind::Wakeup).iter().map(|remedy| remedy.applied(run).is_ok()).collect::<Vec<_>>()
        };
        assert_eq!(possible(&run(Via::Select)), [true; 5]);
        assert_eq!(possible(&run(Via::ClockNanosleep)), [false, true, true, true, true]);
        assert_eq!(possible(&run(Via::Timerfd)), [true, false, true, true, true]);
        let mut asked = run(Via::ClockNanosleep);
        asked.here.fifo = Some(10);
        asked = Remedy::CpuDmaLatency.applied(&asked).expect("not asked for yet");
        assert_eq!(possible(&asked), [false, false, false, true, false]);
        let slack = Remedy::TimerSlack.applied(&run(Via::Select)).expect("possible");
        assert_eq!(slack.settings.iter().map(ToString::to_string).collect::<Vec<_>>(), ["timer-slack=1ns"]);
        assert_eq!(RunSpec { settings: Vec::new(), ..slack }, run(Via::Select));
    }
}
