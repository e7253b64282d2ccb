//! Groups of options that several commands share: the flags of a group, and what they mean for a plan.
#![allow(rustdoc::broken_intra_doc_links, reason = "these comments are help texts")]

pub mod dds;
pub mod path;
mod xdp;

pub use dds::{DdsArgs, DdsDomainArgs};
pub use path::{AddressArgs, KeyFileArgs, KeySource, PathArgs};
pub use xdp::XdpArgs;
