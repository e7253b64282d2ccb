//! The kernel: which, how it was started, how it schedules.

use super::known::FactReader;
use crate::facts::KernelFacts;
use crate::host::root::HostRoot;

pub(super) fn version(root: &HostRoot) -> Result<String, String> {
    Ok(format!("{} {}", root.text("proc/sys/kernel/ostype")?, root.text("proc/sys/kernel/osrelease")?))
}

pub(super) fn architecture(root: &HostRoot) -> Result<String, String> {
    // The file came with Linux 6.1; before that, what we were built for is what runs.
    root.text("proc/sys/kernel/arch").or_else(|_| Ok(std::env::consts::ARCH.into()))
}

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> KernelFacts {
    const CPUS: &str = "sys/devices/system/cpu";
    const FAIR_SHARE: &str = "sys/kernel/debug/sched/fair_server/cpu0";
    let mut fact =
        |field: &str, ask: &dyn Fn() -> Result<String, String>| known.fact(&format!("kernel_settings.{field}"), ask);
    let command_line = fact("command_line", &|| root.text("proc/cmdline"));
    let preemption = fact("preemption", &|| preemption(root));
    let isolated_cpus = fact("isolated_cpus", &|| root.text(&format!("{CPUS}/isolated")));
    let tickless_cpus = fact("tickless_cpus", &|| {
        // Kernels up to 6.6 print a null pointer where no CPU is meant.
        root.text(&format!("{CPUS}/nohz_full")).map(|cpus| cpus.replace("(null)", ""))
    });
    KernelFacts {
        command_line,
        preemption,
        isolated_cpus,
        tickless_cpus,
        rt_period_us: known.fact("kernel_settings.rt_period_us", || root.number("proc/sys/kernel/sched_rt_period_us")),
        fair_share_runtime_ns: known
            .fact("kernel_settings.fair_share_runtime_ns", || root.number(&format!("{FAIR_SHARE}/runtime"))),
        fair_share_period_ns: known
            .fact("kernel_settings.fair_share_period_ns", || root.number(&format!("{FAIR_SHARE}/period"))),
    }
}

/// `Linux version … #1 SMP PREEMPT_DYNAMIC …`
fn preemption(root: &HostRoot) -> Result<String, String> {
    let version = root.text("proc/version")?;
    let word = version.split_whitespace().find(|word| word.starts_with("PREEMPT"));
    Ok(word.unwrap_or("none").into())
}
