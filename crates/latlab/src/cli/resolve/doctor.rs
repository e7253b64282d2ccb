use super::{BareSpec, RequestError, bare, talk};
use crate::cli::args::{BareArgs, DoctorArgs};
use crate::console::Talk;

/// `latlab doctor`, settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorSpec {
    /// The measurement to look at the host for: its pins, waiting, priority and locking.
    pub measurement: BareSpec,
    /// Whether to run it as a bare loop.
    pub calibrate: bool,
    /// Whether only to put back what was left behind.
    pub restore: bool,
    /// One JSON document instead of text.
    pub json: bool,
    /// How much to say on stderr.
    pub talk: Talk,
}

/// Settles `typed`.
pub fn doctor(typed: &DoctorArgs) -> Result<DoctorSpec, RequestError> {
    let measurement =
        bare(&BareArgs { count: None, size: typed.size.clone(), ends: typed.ends.clone(), peer: typed.peer.clone() })?;
    Ok(DoctorSpec {
        measurement,
        calibrate: typed.calibrate,
        restore: typed.restore,
        json: typed.json.json,
        talk: talk(&typed.talk),
    })
}
