//! What chrony or ntpd says about the clock that it keeps, where one is installed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::program::{ProgramOutput, ask as ask_program};
use crate::facts::ClockKeeper;

/// Neither program needs more than a few milliseconds; one that has to wait for a dead daemon is given up.
const PATIENCE: Duration = Duration::from_millis(300);

/// Asks whoever is there, within `left`.
pub(super) fn ask(left: Duration) -> Result<ClockKeeper, String> {
    let patience = PATIENCE.min(left);
    // Comma separated values, no names looked up: the question leaves this host as little as the answer.
    let chrony = match ask_program("chronyc", &["-c", "-n", "tracking"], patience) {
        ProgramOutput::Said(text) => return of_chrony(&text),
        ProgramOutput::Failed(reason) => Some(reason),
        ProgramOutput::Absent => None,
    };
    let variables = "rv 0 leap,stratum,rootdelay,rootdisp,refid,offset,frequency,sys_jitter";
    let ntp = match ask_program("ntpq", &["-n", "-c", variables], patience) {
        ProgramOutput::Said(text) => return of_ntp(&text),
        ProgramOutput::Failed(reason) => Some(reason),
        ProgramOutput::Absent => None,
    };
    Err(chrony.or(ntp).unwrap_or_else(|| "neither `chronyc` nor `ntpq` is installed".into()))
}

/// `chronyc -c tracking`: reference id, name or address, stratum, reference time, offset, last offset, RMS
/// offset, frequency, residual frequency, skew, root delay, root dispersion, update interval, leap status;
/// seconds and parts per million
/// ([chronyc(1)](https://chrony-project.org/doc/4.6/chronyc.html)).
fn of_chrony(text: &str) -> Result<ClockKeeper, String> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let [_, reference, stratum, _, offset, _, rms, frequency, _, _, delay, dispersion, _, leap] = fields[..] else {
        return Err(format!("`chronyc`: {} values instead of 14", fields.len()));
    };
    let nanos = |seconds: &str| seconds.parse::<f64>().ok().map(|seconds| seconds * 1e9);
    Ok(ClockKeeper {
        name: "chrony".into(),
        reference: Some(reference.into()).filter(|reference: &String| !reference.is_empty()),
        stratum: stratum.parse().ok(),
        offset_ns: nanos(offset),
        scatter_ns: nanos(rms),
        root_delay_ns: nanos(delay),
        root_dispersion_ns: nanos(dispersion),
        frequency_ppm: frequency.parse().ok(),
        synchronised: Some(leap != "Not synchronised"),
    })
}

/// `ntpq -c "rv 0 …"`: `name=value` separated by commas and line ends; milliseconds and parts per million
/// ([ntpq](https://www.ntp.org/documentation/4.2.8-series/ntpq/)).
fn of_ntp(text: &str) -> Result<ClockKeeper, String> {
    let pairs = text.split([',', '\n']).filter_map(|pair| pair.trim().split_once('='));
    let values: BTreeMap<&str, &str> = pairs.collect();
    if values.is_empty() {
        return Err(format!("`ntpq` said `{}`", text.lines().next().unwrap_or_default()));
    }
    let number = |name: &str| values.get(name)?.parse::<f64>().ok();
    let nanos = |name: &str| number(name).map(|millis| millis * 1e6);
    Ok(ClockKeeper {
        name: "ntp".into(),
        reference: values.get("refid").map(|reference| (*reference).into()),
        stratum: values.get("stratum").and_then(|stratum| stratum.parse().ok()),
        offset_ns: nanos("offset"),
        scatter_ns: nanos("sys_jitter"),
        root_delay_ns: nanos("rootdelay"),
        root_dispersion_ns: nanos("rootdisp"),
        frequency_ppm: number("frequency"),
        // Leap 3 (`11`) is an unsynchronised clock: RFC 5905, figure 9.
        synchronised: values.get("leap").map(|leap| !matches!(*leap, "11" | "3")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chrony_speaks_in_seconds() {
        let line = "A29FC801,162.159.200.1,4,1763770000.123,-0.000012000,0.000034,0.000084,-7.5,-0.001,0.05,0.008,0.0005,64.2,Normal\n";
        let keeper = of_chrony(line).expect("fourteen values");
        assert_eq!((keeper.reference.as_deref(), keeper.stratum), (Some("162.159.200.1"), Some(4)));
        assert_eq!(keeper.frequency_ppm, Some(-7.5));
        let near = |value: Option<f64>, expected: f64| (value.expect("known") - expected).abs() < 1e-3;
        assert!(near(keeper.offset_ns, -12_000.0) && near(keeper.scatter_ns, 84_000.0));
        assert!(near(keeper.error_bound_ns(), 12_000.0 + 4_000_000.0 + 500_000.0));
        assert_eq!(keeper.synchronised, Some(true));
        let lost = of_chrony(&line.replace("Normal", "Not synchronised")).expect("fourteen values");
        assert_eq!(lost.synchronised, Some(false));
        assert!(of_chrony("506 Cannot talk to daemon").is_err());
    }

    #[test]
    fn ntp_speaks_in_milliseconds() {
        let text = "leap=00, stratum=2, rootdelay=8.250, rootdisp=1.5, refid=192.0.2.1,\noffset=-0.250, frequency=12.5, sys_jitter=0.125\n";
        let keeper = of_ntp(text).expect("values");
        assert_eq!((keeper.offset_ns, keeper.scatter_ns), (Some(-250_000.0), Some(125_000.0)));
        assert_eq!((keeper.stratum, keeper.synchronised), (Some(2), Some(true)));
        assert_eq!(of_ntp(&text.replace("leap=00", "leap=11")).expect("values").synchronised, Some(false));
        assert!(of_ntp("ntpq: read: Connection refused\n").is_err());
    }
}
