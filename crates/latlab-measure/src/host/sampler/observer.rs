//! One sample of a host: the CPUs, and its environment (packet drops, temperatures, throttling).

use std::fs;

use latlab_sys::cpu_time;

use super::preopened::{PreopenedNumber, PreopenedText};
use super::processors::Processors;
use crate::clock::{Clock, Monotonic};
use crate::facts::{HostReadings, HostSample};
use crate::host::root::HostRoot;

/// The largest file of network counters that is read: usually a few KiB, with a thousand interfaces 120 KiB.
const NETWORK_BYTES: usize = 1 << 18;
const ZONES: &str = "sys/class/thermal";
/// The unit of CPU times in /proc/PID/stat (USER_HZ).
const TICK_NS: i64 = 10_000_000;
/// The flags of a Raspberry Pi's firmware: under-voltage and throttling.
const FIRMWARE: &str = "sys/devices/platform/soc/soc:firmware/get_throttled";

/// The open files of a host. A sample costs some tens of microseconds.
#[derive(Debug)]
pub struct Observer {
    processors: Processors,
    environment: EnvironmentReader,
    own_processes: Vec<u32>,
    seq: u64,
}

impl Observer {
    /// Opens the files that the host under `root` has.
    pub fn new(root: &HostRoot, avoid_cpus: &[u16], own_processes: &[u32]) -> Observer {
        Observer {
            processors: Processors::open(root, avoid_cpus),
            environment: EnvironmentReader::open(root),
            own_processes: own_processes.to_vec(),
            seq: 0,
        }
    }

    pub fn sample(&mut self) -> HostSample {
        let start_ns = Monotonic.now().as_nanos();
        let mut host = HostReadings::default();
        let cpus = self.processors.read(&mut host);
        self.environment.read(&mut host);
        host.own_ns = self.own_ns();
        host.sampler_ns = cpu_time::of_this_thread().ok();
        let sampler_cpu = u16::try_from(rustix::thread::sched_getcpu()).ok();
        let seq = self.seq;
        self.seq += 1;
        HostSample { seq, start_ns, end_ns: Monotonic.now().as_nanos(), sampler_cpu, host, cpus }
    }

    /// CPU time of this process, of its own processes that run, and of its children that ended; a child counts among the
    /// latter once it is waited for.
    fn own_ns(&self) -> Option<i64> {
        let living = self.own_processes.iter().map(|pid| with_descendants(*pid));
        Some(cpu_time::of_this_process().ok()? + living.sum::<i64>() + cpu_time::of_ended_children().unwrap_or(0))
    }
}

/// CPU time of process `pid`, and of those that it and its descendants have started.
fn with_descendants(pid: u32) -> i64 {
    let ticks = |stat: String| -> Option<i64> {
        // After the name, which may have blanks: cutime and cstime are the fields 16 and 17, counted from 1 (proc_pid_stat(5)).
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split(' ').collect();
        Some(fields.get(14)?.parse::<i64>().ok()? + fields.get(15)?.parse::<i64>().ok()?)
    };
    let ended = fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(ticks).unwrap_or(0);
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children.flat_map(|list| parsed(&list)).collect();
    cpu_time::of_process(pid).unwrap_or(0) + ended * TICK_NS + children.into_iter().map(with_descendants).sum::<i64>()
}

fn parsed(list: &str) -> Vec<u32> {
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Open files of the network and of the thermal framework.
#[derive(Debug)]
pub(super) struct EnvironmentReader {
    udp: Option<PreopenedText>,
    udp6: Option<PreopenedText>,
    interfaces: Option<PreopenedText>,
    zones: Vec<PreopenedNumber>,
    coolers: Vec<PreopenedNumber>,
    firmware: Option<PreopenedNumber>,
}

impl EnvironmentReader {
    /// Opens the files that exist, those of the network in the namespace of the calling thread.
    pub(super) fn open(root: &HostRoot) -> EnvironmentReader {
        let network = |file: &str| PreopenedText::open(root, &format!("proc/thread-self/net/{file}"), NETWORK_BYTES);
        let thermal =
            |prefix: &str| root.names(ZONES).into_iter().filter(move |name| name.starts_with(prefix)).collect();
        let zones: Vec<String> = thermal("thermal_zone");
        let coolers: Vec<String> = thermal("cooling_device");
        let slows_a_cpu =
            |cooler: &String| root.text(&format!("{ZONES}/{cooler}/type")).is_ok_and(|kind| slows_a_cpu(&kind));
        EnvironmentReader {
            udp: network("snmp"),
            udp6: network("snmp6"),
            interfaces: network("dev"),
            zones: zones
                .iter()
                .filter_map(|zone| PreopenedNumber::open(root, &format!("{ZONES}/{zone}/temp")))
                .collect(),
            coolers: coolers
                .iter()
                .filter(|cooler| slows_a_cpu(cooler))
                .filter_map(|cooler| PreopenedNumber::open(root, &format!("{ZONES}/{cooler}/cur_state")))
                .collect(),
            firmware: PreopenedNumber::open_hexadecimal(root, FIRMWARE),
        }
    }

    /// Adds the present values to `host`.
    pub(super) fn read(&mut self, host: &mut HostReadings) {
        let of_version_4 = self.udp.as_mut().and_then(|text| udp_drops(text.read()?));
        let of_version_6 = self.udp6.as_mut().and_then(|text| udp6_drops(text.read()?));
        host.udp_receive_drops = of_version_4.map(|drops| drops + of_version_6.unwrap_or(0));
        if let Some((received, sent)) = self.interfaces.as_mut().and_then(PreopenedText::read).map(interface_drops) {
            (host.nic_receive_drops, host.nic_send_drops) = (Some(received), Some(sent));
        }
        host.temperature_millicelsius = self.zones.iter().filter_map(PreopenedNumber::read).max();
        host.cooling_state = self.coolers.iter().filter_map(PreopenedNumber::read).max();
        host.firmware_throttled = self.firmware.as_ref().and_then(PreopenedNumber::read);
    }
}

/// Whether a cooling device of this type throttles a CPU: `thermal-cpufreq-0` (boards), `Processor` (ACPI). Others are fans,
/// and `intel_powerclamp`, whose idle state is −1.
fn slows_a_cpu(kind: &str) -> bool {
    kind.starts_with("thermal-cpufreq-") || kind == "Processor"
}

/// `RcvbufErrors` of the line pair `Udp: names`, `Udp: numbers`.
fn udp_drops(snmp: &str) -> Option<i64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let place = lines.next()?.split(' ').position(|name| name == "RcvbufErrors")?;
    lines.next()?.split(' ').nth(place)?.parse().ok()
}

fn udp6_drops(snmp6: &str) -> Option<i64> {
    snmp6.lines().find_map(|line| line.strip_prefix("Udp6RcvbufErrors"))?.trim().parse().ok()
}

/// Drops on receipt (drop, fifo) and before sending (drop), all interfaces together.
fn interface_drops(dev: &str) -> (i64, i64) {
    let mut sums = (0, 0);
    // After two lines of headings.
    for numbers in dev.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.1)) {
        let number = |place: usize| numbers.split_ascii_whitespace().nth(place)?.parse::<i64>().ok();
        sums.0 += number(3).unwrap_or(0) + number(4).unwrap_or(0);
        sums.1 += number(11).unwrap_or(0);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    fn readings(host: &FakeHost) -> HostReadings {
        let mut readings = HostReadings::default();
        EnvironmentReader::open(&host.root).read(&mut readings);
        readings
    }

    #[test]
    fn temperature_and_throttling_of_a_raspberry_pi_are_read() {
        let host = FakeHost::new()
            .with("sys/class/thermal/thermal_zone0/temp", "81200\n")
            .with("sys/class/thermal/thermal_zone1/temp", "40000\n")
            .with("sys/class/thermal/cooling_device0/type", "thermal-cpufreq-0\n")
            .with("sys/class/thermal/cooling_device0/cur_state", "2\n")
            .with("sys/class/thermal/cooling_device1/type", "pwm-fan\n")
            .with("sys/class/thermal/cooling_device1/cur_state", "4\n")
            .with(FIRMWARE, "80008\n");
        let found = readings(&host);
        assert_eq!(found.temperature_millicelsius, Some(81_200));
        assert_eq!((found.cooling_state, found.firmware_throttled), (Some(2), Some(0x8_0008)));
    }

    #[test]
    fn drops_are_added_up() {
        let host = FakeHost::new()
            .with("proc/thread-self/net/snmp", "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams RcvbufErrors X\nUdp: 9 5 8\nUdpLite: A\n")
            .with("proc/thread-self/net/snmp6", "Udp6InErrors   \t3\nUdp6RcvbufErrors                 \t4\n")
            .with(
                "proc/thread-self/net/dev",
                "Inter-| R | T\n face |b\n    lo: 3193 29 0 1 2 0 0 0 3193 29 0 8 0 0 0 0\n  eth0:1 1 0 10 20 0 0 0 1 1 0 80 0 0 0 0\n",
            );
        let found = readings(&host);
        assert_eq!(found.udp_receive_drops, Some(9));
        assert_eq!((found.nic_receive_drops, found.nic_send_drops), (Some(33), Some(88)));
    }
}
