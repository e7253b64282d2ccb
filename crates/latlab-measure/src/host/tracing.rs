//! A trace of the scheduler, in rings that are read while they fill.
//!
//! The ring is an instance of [ftrace](https://docs.kernel.org/trace/ftrace.html#instances), so that other tracing is
//! not changed. Its name states the process that owns it. The kernel refuses to remove it while the owner has its files
//! open. The next latlab removes the rings of dead processes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::process::{ProcessIdentity, boot_id};

const MOUNTED: &str = "/sys/kernel/tracing";
/// The prefix of latlab's instances.
const PREFIX: &str = "latlab-";
/// Events that a trace must have: which thread ran, which was woken, what interrupted.
const EVENTS: [&str; 3] = ["sched:sched_switch", "sched:sched_waking", "irq:irq_handler_entry"];
/// Events that are traced if the kernel has them.
const FURTHER_EVENTS: [&str; 5] = [
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "irq_vectors:local_timer_entry",
    "irq_vectors:local_timer_exit",
];
/// Memory of the ring over all CPUs, and the limits for each CPU. 256 KiB hold 50 ms at 100,000 events a second.
const RING_KIB: u64 = 64 << 10;
const CPU_KIB: std::ops::RangeInclusive<u64> = 64..=4096;

/// Text of one read call, some 10 µs of work: many kernels do not let a thread of higher priority in before its end.
const READ_BYTES: usize = 512;
/// Calls of one [`Tracing::drain`].
const READS: usize = 256;

/// A running trace; dropping this value removes the instance.
#[derive(Debug)]
pub struct Tracing {
    instance: Instance,
    /// Held open, so that stopping is one write and no other process can remove the instance.
    switch: Option<File>,
    /// `None` before it is read.
    pipe: Option<File>,
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
        let mut tracing = Tracing { instance: Instance { path, _tracefs: tracefs }, switch: None, pipe: None };
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
        let mut switch = OpenOptions::new().write(true).open(at("tracing_on"))?;
        switch.write_all(b"1")?;
        self.switch = Some(switch);
        Ok(())
    }

    /// Records events or, if not `on`, none.
    ///
    /// # Errors
    /// Those of write(2).
    pub(crate) fn turn(&self, on: bool) -> io::Result<()> {
        self.switch.as_ref().map_or(Ok(()), |mut switch| switch.write_all(if on { b"1" } else { b"0" }))
    }

    /// Moves events from the rings to the end of `text`, as the text of the kernel. Returns whether more are there.
    ///
    /// # Errors
    /// The rings cannot be read.
    pub fn drain(&mut self, text: &mut Vec<u8>) -> io::Result<bool> {
        if self.pipe.is_none() {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
            self.pipe = Some(options.open(self.instance.path.join("trace_pipe"))?);
        }
        let mut part = [0; READ_BYTES];
        for _ in 0..READS {
            match self.pipe.as_ref().map_or(Ok(0), |mut pipe| pipe.read(&mut part)) {
                Ok(0) => return Ok(false),
                Ok(bytes) => text.extend_from_slice(&part[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // The kernel does not remove an instance with an open file.
        (self.switch, self.pipe) = (None, None);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_parsed_from_its_name() {
        let me = ProcessIdentity::this_process().expect("proc");
        assert_eq!(owner_of(&me.name()), Some(me));
        assert_eq!((owner_of("test"), owner_of("1-x"), owner_of("-")), (None, None, None));
    }
}
