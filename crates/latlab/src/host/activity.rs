//! What the CPUs were doing: `/proc/stat` at two moments
//! ([proc_stat(5)](https://man7.org/linux/man-pages/man5/proc_stat.5.html)).

use std::collections::BTreeMap;

use super::root::HostRoot;

/// Clock ticks since boot, of one CPU or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Running anything.
    pub busy: u64,
    /// Idle, or waiting for a disk.
    pub idle: u64,
    /// Wanted to run, but the hypervisor ran another guest.
    pub steal: u64,
}

/// The ticks of every CPU at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// All together.
    pub all: Ticks,
    /// Each that is online.
    pub each: BTreeMap<u16, Ticks>,
}

impl CpuTicks {
    /// The ticks now; or why they cannot be had.
    pub fn read(root: &HostRoot) -> Result<CpuTicks, String> {
        let text = root.text("proc/stat")?;
        let mut ticks = CpuTicks::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("cpu")) {
            let (name, numbers) = line.split_once(' ').ok_or("/proc/stat: a line without numbers")?;
            let counted = of_line(numbers).ok_or("/proc/stat: fewer than 8 numbers for a CPU")?;
            match name.parse() {
                Ok(cpu) => drop(ticks.each.insert(cpu, counted)),
                Err(_) => ticks.all = counted,
            }
        }
        Ok(ticks)
    }

    /// What happened from `earlier` to `self`.
    pub fn since(&self, earlier: &CpuTicks) -> Activity {
        let each = self.each.iter().filter_map(|(cpu, now)| Some((*cpu, share(now, earlier.each.get(cpu)?))));
        Activity { all: share(&self.all, &earlier.all), each: each.collect() }
    }
}

/// user nice system idle iowait irq softirq steal
fn of_line(numbers: &str) -> Option<Ticks> {
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = numbers[..] else { return None };
    Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

/// How a CPU spent a while, as shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Running anything, 0 to 1.
    pub busy: f64,
    /// Stolen by the hypervisor, 0 to 1.
    pub steal: f64,
}

fn share(now: &Ticks, earlier: &Ticks) -> Share {
    // The kernel's idle counters may go back a little; that counts as nothing.
    let busy = now.busy.saturating_sub(earlier.busy);
    let steal = now.steal.saturating_sub(earlier.steal);
    let total = busy + steal + now.idle.saturating_sub(earlier.idle);
    if total == 0 {
        return Share::default();
    }
    Share { busy: busy as f64 / total as f64, steal: steal as f64 / total as f64 }
}

/// What the CPUs did for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// All together.
    pub all: Share,
    /// Each.
    pub each: BTreeMap<u16, Share>,
}

impl Activity {
    /// Watches the host under `root` for `span`; or why that cannot be done.
    pub fn watch(root: &HostRoot, span: std::time::Duration) -> Result<Activity, String> {
        let before = CpuTicks::read(root)?;
        std::thread::sleep(span);
        Ok(CpuTicks::read(root)?.since(&before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn shares_are_of_the_while_between() {
        let before = "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\nintr 5\n";
        let after = "cpu  35 0 10 130 0 0 0 25 0 0\ncpu0 35 0 10 130 0 0 0 25 0 0\n";
        let before = CpuTicks::read(&FakeHost::new().with("proc/stat", before).root).expect("ticks");
        let after = CpuTicks::read(&FakeHost::new().with("proc/stat", after).root).expect("ticks");
        let activity = after.since(&before);
        assert_eq!(activity.all, Share { busy: 0.25, steal: 0.25 });
        assert_eq!(activity.each[&0], activity.all);
        assert_eq!(before.since(&before).all, Share::default());
    }

    #[test]
    fn a_broken_file_is_a_reason() {
        assert!(CpuTicks::read(&FakeHost::new().with("proc/stat", "cpu 1 2\n").root).is_err());
    }
}
