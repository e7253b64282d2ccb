//! Readings of each CPU, from `/proc/stat`, `/proc/interrupts`, `/proc/net/softnet_stat` and sysfs.

use super::preopened::{PreopenedNumber, PreopenedText};
use crate::facts::{CpuReadings, HostReadings, IDLE_STATES};
use crate::host::root::HostRoot;

/// USER_HZ is 100 on every architecture that latlab supports: a tick is 10 ms.
const TICK_NS: i64 = 10_000_000;
/// Larger than `/proc/stat` on 1,024 CPUs with as many interrupt lines.
const STAT_BYTES: usize = 1 << 20;
/// `/proc/interrupts` has a column for each CPU on every line: above this size it costs the kernel too much to print.
const INTERRUPTS_BYTES: usize = 1 << 16;
/// sysfs files kept open: the usual limit of a process is 1,024, and sockets need some.
const MOST_FILES: usize = 256;

/// Open files of the CPUs.
#[derive(Debug)]
pub(super) struct Processors {
    stat: Option<PreopenedText>,
    interrupts: Option<PreopenedText>,
    softnet: Option<PreopenedText>,
    cpus: Vec<Processor>,
}

#[derive(Debug)]
struct Processor {
    number: u16,
    files: Files,
}

/// The files of a CPU in sysfs.
#[derive(Debug, Default)]
struct Files {
    frequency: Option<PreopenedNumber>,
    idle_states: [Option<PreopenedNumber>; IDLE_STATES],
    throttles: [Option<PreopenedNumber>; 2],
}

impl Files {
    fn open(root: &HostRoot, cpu: u16) -> Files {
        let file = |name: &str| PreopenedNumber::open(root, &format!("sys/devices/system/cpu/cpu{cpu}/{name}"));
        Files {
            // Not `cpuinfo_cur_freq`, for which the driver may interrupt the CPU.
            frequency: file("cpufreq/scaling_cur_freq"),
            idle_states: std::array::from_fn(|state| file(&format!("cpuidle/state{state}/time"))),
            throttles: ["core", "package"].map(|what| file(&format!("thermal_throttle/{what}_throttle_count"))),
        }
    }

    fn count(&self) -> usize {
        let all = self.idle_states.iter().chain(&self.throttles).chain([&self.frequency]);
        all.flatten().count()
    }

    /// Adds the values of the files; idle residencies are in microseconds.
    fn read(&self, readings: CpuReadings) -> CpuReadings {
        let read = |file: &Option<PreopenedNumber>| file.as_ref().and_then(PreopenedNumber::read);
        let throttles = self.throttles.iter().filter_map(read);
        let idle_states = self.idle_states.each_ref().map(|file| read(file).map(|micros| micros.saturating_mul(1_000)));
        CpuReadings {
            frequency_khz: read(&self.frequency),
            throttles: self.throttles.iter().any(Option::is_some).then(|| throttles.sum()),
            ..readings
        }
        .with_idle_states(idle_states)
    }
}

impl Processors {
    /// Opens the files that exist; those in sysfs up to [`MOST_FILES`], of the CPUs in `first` before those of others.
    pub(super) fn open(root: &HostRoot, first: &[u16]) -> Processors {
        let mut stat = PreopenedText::open(root, "proc/stat", STAT_BYTES);
        let online = stat.as_mut().and_then(|stat| Some(cpus_of(stat.read()?))).unwrap_or_default();
        let mut order: Vec<u16> = first.iter().copied().filter(|cpu| online.contains(cpu)).collect();
        order.extend(online.iter().filter(|cpu| !first.contains(cpu)));
        order.dedup();
        let mut room = MOST_FILES;
        let mut cpus: Vec<Processor> = order
            .into_iter()
            .map(|number| {
                let opened = if room > 0 { Files::open(root, number) } else { Files::default() };
                let files = if opened.count() <= room { opened } else { Files::default() };
                room -= files.count();
                Processor { number, files }
            })
            .collect();
        cpus.sort_by_key(|cpu| cpu.number);
        cpus.dedup_by_key(|cpu| cpu.number);
        let interrupts = PreopenedText::open(root, "proc/interrupts", INTERRUPTS_BYTES);
        let softnet = PreopenedText::open(root, "proc/net/softnet_stat", STAT_BYTES);
        Processors { stat, interrupts, softnet, cpus }
    }

    /// The present readings of every CPU, and in `host` those of `/proc/stat` for all.
    pub(super) fn read(&mut self, host: &mut HostReadings) -> Vec<(u16, CpuReadings)> {
        let stat = self.stat.as_mut().and_then(PreopenedText::read);
        let interrupts = self.interrupts.as_mut().and_then(PreopenedText::read).map(interrupts).unwrap_or_default();
        let softnet = self.softnet.as_mut().and_then(PreopenedText::read).map(backlog_drops).unwrap_or_default();
        let mut ticks = stat.into_iter().flat_map(cpu_lines).peekable();
        if let Some(stat) = stat {
            host_lines(stat, host);
        }
        let of = |list: &[(u16, i64)], cpu| list.iter().find(|(number, _)| *number == cpu).map(|(_, value)| *value);
        self.cpus
            .iter()
            .map(|cpu| {
                while ticks.next_if(|(number, _)| *number < cpu.number).is_some() {}
                let times = ticks.next_if(|(number, _)| *number == cpu.number);
                let readings = CpuReadings {
                    interrupts: of(&interrupts, cpu.number),
                    backlog_drops: of(&softnet, cpu.number),
                    ..times.map(|(_, line)| times_of(line)).unwrap_or_default()
                };
                (cpu.number, cpu.files.read(readings))
            })
            .collect()
    }
}

/// The CPUs in `/proc/stat`, which are those online.
fn cpus_of(stat: &str) -> Vec<u16> {
    cpu_lines(stat).map(|(cpu, _)| cpu).collect()
}

/// The number of each CPU and the rest of its line.
fn cpu_lines(stat: &str) -> impl Iterator<Item = (u16, &str)> {
    stat.lines().take_while(|line| line.starts_with("cpu")).filter_map(|line| {
        let (name, numbers) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((name.parse().ok()?, numbers))
    })
}

/// user nice system idle iowait irq softirq steal
/// ([proc_stat(5)](https://man7.org/linux/man-pages/man5/proc_stat.5.html)).
fn times_of(line: &str) -> CpuReadings {
    let mut ticks = [0i64; 8];
    let mut numbers = line.split_ascii_whitespace();
    for place in &mut ticks {
        let Some(number) = numbers.next().and_then(|number| number.parse().ok()) else {
            return CpuReadings::default();
        };
        *place = number;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.map(|ticks| ticks.saturating_mul(TICK_NS));
    CpuReadings {
        busy_ns: Some(user + nice + system + irq + softirq),
        interrupt_ns: Some(irq + softirq),
        idle_ns: Some(idle + iowait),
        steal_ns: Some(steal),
        ..CpuReadings::default()
    }
}

fn host_lines(stat: &str, host: &mut HostReadings) {
    // The first number of a line is the sum of all others on it.
    let first = |line: &str| line.split_ascii_whitespace().nth(1)?.parse().ok();
    for line in stat.lines().skip_while(|line| line.starts_with("cpu")) {
        let place = match line.split_once(' ').map(|(key, _)| key) {
            Some("intr") => &mut host.all_interrupts,
            Some("ctxt") => &mut host.context_switches,
            Some("softirq") => &mut host.all_softirqs,
            _ => continue,
        };
        *place = first(line);
    }
}

/// Interrupts of each CPU: the sum of its column. Lines without a number for each CPU count errors.
fn interrupts(text: &str) -> Vec<(u16, i64)> {
    let mut lines = text.lines();
    let heads = lines.next().unwrap_or_default().split_ascii_whitespace();
    let mut sums: Vec<(u16, i64)> =
        heads.filter_map(|head| Some((head.strip_prefix("CPU")?.parse().ok()?, 0))).collect();
    for line in lines {
        let Some((_, numbers)) = line.split_once(':') else { continue };
        let counts = || numbers.split_ascii_whitespace().map_while(|number| number.parse::<i64>().ok());
        if counts().take(sums.len()).count() == sums.len() {
            sums.iter_mut().zip(counts()).for_each(|((_, sum), count)| *sum += count);
        }
    }
    sums
}

/// Drops of each CPU's backlog: the second of the hexadecimal words. The thirteenth is the CPU since Linux 5.10; before that
/// a line is not attributable if a CPU is offline.
fn backlog_drops(text: &str) -> Vec<(u16, i64)> {
    let word = |line: &str, place: usize| i64::from_str_radix(line.split_ascii_whitespace().nth(place)?, 16).ok();
    text.lines().filter_map(|line| Some((u16::try_from(word(line, 12)?).ok()?, word(line, 1)?))).collect()
}

/// The share of time in which a CPU was busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuBusy {
    pub cpu: u16,
    /// From 0 to 1.
    pub share: f64,
}

#[derive(Clone, Copy, Debug)]
struct CpuTimes {
    cpu: u16,
    busy_ns: i64,
    all_ns: i64,
}

/// A meter of the CPUs of this host, with a resolution of 10 ms of CPU time.
#[derive(Debug)]
pub struct BusyMeter {
    stat: Option<PreopenedText>,
    last: Vec<CpuTimes>,
}

impl BusyMeter {
    /// A meter that begins now. It reads nothing where `/proc/stat` cannot be read.
    pub fn open(root: &HostRoot) -> BusyMeter {
        let mut meter = BusyMeter { stat: PreopenedText::open(root, "proc/stat", STAT_BYTES), last: Vec::new() };
        meter.read();
        meter
    }

    /// The CPUs that were online all the time since the last reading, ascending.
    pub fn read(&mut self) -> Vec<CpuBusy> {
        let stat = self.stat.as_mut().and_then(PreopenedText::read).unwrap_or_default();
        let times = cpu_lines(stat).filter_map(|(cpu, line)| {
            let times = times_of(line);
            let (busy_ns, steal_ns) = (times.busy_ns?, times.steal_ns.unwrap_or_default());
            Some(CpuTimes { cpu, busy_ns, all_ns: busy_ns + steal_ns + times.idle_ns? })
        });
        let now: Vec<CpuTimes> = times.collect();
        let last = std::mem::replace(&mut self.last, now);
        let busy = |now: &CpuTimes| {
            let last = last.iter().find(|last| last.cpu == now.cpu)?;
            let (busy, all) = (now.busy_ns - last.busy_ns, now.all_ns - last.all_ns);
            (all > 0).then(|| CpuBusy { cpu: now.cpu, share: (busy as f64 / all as f64).clamp(0.0, 1.0) })
        };
        self.last.iter().filter_map(busy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    const STAT: &str = "cpu  54378 7954 11087 93221 1833 2 81 40 0 0\n\
                        cpu0 27471 3926 3730 48602 575 0 16 18 0 0\n\
                        cpu2 10 1 2 40 3 1 4 5 6 0\n\
                        intr 534822 0 0 9\nctxt 570482\nbtime 1795305950\nprocesses 15796\n\
                        softirq 252418 0 31246 4\n";

    #[test]
    fn all_readings_of_a_cpu_are_read() {
        let host = FakeHost::new()
            .with("proc/stat", STAT)
            .with(
                "proc/interrupts",
                "      CPU0   CPU2\n  24:  1  2  IO-APIC  5-edge ACPI\n LOC: 100 200 Local\n ERR: 7\n",
            )
            .with(
                "proc/net/softnet_stat",
                "0c01 0003 0 0 0 0 0 0 0 0 0 00 00000000\n0c01 000a 0 0 0 0 0 0 0 0 0 00 00000002\n",
            )
            .with("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "2100000\n")
            .with("sys/devices/system/cpu/cpu2/cpuidle/state0/time", "12\n")
            .with("sys/devices/system/cpu/cpu2/cpuidle/state1/time", "3000\n")
            .with("sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count", "4\n")
            .with("sys/devices/system/cpu/cpu2/thermal_throttle/package_throttle_count", "5\n");
        let mut readings = HostReadings::default();
        let cpus = Processors::open(&host.root, &[2]).read(&mut readings);
        assert_eq!(cpus.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [0, 2]);
        let expected = CpuReadings {
            busy_ns: Some(18 * TICK_NS),
            interrupt_ns: Some(5 * TICK_NS),
            idle_ns: Some(43 * TICK_NS),
            steal_ns: Some(5 * TICK_NS),
            frequency_khz: Some(2_100_000),
            interrupts: Some(202),
            backlog_drops: Some(10),
            throttles: Some(9),
            idle_state0_ns: Some(12_000),
            idle_state1_ns: Some(3_000_000),
            ..CpuReadings::default()
        };
        assert_eq!(cpus[1].1, expected);
        assert_eq!((cpus[0].1.interrupts, cpus[0].1.frequency_khz, cpus[0].1.throttles), (Some(101), None, None));
        let expected = (Some(534_822), Some(570_482), Some(252_418));
        assert_eq!((readings.all_interrupts, readings.context_switches, readings.all_softirqs), expected);
    }

    #[test]
    fn readings_of_a_cpu_that_went_offline_are_unknown() {
        let host = FakeHost::new().with("proc/stat", STAT);
        let mut processors = Processors::open(&host.root, &[]);
        let _host = host.with("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\ncpu2 20 1 2 40 3 1 4 5 6 0\nctxt 9\n");
        let cpus = processors.read(&mut HostReadings::default());
        assert_eq!((cpus[0].1.busy_ns, cpus[1].1.busy_ns), (None, Some(28 * TICK_NS)));
    }

    #[test]
    fn the_share_is_that_of_the_time_since_the_last_reading() {
        let stat = |busy: u32, idle: u32| format!("cpu  1 0 0 1 0 0 0 0\ncpu0 {busy} 0 0 {idle} 0 0 0 0\nintr 1\n");
        let host = FakeHost::new().with("proc/stat", &stat(100, 900));
        let mut meter = BusyMeter::open(&host.root);
        let _host = host.with("proc/stat", &stat(130, 970));
        assert_eq!(meter.read(), [CpuBusy { cpu: 0, share: 0.3 }]);
        assert_eq!(meter.read(), [], "no time has passed");
    }
}
