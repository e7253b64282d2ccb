//! `net=RATE|P%|max[:size=…,wire,cpu=…,spin]`: a network load, settled.

use super::load::Parts;
use super::{RequestError, value};
use crate::plan::{LoadKind, Pace, PaceError, StreamSpec, defaults};
use crate::units::human::{self, NetworkRate};

const KEYS: [&str; 4] = ["size", "wire", "cpu", "spin"];

pub(super) fn net(parts: &Parts<'_>) -> Result<LoadKind, RequestError> {
    let pace = pace(parts)?;
    parts.know_only(&KEYS)?;
    let usual = StreamSpec::at(pace);
    let whole = |key: &'static str, range| parts.extra(key).map(|typed| value::whole("--load net", typed, range));
    let size = parts.extra("size").map(human::parse_size).transpose();
    let size = size.map_err(|source| value::unreadable("--load", source))?;
    let (least, most) = (defaults::SIZE_MIN_BYTES, defaults::SIZE_MAX_BYTES);
    if size.is_some_and(|size| size < least || size > most) {
        return Err(parts.refuse("no packet has that size", format!("from `size={least}` to `size={most}`")));
    }
    let cpu = whole("cpu", 0..=u64::from(defaults::CPU_MAX)).transpose()?.map(|cpu| cpu as u16);
    let (wire, spin) = (parts.flag("wire")?, parts.flag("spin")?);
    let stream = StreamSpec { size_bytes: size.or(usual.size_bytes), wire, cpu, spin, ..usual };
    match stream.check() {
        Ok(()) => Ok(LoadKind::Net(stream)),
        Err(PaceError::TooSlow(least)) => {
            let cause = "it is too slow to be a load: each 100 ms is to have a packet";
            Err(parts.refuse(cause, format!("the least is `net={least}`")))
        }
        Err(PaceError::TooFast(most)) => {
            Err(parts.refuse("it is more than any path carries", format!("the most is `net={most}`")))
        }
    }
}

fn pace(parts: &Parts<'_>) -> Result<Pace, RequestError> {
    let unreadable = |source| parts.unreadable(source);
    if parts.value == "max" {
        return Ok(Pace::Max);
    }
    if parts.value.ends_with('%') {
        let share = human::parse_percent(parts.value).map_err(unreadable)?;
        return Ok(Pace::Share { share });
    }
    Ok(match human::parse_network_rate(parts.value).map_err(unreadable)? {
        NetworkRate::Bits(bps) => Pace::Rate { bps },
        NetworkRate::Packets(pps) => Pace::Packets { pps },
    })
}
