//! This host: what it is, what would spoil a measurement on it, where a thread runs, and a lab of its own.

pub mod activity;
pub mod calibration;
pub mod cpu_list;
pub mod doctor;
pub mod facts;
mod ground;
mod guard;
#[cfg(test)]
mod hosts;
mod journal;
mod knob;
mod knob_refusal;
pub mod lab;
pub mod lifeline;
mod owner;
pub mod placement;
pub mod refusal;
pub mod restoring;
pub mod rights;
pub mod root;
mod route_interface;
mod route_socket;
pub mod sampler;
mod small_mtu;
pub mod tracing;
mod turn;
mod whereabouts;

pub use ground::PathInterfaces;
pub use guard::HostGuard;
pub use journal::KnobJournal;
pub use knob::Knob;
pub use knob_refusal::KnobError;
pub use lab::Lab;
pub use refusal::HostError;
pub use root::HostRoot;
