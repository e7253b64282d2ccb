//! Clocks and their synchronisation, as reported by the kernel, and by chrony or ntpd if one is installed.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use latlab_sys::errno;

use super::reader::{FactReader, NOT_THIS_HOST};
use crate::facts::{ClockDiscipline, ClockFacts, ClockKeeper};
use crate::host::root::HostRoot;

const SOURCES: &str = "sys/devices/system/clocksource/clocksource0";

pub(super) fn source(root: &HostRoot) -> Result<String, String> {
    root.text(&format!("{SOURCES}/current_clocksource"))
}

pub(super) fn available(root: &HostRoot) -> Result<Vec<String>, String> {
    let names = root.text(&format!("{SOURCES}/available_clocksource"))?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> ClockFacts {
    let left = known.left();
    ClockFacts {
        clocksources: known.fact("clock.clocksources", || available(root)),
        discipline: known.fact("clock.discipline", || discipline(root)),
        keeper: known.fact("clock.keeper", || if root.is_live() { keeper(left) } else { Err(NOT_THIS_HOST.into()) }),
    }
}

fn discipline(root: &HostRoot) -> Result<ClockDiscipline, String> {
    if !root.is_live() {
        return Err(NOT_THIS_HOST.into());
    }
    let state = latlab_sys::clock::discipline().map_err(|error| errno::explain(&error))?;
    Ok(ClockDiscipline {
        synchronised: state.synchronised,
        estimated_error_us: state.estimated_error_us,
        maximum_error_us: state.maximum_error_us,
        frequency_ppm: state.frequency_scaled_ppm as f64 / 65_536.0,
        tai_offset_s: state.tai_offset_s,
        status: state.status,
    })
}

/// How long a program may take. Both answer within milliseconds, unless they wait for a daemon that died.
const PATIENCE: Duration = Duration::from_millis(300);

/// The report of chrony, else of ntpd, within `left`.
fn keeper(left: Duration) -> Result<ClockKeeper, String> {
    let patience = PATIENCE.min(left);
    // Comma separated values; no look-up of names, which would send packets.
    let chrony = match run("chronyc", &["-c", "-n", "tracking"], patience) {
        ProgramOutput::Printed(text) => return parse_chrony(&text),
        ProgramOutput::Failed(reason) => Some(reason),
        ProgramOutput::Absent => None,
    };
    let variables = "rv 0 leap,stratum,rootdelay,rootdisp,refid,offset,frequency,sys_jitter";
    let ntp = match run("ntpq", &["-n", "-c", variables], patience) {
        ProgramOutput::Printed(text) => return parse_ntp(&text),
        ProgramOutput::Failed(reason) => Some(reason),
        ProgramOutput::Absent => None,
    };
    Err(chrony.or(ntp).unwrap_or_else(|| "neither `chronyc` nor `ntpq` is installed".into()))
}

/// `chronyc -c tracking`: reference id, name or address, stratum, reference time, offset, last offset, RMS
/// offset, frequency, residual frequency, skew, root delay, root dispersion, update interval, leap status;
/// seconds and parts per million
/// ([chronyc(1)](https://chrony-project.org/doc/4.6/chronyc.html)).
fn parse_chrony(text: &str) -> Result<ClockKeeper, String> {
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
fn parse_ntp(text: &str) -> Result<ClockKeeper, String> {
    let pairs = text.split([',', '\n']).filter_map(|pair| pair.trim().split_once('='));
    let values: BTreeMap<&str, &str> = pairs.collect();
    if values.is_empty() {
        return Err(format!("`ntpq` printed `{}`", text.lines().next().unwrap_or_default()));
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
        // Leap 3 (`11`) is an unsynchronised clock (RFC 5905, figure 9).
        synchronised: values.get("leap").map(|leap| !matches!(*leap, "11" | "3")),
    })
}

/// The time between two checks whether a program has ended. Its output of a few hundred bytes fits into the pipe, so that
/// it never waits for the reader.
const POLL_PERIOD: Duration = Duration::from_millis(1);

#[derive(Debug, PartialEq, Eq)]
enum ProgramOutput {
    /// The program is not installed.
    Absent,
    Printed(String),
    /// It did not end in time, or with an error: the reason.
    Failed(String),
}

/// Runs `name` with `arguments`, and kills it after `patience`.
fn run(name: &str, arguments: &[&str], patience: Duration) -> ProgramOutput {
    let deadline = Instant::now() + patience;
    let spawned = Command::new(name)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    match spawned {
        Ok(child) => output(name, ChildGuard { child }, deadline),
        Err(error) if error.kind() == io::ErrorKind::NotFound => ProgramOutput::Absent,
        Err(error) => ProgramOutput::Failed(format!("`{name}`: {}", errno::explain(&error))),
    }
}

/// A process that is killed when this is dropped.
struct ChildGuard {
    child: Child,
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // An error if it has ended, which is the usual case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn output(name: &str, mut running: ChildGuard, deadline: Instant) -> ProgramOutput {
    let status = loop {
        match running.child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL_PERIOD),
            Ok(None) => return ProgramOutput::Failed(format!("`{name}` did not answer in time")),
            Err(error) => return ProgramOutput::Failed(format!("`{name}`: {}", errno::explain(&error))),
        }
    };
    let mut text = String::new();
    let read = running.child.stdout.take().map(|output| output.take(1 << 16).read_to_string(&mut text));
    match read {
        Some(Ok(_)) if status.success() => ProgramOutput::Printed(text),
        Some(Ok(_)) => {
            ProgramOutput::Failed(format!("`{name}` failed: {}", text.lines().next().unwrap_or("it said nothing")))
        }
        _ => ProgramOutput::Failed(format!("`{name}` printed something that is not text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chrony_reports_seconds() {
        let line = "A29FC801,162.159.200.1,4,1763770000.123,-0.000012000,0.000034,0.000084,-7.5,-0.001,0.05,0.008,0.0005,64.2,Normal\n";
        let keeper = parse_chrony(line).expect("fourteen values");
        assert_eq!((keeper.reference.as_deref(), keeper.stratum), (Some("162.159.200.1"), Some(4)));
        assert_eq!(keeper.frequency_ppm, Some(-7.5));
        let near = |value: Option<f64>, expected: f64| (value.expect("known") - expected).abs() < 1e-3;
        assert!(near(keeper.offset_ns, -12_000.0) && near(keeper.scatter_ns, 84_000.0));
        assert!(near(keeper.error_bound_ns(), 12_000.0 + 4_000_000.0 + 500_000.0));
        assert_eq!(keeper.synchronised, Some(true));
        let lost = parse_chrony(&line.replace("Normal", "Not synchronised")).expect("fourteen values");
        assert_eq!(lost.synchronised, Some(false));
        assert!(parse_chrony("506 Cannot talk to daemon").is_err());
    }

    #[test]
    fn ntp_reports_milliseconds() {
        let text = "leap=00, stratum=2, rootdelay=8.250, rootdisp=1.5, refid=192.0.2.1,\noffset=-0.250, frequency=12.5, sys_jitter=0.125\n";
        let keeper = parse_ntp(text).expect("values");
        assert_eq!((keeper.offset_ns, keeper.scatter_ns), (Some(-250_000.0), Some(125_000.0)));
        assert_eq!((keeper.stratum, keeper.synchronised), (Some(2), Some(true)));
        assert_eq!(parse_ntp(&text.replace("leap=00", "leap=11")).expect("values").synchronised, Some(false));
        assert!(parse_ntp("ntpq: read: Connection refused\n").is_err());
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn programs_print_fail_hang_or_are_absent() {
        assert_eq!(run("sh", &["-c", "echo yes"], LONG), ProgramOutput::Printed("yes\n".into()));
        assert_eq!(run("sh", &["-c", "echo why; exit 1"], LONG), ProgramOutput::Failed("`sh` failed: why".into()));
        assert_eq!(run("no-such-program-anywhere", &[], LONG), ProgramOutput::Absent);
        let hanging = run("sh", &["-c", "exec sleep 1000"], Duration::from_millis(20));
        assert_eq!(hanging, ProgramOutput::Failed("`sh` did not answer in time".into()));
    }
}
