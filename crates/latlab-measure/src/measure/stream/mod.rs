//! One-way streams: sending and receiving loops, the flows of a run, rate searches, and network loads.

mod down_credit;
mod down_intervals;
mod down_receiver;
mod flow;
mod goal_search;
mod meter;
mod net_load;
mod rate_search;
mod run;
mod search;
mod sender;
mod sessions;
mod token_schedule;

pub use down_receiver::DownReceiver;
pub use meter::{MeterPoint, StreamMeter};
pub use net_load::{NetLoadCommands, NetLoadOutcome, run_net_load};
pub(super) use run::StreamRun;
pub use sender::{StreamError, StreamSender};
pub use token_schedule::TokenSchedule;
