//! What a host was doing at one moment of a run: counters since its boot, and a few states.
//!
//! Counters are kept as the kernel counts them, never as differences: a lost sample then costs resolution and no
//! sum. What cannot be had is null. Columns and units: docs/recording.md, section 5.

use serde::{Deserialize, Serialize};

/// Numbers of one kind of row, all of them nullable, with their column names.
macro_rules! readings {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<i64>,)+
        }

        impl $name {
            /// The columns, in the order of the file.
            pub const COLUMNS: [&str; [$(stringify!($field)),+].len()] = [$(stringify!($field)),+];
            /// How many there are.
            pub const WIDTH: usize = Self::COLUMNS.len();

            /// The numbers, in the order of [`Self::COLUMNS`].
            pub const fn numbers(&self) -> [Option<i64>; Self::WIDTH] {
                [$(self.$field),+]
            }

            /// The row of these numbers.
            pub fn of(numbers: [Option<i64>; Self::WIDTH]) -> Self {
                let [$($field),+] = numbers;
                Self { $($field),+ }
            }
        }
    };
}

/// Idle states that the kernel can have (CPUIDLE_STATE_MAX in linux/cpuidle.h).
pub const IDLE_STATES: usize = 10;

readings! {
    /// One CPU. Ticks are 10 ms, so spans from `/proc/stat` are multiples of that.
    CpuReadings {
        /// Running anything, interrupts included (`/proc/stat`: user, nice, system, irq, softirq), ns since boot.
        busy_ns,
        /// The part of it in hard and soft interrupts, ns since boot.
        interrupt_ns,
        /// Idle or waiting for a disk (`/proc/stat`), ns since boot.
        idle_ns,
        /// Wanted to run while the hypervisor ran somebody else, ns since boot.
        steal_ns,
        /// `scaling_cur_freq`, now, kHz.
        frequency_khz,
        /// Hard interrupts served since boot (`/proc/interrupts`).
        interrupts,
        /// Packets thrown away since boot because the CPU's backlog was full (`/proc/net/softnet_stat`).
        backlog_drops,
        /// Times since boot that the core or its package was throttled for heat (x86 `thermal_throttle`).
        throttles,
        /// Residency in idle state 0 since boot, ns (`cpuidle/state0/time`).
        idle_state0_ns,
        /// The same for state 1.
        idle_state1_ns,
        /// The same for state 2.
        idle_state2_ns,
        /// The same for state 3.
        idle_state3_ns,
        /// The same for state 4.
        idle_state4_ns,
        /// The same for state 5.
        idle_state5_ns,
        /// The same for state 6.
        idle_state6_ns,
        /// The same for state 7.
        idle_state7_ns,
        /// The same for state 8.
        idle_state8_ns,
        /// The same for state 9.
        idle_state9_ns,
    }
}

impl CpuReadings {
    /// The same readings with the residencies in idle states 0 and up.
    pub fn with_idle_states(self, residencies_ns: [Option<i64>; IDLE_STATES]) -> CpuReadings {
        let mut numbers = self.numbers();
        numbers[CpuReadings::WIDTH - IDLE_STATES..].copy_from_slice(&residencies_ns);
        CpuReadings::of(numbers)
    }
}

readings! {
    /// The host as a whole; network counters are those of the network namespace that measures.
    HostReadings {
        /// Context switches since boot, all CPUs.
        context_switches,
        /// Hard interrupts since boot, all CPUs.
        all_interrupts,
        /// Soft interrupts since boot, all CPUs.
        all_softirqs,
        /// UDP datagrams that no socket could take since boot (`RcvbufErrors` of IPv4 and IPv6).
        udp_receive_drops,
        /// Packets dropped on receipt by interfaces (`/proc/net/dev`: drop and fifo), all interfaces.
        nic_receive_drops,
        /// Packets dropped by interfaces before they left, all interfaces.
        nic_send_drops,
        /// The hottest thermal zone, thousandths of a degree Celsius.
        temperature_millicelsius,
        /// The highest state of any cooling device that slows a CPU down; 0: none does.
        cooling_state,
        /// The flags of a Raspberry Pi's firmware (`get_throttled`): bits 0 to 3 now, 16 to 19 since boot.
        firmware_throttled,
        /// CPU time of latlab and of the processes that it made, since they began, ns.
        own_ns,
        /// The sampling thread's part of it, ns.
        sampler_ns,
    }
}

/// Bits of `firmware_throttled` that say what is so now: under-voltage, frequency capped, throttled, soft limit.
pub const FIRMWARE_NOW: i64 = 0xf;
/// Bits that say what was so at any time since boot.
pub const FIRMWARE_SINCE_BOOT: i64 = 0xf_0000;

/// One look at a host. It records when and where it was taken, so that it can be accused as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSample {
    /// Place among the samples of this host, from 0.
    pub seq: u64,
    /// Before the first file was read: CLOCK_MONOTONIC of the sampled host, ns.
    pub start_ns: i64,
    /// After the last one.
    pub end_ns: i64,
    /// The CPU that took it, where that can be told.
    pub sampler_cpu: Option<u16>,
    /// The host.
    pub host: HostReadings,
    /// Each CPU that was online when sampling began, ascending.
    pub cpus: Vec<(u16, CpuReadings)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_readings_are_the_same_thing() {
        let numbers = std::array::from_fn(|place| (place != 3).then_some(place as i64));
        assert_eq!(CpuReadings::of(numbers).numbers(), numbers);
        assert_eq!((CpuReadings::of(numbers).busy_ns, CpuReadings::of(numbers).steal_ns), (Some(0), None));
        assert_eq!(HostReadings::COLUMNS[0], "context_switches");
    }

    #[test]
    fn idle_states_fill_their_columns() {
        let readings = CpuReadings { throttles: Some(5), ..CpuReadings::default() };
        let readings = readings.with_idle_states(std::array::from_fn(|state| Some(100 + state as i64)));
        assert_eq!(
            (readings.throttles, readings.idle_state0_ns, readings.idle_state9_ns),
            (Some(5), Some(100), Some(109))
        );
        assert_eq!(CpuReadings::COLUMNS[CpuReadings::WIDTH - IDLE_STATES], "idle_state0_ns");
    }

    #[test]
    fn a_sample_travels_as_json() {
        let mut sample = HostSample { seq: 3, start_ns: 7, end_ns: 9, sampler_cpu: Some(1), ..HostSample::default() };
        sample.cpus.push((0, CpuReadings { busy_ns: Some(10_000_000), ..CpuReadings::default() }));
        let text = serde_json::to_string(&sample).expect("plain data");
        assert_eq!(serde_json::from_str::<HostSample>(&text).expect("the same"), sample);
    }
}
