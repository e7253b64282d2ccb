//! Remedies for late wake-ups, each a single change of a run.

use super::run::{RunSpec, Work};
use super::setting::{Setting, SettingSpec};
use super::wakeup::Via;

/// A change that may make wake-ups earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Sleep until an absolute time, without the slack of select(2).
    ClockNanosleep,
    /// Set the timer slack to its minimum.
    TimerSlack,
    /// Run the threads under SCHED_FIFO.
    Fifo,
    Governor,
    /// Keep CPUs out of idle states with a long exit latency.
    CpuDmaLatency,
}

/// Above the interrupt threads of the kernel, which have priority 50.
const PRIORITY: u8 = 80;

impl Remedy {
    /// Every remedy, the one without side effects first.
    pub const ALL: [Remedy; 5] =
        [Remedy::ClockNanosleep, Remedy::TimerSlack, Remedy::Fifo, Remedy::Governor, Remedy::CpuDmaLatency];

    pub const fn words(self) -> &'static str {
        match self {
            Remedy::ClockNanosleep => "--via clock_nanosleep",
            Remedy::TimerSlack => "--set timer-slack=1ns",
            Remedy::Fifo => "--fifo 80",
            Remedy::Governor => "--set governor=performance",
            Remedy::CpuDmaLatency => "--set cpu-dma-latency=0",
        }
    }

    /// `run` with this change.
    ///
    /// # Errors
    /// The reason why it would change nothing, or the user's setting that it would replace.
    pub fn applied(self, run: &RunSpec) -> Result<RunSpec, String> {
        let mut with = run.clone();
        let Work::Wakeup(wakeup) = &mut with.work else { return Err("no thread sleeps".into()) };
        match self {
            Remedy::ClockNanosleep if wakeup.via == Via::ClockNanosleep => {
                return Err("the threads sleep in it already".into());
            }
            Remedy::ClockNanosleep => wakeup.via = Via::ClockNanosleep,
            Remedy::TimerSlack if run.here.fifo.is_some() => return Err("SCHED_FIFO has no timer slack".into()),
            Remedy::TimerSlack if !wakeup.via.has_slack() => {
                return Err(format!("{} has no timer slack", wakeup.via.word()));
            }
            Remedy::TimerSlack => return with_setting(with, Setting::TimerSlack(1)),
            Remedy::Fifo if run.here.fifo.is_some() => return Err("the threads run under SCHED_FIFO already".into()),
            Remedy::Fifo => with.here.fifo = Some(PRIORITY),
            Remedy::Governor => return with_setting(with, Setting::Governor("performance".into())),
            Remedy::CpuDmaLatency => return with_setting(with, Setting::CpuDmaLatency(0)),
        }
        Ok(with)
    }
}

/// A knob that the user set is not changed.
fn with_setting(mut run: RunSpec, setting: Setting) -> Result<RunSpec, String> {
    if let Some(set) = run.settings.iter().find(|set| set.setting.knob() == setting.knob()) {
        return Err(format!("`--set {set}` was asked for"));
    }
    run.settings.push(SettingSpec { setting, interface: None, side: None });
    Ok(run)
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
        let possible = |run: &RunSpec| Remedy::ALL.map(|remedy| remedy.applied(run).is_ok());
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
