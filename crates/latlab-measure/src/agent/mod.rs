//! latlab on another host, both ends of the agent protocol (docs/agent-protocol.md).
//!
//! `frame` and `message` define the protocol. `controller` is the end of the measuring host: `process` runs the command
//! that connects, `connection` exchanges requests and replies. `serve` is the end of the agent: `handler` carries out
//! requests, `sampling` collects host samples, `tracing` what the CPUs ran, `watchdog` restores the host of an agent that was
//! killed.

mod connection;
mod controller;
mod error;
pub mod frame;
mod handler;
mod message;
mod process;
mod sampling;
mod serve;
mod tracing;
mod watchdog;

pub use controller::{Agent, remote_facts};
pub use error::AgentError;
pub use handler::RequestHandler;
pub use message::{Greeting, LoadsRequest, LoadsStatus, NetLoadPath, Reply, Request, SamplePage, SettingsRequest};
pub use serve::{AgentEnd, ServeStreams, serve};
pub use watchdog::wait_for_end;
