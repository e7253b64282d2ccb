//! Samples a host while something is measured on it, at either end of a path. Why so, and what it costs:
//! docs/design/0010-host-samples.md.

mod observer;
mod preopened;
mod processors;
mod thread;

pub use observer::Observer;
pub use thread::{SampleSink, Sampler, SamplerSpec};
