//! Files of three hosts, for tests: a small board, a large server, a container.

use super::root::tests::FakeHost;

/// A warm Raspberry Pi 4 that had an under-voltage since boot.
pub(super) fn raspberry_pi_4() -> FakeHost {
    let mut host = FakeHost::new()
        .with("proc/sys/kernel/ostype", "Linux\n")
        .with("proc/sys/kernel/osrelease", "6.6.51+rpt-rpi-v8\n")
        .with("proc/sys/kernel/arch", "aarch64\n")
        .with("proc/sys/kernel/random/boot_id", "5f0e8a3c-7d1b-4c6e-9a53-0b1c2d3e4f50\n")
        .with("proc/version", "Linux version 6.6.51+rpt-rpi-v8 (x@y) (gcc) #1 SMP PREEMPT Debian 1:6.6.51-1 (2024)\n")
        .with("proc/cmdline", "coherent_pool=1M console=tty1 root=PARTUUID=1-02 rootwait\n")
        .with("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\n\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n")
        .with("sys/devices/system/cpu/online", "0-3\n")
        .with("sys/devices/system/cpu/isolated", "\n")
        .with("sys/devices/system/cpu/cpufreq/boost", "0\n")
        .with("sys/devices/system/clocksource/clocksource0/current_clocksource", "arch_sys_counter\n")
        .with("sys/devices/system/clocksource/clocksource0/available_clocksource", "arch_sys_counter \n")
        .with("proc/sys/kernel/sched_rt_runtime_us", "950000\n")
        .with("proc/sys/kernel/sched_rt_period_us", "1000000\n")
        .with("proc/self/timerslack_ns", "50000\n")
        .with("proc/loadavg", "0.10 0.20 0.30 1/100 999\n")
        .with("proc/meminfo", "MemTotal:  3884360 kB\nMemFree: 2000000 kB\nMemAvailable: 3300000 kB\nSwapTotal: 102396 kB\nSwapFree: 102396 kB\n")
        .with("proc/vmstat", "pgfault 99\npgmajfault 812\n")
        .with("proc/stat", "cpu  40 0 40 320 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\nctxt 5000\n")
        .with("proc/interrupts", "           CPU0       CPU1       CPU2       CPU3\n 39:       9000          0          0          0     GICv2 189 Level     eth0\n")
        .with("proc/irq/39/smp_affinity_list", "0-3\n")
        .with("proc/softirqs", "      CPU0 CPU1 CPU2 CPU3\nNET_RX: 8000 1 0 2\n")
        .with("proc/sys/net/core/rmem_max", "212992\n")
        .with("proc/sys/net/core/busy_poll", "0\n")
        .with("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n")
        .with("sys/class/thermal/thermal_zone0/temp", "61342\n")
        .with("sys/devices/platform/soc/soc:firmware/get_throttled", "50000\n");
    for (file, text) in [
        ("scaling_governor", "ondemand\n"),
        ("scaling_driver", "cpufreq-dt\n"),
        ("scaling_min_freq", "600000\n"),
        ("scaling_max_freq", "1800000\n"),
        ("cpuinfo_max_freq", "1800000\n"),
        ("scaling_cur_freq", "600000\n"),
        ("affected_cpus", "0 1 2 3\n"),
    ] {
        host = host.with(&format!("sys/devices/system/cpu/cpufreq/policy0/{file}"), text);
    }
    host
}

/// A server with two sockets of two cores of two threads; the last core is isolated.
pub(super) fn two_sockets() -> FakeHost {
    let mut host = FakeHost::new()
        .with("proc/sys/kernel/ostype", "Linux\n")
        .with("proc/sys/kernel/osrelease", "6.12.9-1-amd64\n")
        .with("proc/version", "Linux version 6.12.9-1-amd64 (x@y) (gcc) #1 SMP PREEMPT_DYNAMIC Debian (2025)\n")
        .with("proc/cmdline", "root=/dev/sda1 isolcpus=3,7 nohz_full=3,7\n")
        .with("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9124 16-Core Processor\nflags\t\t: fpu vme\n")
        .with("sys/devices/system/cpu/online", "0-7\n")
        .with("sys/devices/system/cpu/isolated", "3,7\n")
        .with("sys/devices/system/cpu/nohz_full", "3,7\n")
        .with("sys/devices/system/cpu/smt/active", "1\n")
        .with("sys/devices/system/cpu/cpufreq/boost", "1\n")
        .with("sys/devices/system/cpu/cpuidle/current_driver", "acpi_idle\n")
        .with("sys/devices/system/cpu/cpuidle/current_governor_ro", "menu\n")
        .with("sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000\n")
        .with("sys/kernel/debug/sched/fair_server/cpu0/period", "1000000000\n");
    for cpu in 0..8 {
        let at = |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/{file}");
        let policy = |file: &str| format!("sys/devices/system/cpu/cpufreq/policy{cpu}/{file}");
        let core = cpu % 4;
        host = host
            .with(&at("topology/physical_package_id"), if core < 2 { "0\n" } else { "1\n" })
            .with(&at("topology/core_id"), &format!("{}\n", core % 2))
            .with(&at("topology/thread_siblings_list"), &format!("{core},{}\n", core + 4))
            .with(&at("thermal_throttle/core_throttle_count"), "0\n")
            .with(&policy("scaling_governor"), "performance\n")
            .with(&policy("scaling_driver"), "acpi-cpufreq\n")
            .with(&policy("scaling_cur_freq"), "3000000\n")
            .with(&policy("affected_cpus"), &format!("{cpu}\n"));
        for (state, name, exit_latency_us) in [(0, "POLL", 0), (1, "C1", 1), (2, "C2", 800)] {
            let state = |file: &str| at(&format!("cpuidle/state{state}/{file}"));
            host = host
                .with(&state("name"), name)
                .with(&state("latency"), &format!("{exit_latency_us}\n"))
                .with(&state("disable"), "0\n")
                .with(&state("usage"), &format!("{}\n", 100 + cpu))
                .with(&state("time"), "123456\n");
        }
    }
    host
}

/// A container with the fewest files.
pub(super) fn container() -> FakeHost {
    FakeHost::new()
        .with("proc/self/status", "Name:\tlatlab\nCapEff:\t0000000000000000\n")
        .with("proc/self/limits", "Max locked memory 65536 65536 bytes\nMax realtime priority 0 0\n")
}
