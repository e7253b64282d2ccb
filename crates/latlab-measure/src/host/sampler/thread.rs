//! The sampling thread, which avoids the measuring CPUs and takes at most a small share of one CPU.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use latlab_sys::cpu_time;

use super::observer::Observer;
use crate::clock::{Clock, Monotonic};
use crate::facts::HostSample;
use crate::host::placement;
use crate::host::root::HostRoot;
use crate::plan::defaults;
use crate::units::{Nanos, SenderClock, Stamp};

/// Receives samples on the sampling thread.
pub(crate) trait SampleSink: Send + 'static {
    fn take(&mut self, sample: HostSample);
}

/// Keeps all samples in memory: a few KiB per second.
impl SampleSink for Vec<HostSample> {
    fn take(&mut self, sample: HostSample) {
        self.push(sample);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplerSpec {
    /// The time between samples; longer after a sample that costs more than its share, see `Sampler`.
    pub period: Nanos,
    /// CPUs that measure: the sampling thread leaves them if it has others.
    pub avoid_cpus: Vec<u16>,
    /// Processes that latlab started for the measurement: their CPU time counts as its own.
    pub own_processes: Vec<u32>,
}

impl SamplerSpec {
    /// The default for a host with `cpus` CPUs: a longer period if it has none to spare.
    pub fn for_cpus(cpus: usize) -> SamplerSpec {
        let period = if cpus > 2 { defaults::SAMPLE_PERIOD } else { defaults::SAMPLE_PERIOD_NO_CPU_TO_SPARE };
        SamplerSpec { period, avoid_cpus: Vec::new(), own_processes: Vec::new() }
    }
}

/// A thread that samples. It takes a sample when it starts, one per period, and one when it is stopped. After a costly
/// sample it pauses so long that the sample used no more than [`defaults::SAMPLER_SHARE`] of one CPU.
#[derive(Debug)]
pub(crate) struct Sampler<S> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<S>>,
}

impl<S: SampleSink> Sampler<S> {
    /// Starts to sample the host under `root` into `sink`. Network counters are those of the caller's namespace.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(root: HostRoot, spec: SamplerSpec, sink: S) -> io::Result<Sampler<S>> {
        let stop = Arc::new(AtomicBool::new(false));
        let stop_thread = Arc::clone(&stop);
        let work = move || {
            placement::keep_off(&spec.avoid_cpus);
            let observer = Observer::new(&root, &spec.avoid_cpus, &spec.own_processes);
            sample_until(&stop_thread, spec.period, observer, sink)
        };
        let thread = thread::Builder::new().name("latlab-host".into()).spawn(work)?;
        Ok(Sampler { stop, thread: Some(thread) })
    }

    /// Takes a last sample, ends the thread and returns the sink.
    pub(crate) fn stop(mut self) -> S {
        self.signal_stop();
        let thread = self.thread.take().expect("taken here and by drop only");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<S> Sampler<S> {
    fn signal_stop(&self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl<S> Drop for Sampler<S> {
    fn drop(&mut self) {
        self.signal_stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn sample_until<S: SampleSink>(stop: &AtomicBool, period: Nanos, mut observer: Observer, mut sink: S) -> S {
    let mut due = Monotonic.now();
    let mut used_ns = cpu_time::of_this_thread().unwrap_or(0);
    loop {
        // Read before the sample, so that the last one is taken after the stop.
        let over = stop.load(Ordering::Acquire);
        sink.take(observer.sample());
        if over {
            return sink;
        }
        let now_used_ns = cpu_time::of_this_thread().unwrap_or(used_ns);
        due = next_due(due, Monotonic.now(), period, Nanos(now_used_ns - used_ns));
        used_ns = now_used_ns;
        while Monotonic.now() < due && !stop.load(Ordering::Acquire) {
            thread::park_timeout((due - Monotonic.now()).to_duration());
        }
    }
}

/// When the next sample is due after one that was due at `due`, ended `now` and used `cost` of a CPU. Missed ones are
/// skipped.
fn next_due(due: Stamp<SenderClock>, now: Stamp<SenderClock>, period: Nanos, cost: Nanos) -> Stamp<SenderClock> {
    let affordable = Nanos((cost.0 as f64 / defaults::SAMPLER_SHARE) as i64);
    let next = due + period.max(affordable);
    if next > now { next } else { now + period.max(affordable) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn a_costly_sample_delays_the_next() {
        let at = Stamp::from_nanos;
        let millis = Nanos::from_millis;
        for (due, now, cost, expected) in [
            (at(0), at(90_000), Nanos(80_000), at(0) + millis(100)),
            // 2 ms are 0.5 % of 400 ms.
            (at(0), at(2_100_000), millis(2), at(0) + millis(400)),
            // Delayed by more than a period: missed samples are skipped.
            (at(0), at(350_000_000), Nanos(80_000), at(350_000_000) + millis(100)),
        ] {
            assert_eq!(next_due(due, now, millis(100), cost), expected);
        }
    }

    #[test]
    fn cpu_time_of_what_an_own_process_starts_counts_as_own() {
        let started = std::process::Command::new("sh")
            .args(["-c", "sh -c 'while :; do :; done' & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn();
        let mut child = started.expect("a shell");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
        let grandchild = rustix::process::Pid::from_raw(line.trim().parse().expect("a number")).expect("a process");
        let mut observer = Observer::new(&FakeHost::new().root, &[], &[child.id()]);
        let own_ns = |observer: &mut Observer| observer.sample().host.own_ns.expect("a clock");
        let first = own_ns(&mut observer);
        let deadline = Monotonic.now() + Nanos::from_secs(60);
        while own_ns(&mut observer) < first + 50_000_000 && Monotonic.now() < deadline {
            thread::sleep(std::time::Duration::from_millis(2));
        }
        let living = own_ns(&mut observer);
        rustix::process::kill_process(grandchild, rustix::process::Signal::KILL).expect("killed");
        child.wait().expect("ended");
        assert!(living >= first + 50_000_000, "{first} {living}");
    }

    #[test]
    fn cpu_time_of_own_processes_counts_as_own() {
        let child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let mut observer = Observer::new(&FakeHost::new().root, &[], &[child.id()]);
        let mut child = child;
        let first = observer.sample().host.own_ns.expect("a clock");
        let deadline = Monotonic.now() + Nanos::from_secs(60);
        while observer.sample().host.own_ns.expect("a clock") < first + 5_000_000 && Monotonic.now() < deadline {
            thread::sleep(std::time::Duration::from_millis(2));
        }
        let living = observer.sample().host.own_ns.expect("a clock");
        child.kill().expect("killed");
        child.wait().expect("ended");
        let ended = observer.sample().host.own_ns.expect("a clock");
        assert!(living >= first + 5_000_000, "{first} {living}");
        // Counted with a resolution of 1 µs once it has ended.
        assert!(ended >= living - 2_000, "{living} {ended}");
    }
}
