//! The rate that a stream is asked for.

use super::{RequestError, value};
use crate::plan::{Pace, PaceError, StreamRunSpec};
use crate::units::human::{self, NetworkRate};

/// `max`, `1Gbit/s`, `500kpps`, and whether bits are those on a wire.
pub(super) fn rate(typed: Option<&str>) -> Result<(Pace, bool), RequestError> {
    let Some(typed) = typed.filter(|typed| *typed != "max") else { return Ok((Pace::Max, false)) };
    let refuse = |cause: &str, hint: &str| Err(value::unusable("--rate", typed, cause, hint));
    if typed.ends_with('%') {
        return refuse("a share needs a rate to be a share of", "such as `1Gbit/s`, `500kpps` or `max`");
    }
    let (number, wire) = typed.strip_suffix(":wire").map_or((typed, false), |number| (number, true));
    if number == "max" {
        return refuse("`max` is as fast as sends go, whatever bits are counted", "leave out `:wire`");
    }
    match human::parse_network_rate(number).map_err(|source| value::unreadable("--rate", source))? {
        NetworkRate::Bits(bps) => Ok((Pace::Rate { bps }, wire)),
        NetworkRate::Packets(_) if wire => {
            refuse("a packet is a packet, on the wire as before it", "leave out `:wire`")
        }
        NetworkRate::Packets(pps) => Ok((Pace::Packets { pps }, false)),
    }
}

/// That the rate is neither too slow to be told nor too fast to be meant.
pub(super) fn can_be_offered(stream: &StreamRunSpec) -> Result<(), RequestError> {
    let refuse = |cause: &str, hint: String| Err(value::unusable("--rate", stream.rate_words(), cause, hint));
    match stream.check() {
        Ok(()) => Ok(()),
        Err(PaceError::TooSlow(least)) => {
            refuse("each flow is to have a packet in each interval of 100 ms", format!("the least is `{least}`"))
        }
        Err(PaceError::TooFast(most)) => refuse("it is more than any path carries", format!("the most is `{most}`")),
    }
}
