//! Temperatures and throttling.

use std::collections::BTreeMap;

use super::known::FactReader;
use crate::facts::{ByCpu, FirmwareThrottling, HeatFacts};
use crate::host::root::HostRoot;

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> HeatFacts {
    HeatFacts {
        temperatures_celsius: known.fact("heat.temperatures_celsius", || temperatures(root)),
        throttle_counts: known.fact("heat.throttle_counts", || throttle_counts(root)),
        firmware_throttling: known.fact("heat.firmware_throttling", || firmware_throttling(root)),
    }
}

/// Thermal zones; where there are none, the sensors of processors
/// ([thermal](https://docs.kernel.org/driver-api/thermal/sysfs-api.html),
/// [hwmon](https://docs.kernel.org/hwmon/sysfs-interface.html)). Both count in thousandths of a degree.
fn temperatures(root: &HostRoot) -> Result<BTreeMap<String, f64>, String> {
    const ZONES: &str = "sys/class/thermal";
    const SENSORS: &str = "sys/class/hwmon";
    const OF_PROCESSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
    let celsius = |file: &str| root.number::<f64>(file).ok().map(|thousandths| thousandths / 1e3);
    let mut found = BTreeMap::new();
    for zone in root.names(ZONES).into_iter().filter(|name| name.starts_with("thermal_zone")) {
        let kind = root.text(&format!("{ZONES}/{zone}/type")).unwrap_or_default();
        // A zone whose sensor sleeps answers with an error: it is left out.
        found.extend(celsius(&format!("{ZONES}/{zone}/temp")).map(|celsius| (format!("{zone} {kind}"), celsius)));
    }
    for sensor in root.names(SENSORS) {
        let name = root.text(&format!("{SENSORS}/{sensor}/name")).unwrap_or_default();
        if !OF_PROCESSORS.contains(&name.as_str()) || !found.is_empty() {
            continue;
        }
        let inputs = root.names(&format!("{SENSORS}/{sensor}"));
        for input in inputs.iter().filter_map(|file| file.strip_suffix("_input")?.strip_prefix("temp")) {
            let place = format!("{SENSORS}/{sensor}/temp{input}");
            let label = root.text(&format!("{place}_label")).unwrap_or_else(|_| input.into());
            found.extend(celsius(&format!("{place}_input")).map(|celsius| (format!("{name} {label}"), celsius)));
        }
    }
    if found.is_empty() { Err("the kernel knows no sensor that answers".into()) } else { Ok(found) }
}

fn throttle_counts(root: &HostRoot) -> Result<ByCpu<u64>, String> {
    const CPUS: &str = "sys/devices/system/cpu";
    let count = |name: String| {
        let cpu = name.strip_prefix("cpu")?.parse().ok()?;
        Some((cpu, root.number(&format!("{CPUS}/{name}/thermal_throttle/core_throttle_count")).ok()?))
    };
    let counts: ByCpu<u64> = root.names(CPUS).into_iter().filter_map(count).collect();
    if counts.is_empty() { Err("the kernel counts no throttling here".into()) } else { Ok(counts) }
}

/// The firmware's answer as the Raspberry Pi kernel shows it: hexadecimal, without a prefix. The device's
/// place differs: `soc` up to the Pi 4, `soc@107c000000` on the Pi 5.
fn firmware_throttling(root: &HostRoot) -> Result<FirmwareThrottling, String> {
    const DEVICES: &str = "sys/devices/platform";
    let below = |directory: String| {
        root.names(&directory).into_iter().map(move |name| format!("{directory}/{name}")).collect::<Vec<_>>()
    };
    let top = below(DEVICES.into());
    let systems = top.iter().filter(|path| path[DEVICES.len() + 1..].starts_with("soc")).cloned();
    let devices = systems.flat_map(below).chain(top.iter().cloned());
    let firmware = devices.filter(|path| path.ends_with("firmware"));
    let text = firmware.map(|path| root.text(&format!("{path}/get_throttled"))).find_map(Result::ok);
    let text = text.ok_or("no firmware here tells of throttling (only that of a Raspberry Pi does)")?;
    let bits = u32::from_str_radix(text.trim_start_matches("0x"), 16);
    bits.map(FirmwareThrottling).map_err(|_| format!("get_throttled: `{text}` is no hexadecimal number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn sensors_of_processors_stand_in_for_thermal_zones() {
        let host = FakeHost::new()
            .with("sys/class/hwmon/hwmon0/name", "nvme\n")
            .with("sys/class/hwmon/hwmon0/temp1_input", "30000\n")
            .with("sys/class/hwmon/hwmon1/name", "k10temp\n")
            .with("sys/class/hwmon/hwmon1/temp1_label", "Tctl\n")
            .with("sys/class/hwmon/hwmon1/temp1_input", "61250\n")
            .with("sys/class/hwmon/hwmon1/temp3_input", "58000\n");
        let expected = [("k10temp 3".to_owned(), 58.0), ("k10temp Tctl".to_owned(), 61.25)];
        assert_eq!(temperatures(&host.root), Ok(expected.into()));
    }

    #[test]
    fn throttling_is_found_where_boards_keep_it() {
        for place in ["soc/soc:firmware", "soc@107c000000/soc@107c000000:firmware"] {
            let file = format!("sys/devices/platform/{place}/get_throttled");
            let host = FakeHost::new().with(&file, "50000\n");
            assert_eq!(firmware_throttling(&host.root), Ok(FirmwareThrottling(0x5_0000)), "{place}");
            assert!(firmware_throttling(&host.with(&file, "soon").root).is_err());
        }
        let counted = FakeHost::new().with("sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "17\n");
        assert_eq!(throttle_counts(&counted.root).expect("counts")[&3], 17);
    }
}
