//! A run of wake-ups on this host, without a path.

use std::sync::{Mutex, PoisonError};

use super::timer_threads::{TimerThread, measure_wakeups};
use crate::facts::WakeupFacts;
use crate::host::placement;
use crate::measure::manifest::{add_closing_facts, opening_manifest};
use crate::measure::run::{MeasuredRun, RunContext, RunEnd, on_own_thread};
use crate::measure::stop_signal::StopSignal;
use crate::measure::{MeasureError, Slice};
use crate::plan::{EndSpec, RunSpec};
use crate::recording::{Finished, RecordingWriter};

/// An open run of wake-ups.
pub(crate) struct WakeupRun {
    spec: RunSpec,
    writer: RecordingWriter,
    timers: Vec<TimerThread>,
    facts: Mutex<WakeupFacts>,
    /// Whether a slice was left out after the stop.
    missed_a_slice: bool,
}

/// The timer slack and niceness of a thread that is placed as `end`.
fn thread_facts(end: EndSpec) -> Result<WakeupFacts, MeasureError> {
    on_own_thread("rehearse", || {
        placement::place(&end)?;
        let (timer_slack_ns, niceness) = (placement::timer_slack(), Some(latlab_sys::sleep::niceness()));
        Ok(WakeupFacts { timer_slack_ns, niceness, ..WakeupFacts::default() })
    })
}

impl WakeupRun {
    fn run(&mut self, slice: &Slice, stop: &StopSignal) -> Result<(), MeasureError> {
        if stop.is_sleep_over() {
            self.missed_a_slice = true;
            return Ok(());
        }
        measure_wakeups(&mut self.timers, slice, stop, &self.facts)
    }
}

impl MeasuredRun for WakeupRun {
    fn open(spec: &RunSpec, context: &RunContext<'_>) -> Result<WakeupRun, MeasureError> {
        let mut manifest = opening_manifest(spec, context, None)?;
        // Before the first slice, so that a run that dies or is never measured has these facts.
        let facts = thread_facts(spec.here)?;
        manifest.run.wakeup = Some(facts.clone());
        let rings = spec.wakeup().map(TimerThread::rings).unwrap_or_default();
        let (writer, logs) = context.start_recording(manifest, &rings)?;
        let timers = spec.wakeup().map(|wakeup| TimerThread::on_each_cpu(wakeup, spec.here, logs)).unwrap_or_default();
        Ok(WakeupRun { spec: spec.clone(), writer, timers, facts: Mutex::new(facts), missed_a_slice: false })
    }

    fn writer(&mut self) -> &mut RecordingWriter {
        &mut self.writer
    }

    fn warm_up(&mut self, stop: &StopSignal) -> Result<(), MeasureError> {
        match Slice::warmup(&self.spec.warmup) {
            Some(slice) => self.run(&slice, stop),
            None => Ok(()),
        }
    }

    fn measure(&mut self, round: u32, rounds: u32, stop: &StopSignal) -> Result<(), MeasureError> {
        self.run(&Slice::measuring(&self.spec.stop, round, rounds), stop)
    }

    fn discard(self) {
        self.writer.discard(self.timers.into_iter().map(TimerThread::into_log));
    }

    fn close(self, end: &RunEnd<'_>) -> Result<Finished, MeasureError> {
        let WakeupRun { mut writer, timers, facts, missed_a_slice, .. } = self;
        let mut facts = facts.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A late wake-up ends the other runs of the plan as well.
        facts.cut_short = missed_a_slice && facts.broke.is_none() && end.stop.wakeup_was_late();
        facts.not_slept = timers.iter().map(TimerThread::not_slept).sum();
        let manifest = writer.manifest_mut();
        add_closing_facts(manifest, None);
        manifest.run.wakeup = Some(facts);
        let logs = timers.into_iter().map(TimerThread::into_log).collect();
        Ok(writer.finish_logs(logs, end.ending, end.reason.map(str::to_owned))?)
    }
}
