//! Network namespaces: the target `lab`, the interfaces of a path, and their configuration.

mod lab;
mod netns;

pub use lab::Lab;
pub use netns::{EnteredNamespace, PathInterfaces};
pub(super) use netns::{NetnsInterface, inside, within};
