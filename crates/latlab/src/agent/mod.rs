//! latlab on another host: both ends of the agent's conversation (docs/agent-protocol.md).
//!
//! `frame` and `message` are what is said, `connect` is this end, `serve` the far one. What an agent can do to its
//! host stands in `far`, one handler for each request, with `far_settings` and `far_loads`.

mod connect;
mod conversation;
mod errand;
mod error;
mod far;
mod far_loads;
mod far_settings;
pub mod frame;
mod looks;
mod message;
mod sampling;
mod serve;
mod watch;

pub use connect::Agent;
pub use error::{AgentError, RequestFailure};
pub use far::RequestHandler;
pub use far_loads::{LoadsRequest, LoadsStatus, NetLoadPath};
pub use far_settings::SettingsRequest;
pub use looks::{RemoteSamples, far_facts};
pub use message::{Greeting, Reply, Request, SamplePage};
pub use serve::{AgentEnd, ServeStreams, serve};
