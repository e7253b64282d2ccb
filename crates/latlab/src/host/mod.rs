//! This host: what it is, what would spoil a measurement on it, where a thread runs, and a lab of its own.

pub mod activity;
pub mod calibration;
pub mod cpu_list;
pub mod doctor;
pub mod facts;
#[cfg(test)]
mod hosts;
pub mod lab;
pub mod lifeline;
pub mod placement;
pub mod refusal;
pub mod rights;
pub mod root;
mod route_interface;
mod route_socket;
pub mod sampler;

pub use lab::Lab;
pub use refusal::HostError;
pub use root::HostRoot;
