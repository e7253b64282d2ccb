//! Network namespaces: the target `lab`, the interfaces of a path, and their configuration.

mod lab;
mod netns;
mod route_socket;

pub use lab::Lab;
pub use netns::{EnteredNamespace, PathInterfaces};
pub(crate) use netns::{NetnsInterface, inside, within};
pub(crate) use route_socket::RouteSocket;
