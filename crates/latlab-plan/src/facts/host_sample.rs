//! Samples of a host during a run: counters since its boot, and a few states.
//!
//! Counters are stored as the kernel counts them, not as differences, so that a lost sample reduces the resolution but no
//! sum. Values that cannot be read are null. Columns and units: docs/recording.md, section 6.

use serde::{Deserialize, Serialize};

/// Defines a row of nullable numbers with their column names.
macro_rules! readings {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<i64>,)+
        }

        impl $name {
            /// Column names, in the order of the file.
            pub const COLUMNS: [&str; [$(stringify!($field)),+].len()] = [$(stringify!($field)),+];
            pub const WIDTH: usize = Self::COLUMNS.len();

            /// The values, in the order of [`Self::COLUMNS`].
            pub const fn numbers(&self) -> [Option<i64>; Self::WIDTH] {
                [$(self.$field),+]
            }

            /// The row of these values.
            pub fn of(numbers: [Option<i64>; Self::WIDTH]) -> Self {
                let [$($field),+] = numbers;
                Self { $($field),+ }
            }
        }
    };
}

/// Maximum number of idle states of a CPU (CPUIDLE_STATE_MAX in linux/cpuidle.h).
pub const IDLE_STATES: usize = 10;

readings! {
    /// One CPU. Times from `/proc/stat` are multiples of a clock tick of 10 ms.
    CpuReadings {
        /// Busy, interrupts included (`/proc/stat`: user, nice, system, irq, softirq), ns since boot.
        busy_ns,
        /// In hard and soft interrupts, a part of `busy_ns`, ns since boot.
        interrupt_ns,
        /// Idle or waiting for a disk (`/proc/stat`), ns since boot.
        idle_ns,
        /// Ready to run while the hypervisor ran another guest, ns since boot.
        steal_ns,
        frequency_khz,
        /// Hard interrupts served since boot (`/proc/interrupts`).
        interrupts,
        /// Packets dropped since boot because the backlog of the CPU was full (`/proc/net/softnet_stat`).
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
        /// UDP datagrams dropped since boot because the receive buffer of a socket was full (`RcvbufErrors` of IPv4 and IPv6).
        udp_receive_drops,
        /// Packets dropped on receipt by interfaces (`/proc/net/dev`: drop and fifo), all interfaces.
        nic_receive_drops,
        /// Packets dropped by interfaces before they left, all interfaces.
        nic_send_drops,
        /// Temperature of the hottest thermal zone, thousandths of a degree Celsius.
        temperature_millicelsius,
        /// The highest state of the cooling devices that slow down CPUs; 0: none is active.
        cooling_state,
        /// The flags of a Raspberry Pi's firmware (`get_throttled`): bits 0 to 3 now, 16 to 19 since boot.
        firmware_throttled,
        /// CPU time of latlab and its child processes since their start, ns.
        own_ns,
        /// CPU time of the sampling thread, a part of `own_ns`, ns.
        sampler_ns,
    }
}

/// Bits of `firmware_throttled` for current conditions: under-voltage, frequency capped, throttled, soft limit.
pub const FIRMWARE_NOW: i64 = 0xf;
/// Bits of `firmware_throttled` for conditions at any time since boot.
pub const FIRMWARE_SINCE_BOOT: i64 = 0xf_0000;

/// One sample of a host. It has the time and CPU of the sampler, so that effects of sampling itself can be found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSample {
    /// Sequence number among the samples of this host, from 0.
    pub seq: u64,
    /// Before the first file was read, CLOCK_MONOTONIC of the sampled host, ns.
    pub start_ns: i64,
    /// After the last file was read.
    pub end_ns: i64,
    /// The CPU of the sampler, if known.
    pub sampler_cpu: Option<u16>,
    pub host: HostReadings,
    /// Each CPU that was online when sampling began, ascending.
    pub cpus: Vec<(u16, CpuReadings)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_restored_from_their_numbers() {
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
}
