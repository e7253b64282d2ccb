//! A trace of the scheduler, in a ring that is stopped after a late wake-up.
//!
//! The ring is an instance of [ftrace](https://docs.kernel.org/trace/ftrace.html#instances), so that other tracing is
//! not changed. Its name states the process that owns it. The kernel refuses to remove it while the owner has its files
//! open. The next latlab removes the rings of dead processes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::process::{ProcessIdentity, boot_id};
use crate::units::Nanos;

const MOUNTED: &str = "/sys/kernel/tracing";
/// The prefix of latlab's instances.
const PREFIX: &str = "latlab-";
/// Events that a trace must have: which thread ran, which was woken, what interrupted.
const EVENTS: [&str; 3] = ["sched:sched_switch", "sched:sched_wakeup", "irq:irq_handler_entry"];
/// Events that are traced if the kernel has them.
const FURTHER_EVENTS: [&str; 9] = [
    "sched:sched_waking",
    "sched:sched_migrate_task",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "timer:hrtimer_expire_entry",
    "timer:hrtimer_expire_exit",
    "irq_vectors:local_timer_entry",
    "power:cpu_idle",
];
/// Memory of the ring over all CPUs, and the limits for each CPU. 256 KiB hold 50 ms at 100,000 events a second.
const RING_KIB: u64 = 16 << 10;
const CPU_KIB: std::ops::RangeInclusive<u64> = 64..=1024;

/// A running trace; dropping this value removes the instance.
#[derive(Debug)]
pub struct Tracing {
    instance: Instance,
    /// Held open, so that stopping is one write and no other process can remove the instance.
    switch: Option<File>,
    marker: Option<File>,
    stopped: AtomicBool,
}

/// The directory of an instance, and the mount that keeps it accessible.
#[derive(Debug)]
struct Instance {
    path: PathBuf,
    _tracefs: TraceFs,
}

/// A tracefs: the system's, or a detached mount that ends with its descriptor.
#[derive(Debug)]
struct TraceFs {
    path: PathBuf,
    _mount: Option<OwnedFd>,
}

impl TraceFs {
    fn open() -> io::Result<TraceFs> {
        let system = Path::new(MOUNTED).join("instances");
        if system.is_dir() {
            return Ok(TraceFs { path: system, _mount: None });
        }
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/instances", mount.as_raw_fd()));
        Ok(TraceFs { path, _mount: Some(mount) })
    }
}

impl Tracing {
    /// Starts to trace all CPUs on CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The process lacks CAP_SYS_ADMIN, or the kernel tracefs or the events.
    pub fn begin() -> io::Result<Tracing> {
        let tracefs = TraceFs::open()?;
        let path = tracefs.path.join(format!("{PREFIX}{}", ProcessIdentity::this_process()?.name()));
        fs::create_dir(&path)?;
        let mut tracing = Tracing {
            instance: Instance { path, _tracefs: tracefs },
            switch: None,
            marker: None,
            stopped: AtomicBool::new(false),
        };
        tracing.set_up()?;
        Ok(tracing)
    }

    fn set_up(&mut self) -> io::Result<()> {
        let at = |name: &str| self.instance.path.join(name);
        fs::write(at("tracing_on"), "0")?;
        fs::write(at("trace_clock"), "mono")?;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        fs::write(at("buffer_size_kb"), (RING_KIB / cpus).clamp(*CPU_KIB.start(), *CPU_KIB.end()).to_string())?;
        let add = |event: &str| OpenOptions::new().append(true).open(at("set_event"))?.write_all(event.as_bytes());
        EVENTS.iter().try_for_each(|event| add(event))?;
        // An error if the architecture or an older kernel lacks the event.
        FURTHER_EVENTS.iter().for_each(|event| _ = add(event));
        self.marker = OpenOptions::new().write(true).open(at("trace_marker")).ok();
        let mut switch = OpenOptions::new().write(true).open(at("tracing_on"))?;
        switch.write_all(b"1")?;
        self.switch = Some(switch);
        Ok(())
    }

    /// Stops the ring with `words` as its last entry. Later calls have no effect.
    pub fn stop(&self, words: &str) {
        if self.stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        // A ring that cannot be stopped is overwritten, and [`Tracing::between`] finds no events of that time.
        if let Some(mut marker) = self.marker.as_ref() {
            _ = marker.write_all(words.as_bytes());
        }
        if let Some(mut switch) = self.switch.as_ref() {
            _ = switch.write_all(b"0");
        }
    }

    /// The events in `[from, to]`, ns of CLOCK_MONOTONIC, as the text of the kernel.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn between(&self, from: Nanos, to: Nanos) -> io::Result<String> {
        Ok(within(&fs::read(self.instance.path.join("trace"))?, from, to))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.stop("latlab ends");
        // The kernel does not remove an instance with an open file.
        (self.switch, self.marker) = (None, None);
        // If it remains, the next latlab removes it.
        _ = fs::remove_dir(&self.instance.path);
    }
}

/// The instances of all latlabs of this kernel: `latlab-PID-TICKS`.
///
/// # Errors
/// The process may not read tracefs, or there is none.
pub fn instances() -> io::Result<Vec<String>> {
    instances_in(&TraceFs::open()?)
}

fn instances_in(tracefs: &TraceFs) -> io::Result<Vec<String>> {
    let names = fs::read_dir(&tracefs.path)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.starts_with(PREFIX)).collect())
}

/// Removes the instances of latlabs that died, and returns their names; none if tracefs cannot be read.
pub fn remove_left() -> Vec<String> {
    let Ok(tracefs) = TraceFs::open() else { return Vec::new() };
    let names = instances_in(&tracefs).unwrap_or_default().into_iter();
    let abandoned =
        names.filter(|name| name.strip_prefix(PREFIX).and_then(owner_of).is_some_and(|owner| !owner.is_alive()));
    // An instance of a process outside of this PID namespace is busy and is not removed.
    abandoned.filter(|name| fs::remove_dir(tracefs.path.join(name)).is_ok()).collect()
}

/// The process with that [`ProcessIdentity::name`]. It is one of this boot: instances do not survive a reboot.
fn owner_of(name: &str) -> Option<ProcessIdentity> {
    let (pid, started) = name.split_once('-')?;
    let (pid, started_ticks) = (pid.parse().ok()?, started.parse().ok()?);
    Some(ProcessIdentity { pid, started_ticks, boot_id: boot_id().ok()? })
}

/// The lines of `trace` whose time is in `[from, to]`, and the header. Names of processes may have any bytes; those that are
/// not UTF-8 are replaced.
fn within(trace: &[u8], from: Nanos, to: Nanos) -> String {
    let trace = String::from_utf8_lossy(trace);
    let kept = |line: &&str| line.starts_with('#') || time_of(line).is_some_and(|at| from <= at && at <= to);
    trace.lines().filter(kept).flat_map(|line| [line, "\n"]).collect()
}

/// The time of a line, `NAME-PID [CPU] FLAGS SECONDS.MICROS: …`, whose name may contain anything.
fn time_of(line: &str) -> Option<Nanos> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_cpu = |word: &str| word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(is_number);
    words.windows(3).filter(|three| is_cpu(three[0])).find_map(|three| {
        let (seconds, fraction) = three[2].strip_suffix(':')?.split_once('.')?;
        if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
            return None;
        }
        let nanos = format!("{fraction:0<9}").parse::<i64>().ok()?;
        Some(Nanos(seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)?))
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [001] d..2. 24784.987425: sched_switch: prev_comm=swapper/1
       a [b] c-7 -663    [000] d..2. 24785.001515: sched_wakeup: comm=latlab
          <idle>-0       [001] d.h3. 24785.001717: irq_handler_entry: irq=9
";

    #[test]
    fn lines_are_selected_by_time_whatever_the_name_of_the_process() {
        let kept = |from, to| within(TRACE.as_bytes(), Nanos(from), Nanos(to)).lines().count();
        assert_eq!(kept(0, i64::MAX), 5);
        assert_eq!(kept(24_785_001_515_000, 24_785_001_515_000), 3);
        assert_eq!(kept(24_785_001_515_001, 24_785_001_716_999), 2);
        for line in ["", "# [001] x 1.5:", "x-1 [0a] d 1.5: y", "x-1 [01] d 1: y", "x-1 [01] d 1.5 y"] {
            assert!(time_of(line).is_none() || line.starts_with('#'), "{line}");
        }
        assert_eq!(time_of("x-1 [01] d 1.5: y"), Some(Nanos(1_500_000_000)));
    }

    #[test]
    fn lines_with_a_name_that_is_not_utf8_are_kept() {
        let line = b" \xff\xfe\x80-663 [000] d..2. 24785.001515: sched_wakeup: comm=\xc3\x28\n";
        let trace = [TRACE.as_bytes(), line].concat();
        let text = within(&trace, Nanos(24_785_001_515_000), Nanos(24_785_001_515_000));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[3].contains("\u{fffd}-663 [000]") && lines[3].contains("comm=\u{fffd}("), "{text}");
    }

    #[test]
    fn an_owner_is_parsed_from_its_name() {
        let me = ProcessIdentity::this_process().expect("proc");
        assert_eq!(owner_of(&me.name()), Some(me));
        assert_eq!((owner_of("test"), owner_of("1-x"), owner_of("-")), (None, None, None));
    }
}
