//! The limits of the control group of this process and of those above it, as far as it can see them
//! ([cgroups(7)](https://man7.org/linux/man-pages/man7/cgroups.7.html)): version 2, and the controllers of version 1.

use std::path::Path;

use super::reader::FactReader;
use crate::facts::CgroupFacts;
use crate::host::root::HostRoot;

const MOUNT: &str = "sys/fs/cgroup";
/// Without a limit version 1 states the largest number of bytes in whole pages.
const NO_LIMIT: u64 = 1 << 62;

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> CgroupFacts {
    let limits = |group: String| Some((quota(root, &group)?, root.text(&format!("{group}/cpu.stat")).ok()?));
    let (quotas, stats): (Vec<f64>, Vec<String>) = groups(root, "cpu").into_iter().filter_map(limits).unzip();
    let cpu_quota = quotas.into_iter().min_by(f64::total_cmp).ok_or("it has no quota");
    let periods = |line: &str| line.strip_prefix("nr_throttled ")?.trim().parse::<u64>().ok();
    let throttled_periods = stats.iter().flat_map(|stat| stat.lines()).filter_map(periods).max().unwrap_or(0);
    CgroupFacts {
        cpu_quota: known.fact("cgroup.cpu_quota", || Ok(cpu_quota?)),
        throttled_periods: known.fact("cgroup.throttled_periods", || Ok(cpu_quota.map(|_| throttled_periods)?)),
        cpus: known.fact("cgroup.cpus", || Ok(cpus(root).ok_or("it has no cpuset")?)),
        memory_limit_bytes: known
            .fact("cgroup.memory_limit_bytes", || Ok(memory_limit(root).ok_or("it has no limit")?)),
    }
}

/// The least memory that the control group of this process may use, or one above it; `None` without a limit.
pub fn memory_limit(root: &HostRoot) -> Option<u64> {
    let number = |group: &String, file: &str| root.number::<u64>(&format!("{group}/{file}")).ok();
    let limit = |group| number(&group, "memory.max").or_else(|| number(&group, "memory.limit_in_bytes"));
    groups(root, "memory").into_iter().filter_map(limit).min().filter(|limit| *limit < NO_LIMIT)
}

/// The directories of the group for `controller` and of those above it, the nearest first; some may not exist here.
fn groups(root: &HostRoot, controller: &str) -> Vec<String> {
    let text = root.text("proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for (names, path) in text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':')) {
        let mounts = match names {
            "" => vec![MOUNT.to_owned(), format!("{MOUNT}/unified")],
            names if names.split(',').any(|name| name == controller) => vec![format!("{MOUNT}/{controller}")],
            _ => continue,
        };
        let above: Vec<_> = Path::new(path).ancestors().map(Path::display).collect();
        found.extend(mounts.iter().flat_map(|mount| above.iter().map(move |path| format!("{mount}{path}"))));
    }
    found
}

/// CPUs whose time the group gets.
fn quota(root: &HostRoot, group: &str) -> Option<f64> {
    let number = |file: &str| root.number::<f64>(&format!("{group}/{file}")).ok();
    let (quota, period) = match root.text(&format!("{group}/cpu.max")).as_deref().map(|both| both.split_once(' ')) {
        Ok(both) => (both?.0.parse().ok()?, both?.1.parse().ok()?),
        Err(_) => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0).then_some(quota / period)
}

fn cpus(root: &HostRoot) -> Option<String> {
    let text = |group: &String, file: &str| root.text(&format!("{group}/{file}")).ok();
    let cpus = |group| text(&group, "cpuset.cpus.effective").or_else(|| text(&group, "cpuset.effective_cpus"));
    groups(root, "cpuset").into_iter().filter_map(cpus).find(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::host::root::tests::FakeHost;

    fn of(host: &FakeHost) -> CgroupFacts {
        read(&host.root, &mut FactReader::new(Instant::now()))
    }

    #[test]
    fn the_narrowest_limits_of_both_versions_are_read() {
        let expected = CgroupFacts {
            cpu_quota: Some(0.2),
            throttled_periods: Some(7),
            cpus: Some("1-2".into()),
            memory_limit_bytes: Some(64 << 20),
        };
        let unified = FakeHost::new()
            .with("proc/self/cgroup", "0::/pod/latlab\n")
            .with("sys/fs/cgroup/pod/cpu.max", "20000 100000\n")
            .with("sys/fs/cgroup/pod/cpu.stat", "nr_periods 9\nnr_throttled 7\n")
            .with("sys/fs/cgroup/pod/latlab/cpu.max", "max 100000\n")
            .with("sys/fs/cgroup/pod/latlab/cpuset.cpus.effective", "1-2\n")
            .with("sys/fs/cgroup/pod/memory.max", "67108864\n")
            .with("sys/fs/cgroup/pod/latlab/memory.max", "max\n");
        assert_eq!(of(&unified), expected);
        // The paths are those of the host, of which a container sees its own group as the root.
        let old = FakeHost::new()
            .with("proc/self/cgroup", "4:memory:/docker/1\n3:cpuset:/docker/1\n1:cpu,cpuacct:/docker/1\n0::/\n")
            .with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "20000\n")
            .with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
            .with("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 9\nnr_throttled 7\n")
            .with("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "1-2\n")
            .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
        assert_eq!(of(&old), expected);
        let free = old
            .with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
            .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(of(&free), CgroupFacts { cpus: Some("1-2".into()), ..CgroupFacts::default() });
        assert_eq!(of(&FakeHost::new()), CgroupFacts::default());
    }
}
