//! Looks at a host again and again while something is measured on it, off the measuring CPUs and on a budget.
//!
//! Callable at either end of a path: nothing here knows of a run. Why so, and what it costs:
//! docs/design/0010-host-samples.md.

mod preopened;
mod processors;
mod surroundings;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use latlab_sys::cpu_time;

use super::placement;
use super::root::HostRoot;
use crate::clock::{Clock, Monotonic};
use crate::facts::{HostReadings, HostSample};
use crate::plan::defaults;
use crate::units::{Nanos, SenderClock, Stamp};
use processors::Processors;
use surroundings::EnvironmentReader;

/// Where samples go. Called on the sampling thread.
pub trait SampleSink: Send + 'static {
    /// Takes the next sample.
    fn take(&mut self, sample: HostSample);
}

/// All of them in memory: a few KiB a second.
impl SampleSink for Vec<HostSample> {
    fn take(&mut self, sample: HostSample) {
        self.push(sample);
    }
}

/// How to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplerSpec {
    /// From one sample to the next; longer where a sample costs more than its share, see [`Sampler`].
    pub period: Nanos,
    /// CPUs that measure: the sampling thread leaves them alone where it can.
    pub avoid_cpus: Vec<u16>,
    /// Processes made for the measurement, whose CPU time is ours as well.
    pub own_processes: Vec<u32>,
}

impl SamplerSpec {
    /// How a host with so many CPUs is sampled: seldom where none can be spared.
    pub fn for_cpus(cpus: usize) -> SamplerSpec {
        let period = if cpus > 2 { defaults::SAMPLE_PERIOD } else { defaults::SAMPLE_PERIOD_NO_CPU_TO_SPARE };
        SamplerSpec { period, avoid_cpus: Vec::new(), own_processes: Vec::new() }
    }
}

/// A thread that samples. It takes a sample when it starts, one at each period, and one when it is stopped. After a
/// costly sample it pauses until that was no more than [`defaults::SAMPLER_SHARE`] of one CPU.
#[derive(Debug)]
pub struct Sampler<S> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<S>>,
}

impl<S: SampleSink> Sampler<S> {
    /// Starts to sample the host under `root` into `sink`. Network counters are those of the caller's namespace.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(root: HostRoot, spec: SamplerSpec, sink: S) -> io::Result<Sampler<S>> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || {
            placement::keep_off(&spec.avoid_cpus);
            let observer = Observer::new(&root, &spec);
            sample_until(&told, spec.period, observer, sink)
        };
        let thread = thread::Builder::new().name("latlab-host".into()).spawn(work)?;
        Ok(Sampler { stop, thread: Some(thread) })
    }

    /// Takes a last sample, ends the thread and gives the sink back.
    pub fn stop(mut self) -> S {
        self.tell();
        let thread = self.thread.take().expect("taken here and by drop only");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<S> Sampler<S> {
    fn tell(&self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl<S> Drop for Sampler<S> {
    fn drop(&mut self) {
        self.tell();
        if let Some(thread) = self.thread.take() {
            // Its sink goes with it; nobody asked for it.
            drop(thread.join());
        }
    }
}

fn sample_until<S: SampleSink>(stop: &AtomicBool, period: Nanos, mut observer: Observer, mut sink: S) -> S {
    let mut due = Monotonic.now();
    let mut used_ns = cpu_time::of_this_thread().unwrap_or(0);
    loop {
        // Asked before the sample: the last one is taken after the end.
        let over = stop.load(Ordering::Acquire);
        sink.take(observer.look());
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
/// not made up for.
fn next_due(due: Stamp<SenderClock>, now: Stamp<SenderClock>, period: Nanos, cost: Nanos) -> Stamp<SenderClock> {
    let affordable = Nanos((cost.0 as f64 / defaults::SAMPLER_SHARE) as i64);
    let next = due + period.max(affordable);
    if next > now { next } else { now + period.max(affordable) }
}

/// Everything that is read, open. One look costs some tens of microseconds.
#[derive(Debug)]
pub struct Observer {
    processors: Processors,
    surroundings: EnvironmentReader,
    own_processes: Vec<u32>,
    seq: u64,
}

impl Observer {
    /// Opens what the host under `root` has.
    pub fn new(root: &HostRoot, spec: &SamplerSpec) -> Observer {
        Observer {
            processors: Processors::open(root, &spec.avoid_cpus),
            surroundings: EnvironmentReader::open(root),
            own_processes: spec.own_processes.clone(),
            seq: 0,
        }
    }

    /// The host now.
    pub fn look(&mut self) -> HostSample {
        let start_ns = Monotonic.now().as_nanos();
        let mut host = HostReadings::default();
        let cpus = self.processors.read(&mut host);
        self.surroundings.read(&mut host);
        host.own_ns = self.own_ns();
        host.sampler_ns = cpu_time::of_this_thread().ok();
        let sampler_cpu = u16::try_from(rustix::thread::sched_getcpu()).ok();
        let seq = self.seq;
        self.seq += 1;
        HostSample { seq, start_ns, end_ns: Monotonic.now().as_nanos(), sampler_cpu, host, cpus }
    }

    /// This process, its living children that were named, and those that have ended: a process counts among the
    /// last from the moment it is waited for, and among the others until then.
    fn own_ns(&self) -> Option<i64> {
        let living = self.own_processes.iter().filter_map(|pid| cpu_time::of_process(*pid).ok());
        Some(cpu_time::of_this_process().ok()? + living.sum::<i64>() + cpu_time::of_ended_children().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    fn every(period: Nanos) -> SamplerSpec {
        SamplerSpec { period, ..SamplerSpec::for_cpus(1) }
    }

    #[test]
    fn a_host_without_a_cpu_to_spare_is_sampled_seldom() {
        for (cpus, per_second) in [(1, 2), (2, 2), (3, 10), (64, 10)] {
            assert_eq!(SamplerSpec::for_cpus(cpus).period, Nanos::from_millis(1_000 / per_second), "{cpus} CPUs");
        }
    }

    #[test]
    fn a_costly_sample_is_paid_off_before_the_next() {
        let at = Stamp::from_nanos;
        let millis = Nanos::from_millis;
        for (due, now, cost, expected) in [
            (at(0), at(90_000), Nanos(80_000), at(0) + millis(100)),
            // 2 ms are 0.5 % of 400 ms.
            (at(0), at(2_100_000), millis(2), at(0) + millis(400)),
            // Held up for longer than a period: the missed ones are gone.
            (at(0), at(350_000_000), Nanos(80_000), at(350_000_000) + millis(100)),
        ] {
            assert_eq!(next_due(due, now, millis(100), cost), expected);
        }
    }

    #[test]
    fn the_first_and_the_last_sample_frame_what_lies_between() {
        let before = Monotonic.now().as_nanos();
        let sampler = Sampler::start(HostRoot::live(), every(Nanos::from_secs(3_600)), Vec::new()).expect("a thread");
        let samples = sampler.stop();
        let after = Monotonic.now().as_nanos();
        // Stopped before it began it takes one only.
        assert!((1..=2).contains(&samples.len()), "{}", samples.len());
        for (seq, sample) in samples.iter().enumerate() {
            assert_eq!(sample.seq, seq as u64);
            assert!(before <= sample.start_ns && sample.start_ns <= sample.end_ns && sample.end_ns <= after);
            assert!(sample.sampler_cpu.is_some() && !sample.cpus.is_empty());
            assert!(sample.cpus.iter().all(|(_, cpu)| cpu.busy_ns.is_some() && cpu.steal_ns.is_some()));
            assert!(sample.host.own_ns >= sample.host.sampler_ns && sample.host.context_switches > Some(0));
        }
    }

    #[test]
    fn samples_keep_coming() {
        struct Several(std::sync::mpsc::Sender<HostSample>);
        impl SampleSink for Several {
            fn take(&mut self, sample: HostSample) {
                // The test may have seen enough.
                _ = self.0.send(sample);
            }
        }
        let (sink, samples) = std::sync::mpsc::channel();
        let sampler = Sampler::start(HostRoot::live(), every(Nanos::from_millis(1)), Several(sink)).expect("a thread");
        let seen: Vec<HostSample> = samples.iter().take(4).collect();
        assert_eq!(seen.iter().map(|sample| sample.seq).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(seen.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
        drop(sampler);
        assert!(samples.iter().count() < 1_000_000, "the thread ends with its handle");
    }

    #[test]
    fn children_count_as_our_own_work() {
        let child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let mut spec = every(Nanos::from_secs(1));
        spec.own_processes = vec![child.id()];
        let mut observer = Observer::new(&FakeHost::new().root, &spec);
        let mut child = child;
        let first = observer.look().host.own_ns.expect("a clock");
        let deadline = Monotonic.now() + Nanos::from_secs(60);
        while observer.look().host.own_ns.expect("a clock") < first + 5_000_000 && Monotonic.now() < deadline {
            thread::sleep(std::time::Duration::from_millis(2));
        }
        let living = observer.look().host.own_ns.expect("a clock");
        child.kill().expect("killed");
        child.wait().expect("ended");
        let ended = observer.look().host.own_ns.expect("a clock");
        assert!(living >= first + 5_000_000, "{first} {living}");
        // Counted to the microsecond once it has ended.
        assert!(ended >= living - 2_000, "{living} {ended}");
    }
}
