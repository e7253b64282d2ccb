//! Samples the hosts of both ends during runs. Reasons and cost: docs/design/0010-host-samples.md.

mod observer;
mod preopened;
mod processors;
mod thread;

pub use observer::Observer;
pub use processors::{BusyMeter, CpuBusy};
pub use thread::SamplerSpec;
pub(crate) use thread::{SampleSink, Sampler};
