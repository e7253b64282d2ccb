//! Messages over DDS, by Eclipse Cyclone DDS: the library is compiled from its C sources, and only this crate calls it.
//!
//! A [`Participant`] joins a domain; its [`Writer`]s and [`Reader`]s exchange messages through topics, whose types are in
//! `idl/latlab.idl`. The library starts its own threads for receiving and for what is due, and allocates for each sample
//! that it sends or receives; this crate does not.

#![allow(unsafe_code, reason = "calls of a C library")]

mod endpoint;
mod error;
mod ffi;
mod participant;
mod qos;
mod receiving;

pub use endpoint::{MatchedWriter, Reader, Sample, TopicType, Writer, are_matched};
pub use error::DdsError;
pub use participant::{IMPLEMENTATION, Participant};
pub use qos::{History, Qos, Reliability, policy_name};
pub use receiving::Receiving;
