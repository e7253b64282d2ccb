//! What the CPUs were doing: `/proc/stat`
//! ([proc_stat(5)](https://man7.org/linux/man-pages/man5/proc_stat.5.html)).

use super::root::HostRoot;
pub use crate::facts::{Activity, CpuShare, CpuTicks, Ticks};

impl CpuTicks {
    /// The ticks now; or why they cannot be had.
    pub fn read(root: &HostRoot) -> Result<CpuTicks, String> {
        CpuTicks::of_text(&root.text("proc/stat")?)
    }

    /// The ticks in the text of `/proc/stat`.
    pub(super) fn of_text(text: &str) -> Result<CpuTicks, String> {
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
}

/// user nice system idle iowait irq softirq steal
fn of_line(numbers: &str) -> Option<Ticks> {
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = numbers[..] else { return None };
    Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn ticks_are_read_for_all_and_for_each() {
        let host = FakeHost::new().with("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu3 10 0 10 80 0 0 0 9 0 0\nintr 5\n");
        let ticks = CpuTicks::read(&host.root).expect("ticks");
        assert_eq!(ticks.all, Ticks { busy: 19, idle: 9, steal: 8 });
        assert_eq!(ticks.each[&3], Ticks { busy: 20, idle: 80, steal: 9 });
    }

    #[test]
    fn a_broken_file_is_a_reason() {
        assert!(CpuTicks::read(&FakeHost::new().with("proc/stat", "cpu 1 2\n").root).is_err());
    }
}
