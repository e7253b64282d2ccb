//! A run of a command on this host.

use std::sync::atomic::Ordering;

use latlab_sys::spawn::own_resident_kib;

use super::executor::Executor;
use crate::clock::{Clock, Monotonic};
use crate::facts::PrintedNumber;
use crate::measure::manifest::{add_closing_facts, opening_manifest};
use crate::measure::run::{MeasuredRun, RunContext, RunEnd};
use crate::measure::stop_signal::StopSignal;
use crate::measure::{MeasureError, Slice};
use crate::plan::{CommandSpec, RunSpec, defaults};
use crate::probe::{Fate, Seq};
use crate::recording::{EventLog, Finished, RecordingWriter, SpoolEvent};

/// An open run of a command.
pub(crate) struct CommandRun {
    spec: RunSpec,
    executor: Executor,
    writer: RecordingWriter,
    log: EventLog,
    next: Seq,
}

/// The command of `spec`, which is a run of one.
fn command(spec: &RunSpec) -> &CommandSpec {
    spec.command().expect("a run of a command")
}

impl CommandRun {
    /// Executes the command until the slice ends, at least once. The first failure ends the run, unless failures are ignored.
    fn run(&mut self, slice: &Slice, stop: &StopSignal) -> Result<(), MeasureError> {
        let _registered = stop.register();
        let (end, goes_on) = (slice.end(Monotonic.now()), command(&self.spec).ignore_failure);
        for taken in 0..slice.count {
            let is_over = stop.is_sleep_over() || stop.requested().load(Ordering::Relaxed);
            if is_over || (taken > 0 && Monotonic.now() >= end) {
                break;
            }
            let Some(execution) = self.executor.execute(self.next, slice.phase, stop)? else { break };
            self.log.push(SpoolEvent::Executed(execution));
            self.next.0 += 1;
            let looks_for_numbers = self.executor.looks_for_numbers();
            match execution.fate.as_probe(execution.code, goes_on) {
                Fate::Answered if looks_for_numbers => self.record_numbers(execution.seq)?,
                Fate::Answered => {}
                // Numbers that a failed execution did not print cannot count as infinite.
                _ if looks_for_numbers || !goes_on => return Err(self.executor.failure(&execution).into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Records the numbers that the execution `seq` printed. To print none of a metric is a failure.
    fn record_numbers(&mut self, seq: Seq) -> Result<(), MeasureError> {
        for (metric, numbers) in (0..).zip(self.executor.numbers()?) {
            for number in numbers {
                self.log.wait_for_room();
                self.log.push(SpoolEvent::Printed(PrintedNumber { seq, metric, bits: number.to_bits() }));
            }
        }
        Ok(())
    }
}

impl MeasuredRun for CommandRun {
    fn open(spec: &RunSpec, context: &RunContext<'_>) -> Result<CommandRun, MeasureError> {
        let executor = Executor::new(command(spec), spec.here.fifo)?;
        let manifest = opening_manifest(spec, context, None)?;
        let (writer, mut logs) = context.start_recording(manifest, &[defaults::WAKEUP_RING_EVENTS_MIN])?;
        Ok(CommandRun { spec: spec.clone(), executor, writer, log: logs.swap_remove(0), next: Seq(0) })
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
        self.writer.discard(Some(self.log));
    }

    fn close(self, end: &RunEnd<'_>) -> Result<Finished, MeasureError> {
        let CommandRun { mut writer, log, .. } = self;
        let manifest = writer.manifest_mut();
        add_closing_facts(manifest, None);
        manifest.run.own_resident_bytes = own_resident_kib().ok().map(|kib| kib << 10);
        Ok(writer.finish(log, end.ending, end.reason.map(str::to_owned))?)
    }
}
