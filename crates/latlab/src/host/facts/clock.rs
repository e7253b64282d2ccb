//! Clocks, and who keeps them in step.

use super::clock_keeper;
use super::known::FactReader;
use crate::facts::{ClockDiscipline, ClockFacts};
use crate::host::root::HostRoot;

const SOURCES: &str = "sys/devices/system/clocksource/clocksource0";

/// The clocksource in use.
pub(super) fn source(root: &HostRoot) -> Result<String, String> {
    root.text(&format!("{SOURCES}/current_clocksource"))
}

/// The clocksources that there are.
pub(super) fn available(root: &HostRoot) -> Result<Vec<String>, String> {
    let names = root.text(&format!("{SOURCES}/available_clocksource"))?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> ClockFacts {
    let left = known.left();
    ClockFacts {
        clocksources: known.fact("clock.clocksources", || available(root)),
        discipline: known.fact("clock.discipline", || discipline(root)),
        keeper: known.fact("clock.keeper", || match root.is_live() {
            true => clock_keeper::ask(left),
            false => Err(super::NOT_THIS_HOST.into()),
        }),
    }
}

fn discipline(root: &HostRoot) -> Result<ClockDiscipline, String> {
    if !root.is_live() {
        return Err(super::NOT_THIS_HOST.into());
    }
    let state = latlab_sys::discipline::read().map_err(|error| latlab_sys::errno::explain(&error))?;
    Ok(ClockDiscipline {
        synchronised: state.synchronised,
        estimated_error_us: state.estimated_error_us,
        maximum_error_us: state.maximum_error_us,
        frequency_ppm: state.frequency_scaled_ppm as f64 / 65_536.0,
        tai_offset_s: state.tai_offset_s,
        status: state.status,
    })
}
