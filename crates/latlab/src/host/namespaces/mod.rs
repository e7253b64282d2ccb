//! Network namespaces: the target `lab`, the interfaces of a path, and their configuration.

mod lab;
mod netns;
mod path;
mod route_socket;

pub use lab::Lab;
pub use netns::EnteredNamespace;
pub(crate) use netns::{inside, within};
pub(crate) use path::NetnsInterface;
pub use path::PathInterfaces;
pub(crate) use route_socket::RouteSocket;
