//! A sleeping thread allocates nothing in any way of sleeping.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use latlab::clock::{Clock, Monotonic};
use latlab::measure::wakeup::{
    ClockNanosleep, EpollSleep, FutexSleep, Nanosleep, PollSleep, SelectSleep, SignalSleep, Sleeper, SleepingThread,
    SpinWait, Timerfd, run_slice,
};
use latlab::measure::{CpuSource, Slice};
use latlab::plan::{RunSpec, Via, WakeupCpus, WakeupSpec, Work};
use latlab::probe::Phase;
use latlab::recording::manifest::{Manifest, RunEnding};
use latlab::recording::{RecordingWriter, Store};
use latlab::units::Nanos;

use crate::calls_of;

/// Calls to the allocator in 200 slots of `sleeper`.
fn calls(via: Via, relative: bool, sleeper: &mut impl Sleeper) -> u64 {
    let spec =
        WakeupSpec { via, interval_ns: Nanos::from_micros(50), relative, cpus: WakeupCpus::Anywhere, break_ns: None };
    let store = Store::temporary().expect("store");
    let run = RunSpec::here(Work::Wakeup(spec.clone()));
    let manifest = Manifest::new(run, "00000000000a110c".into(), "2026-11-22T00:00:00Z".into());
    let mut writer = RecordingWriter::create(&store, None, manifest).expect("created");
    let mut logs = writer.start_logs(Arc::new(AtomicBool::new(false)), &[256]).expect("started");
    let mut thread = SleepingThread::new(&spec, CpuSource::Running, logs.remove(0));
    let slice = Slice { phase: Phase::Measure, count: 200, duration: Nanos::from_secs(20) };
    let never = AtomicBool::new(false);
    let calls = calls_of(|| {
        let start = Monotonic.now();
        let slept = run_slice(sleeper, &Monotonic, &mut thread, &slice, start, &never);
        slept.expect("it sleeps");
    });
    let finished = writer.finish(thread.into_log(), RunEnding::Completed, None).expect("finished");
    assert_eq!(finished.manifest.rows, Some(200), "{via:?}");
    calls
}

#[test]
fn no_way_of_sleeping_allocates() {
    for relative in [false, true] {
        let found = [
            calls(Via::ClockNanosleep, relative, &mut ClockNanosleep),
            calls(Via::Nanosleep, relative, &mut Nanosleep),
            calls(Via::Select, relative, &mut SelectSleep),
            calls(Via::Poll, relative, &mut PollSleep),
            calls(Via::Epoll, relative, &mut EpollSleep::new().expect("made")),
            calls(Via::Timerfd, relative, &mut Timerfd::new().expect("made")),
            calls(Via::Futex, relative, &mut FutexSleep),
            calls(Via::Signal, relative, &mut SignalSleep::new().expect("made")),
            calls(Via::Spin, relative, &mut SpinWait(&AtomicBool::new(false))),
        ];
        assert_eq!(found, [0; 9]);
    }
}
