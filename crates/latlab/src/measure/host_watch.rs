//! Samples this host while the lanes of a plan take their turns, for the recording of each of them; samples of the far
//! host, taken there meanwhile, are added at the end.

use super::MeasureError;
use super::far_host::FarReturn;
use crate::facts::HostSample;
use crate::host::HostRoot;
use crate::host::sampler::{SampleSink, Sampler, SamplerSpec};
use crate::plan::Side;
use crate::recording::{HostLog, RecordingError};

/// A run that keeps samples of the hosts.
pub(crate) trait Sampled {
    /// Where samples of the hosts go that are taken while it runs.
    fn host_log(&mut self) -> Result<HostLog, RecordingError>;
    /// Takes that log back; so many samples of the far host were given up.
    fn keep_host_log(&mut self, log: &HostLog, given_up: u64);
}

/// The logs of all lanes, in their order: each recording stands for itself, so each gets every sample.
struct EveryLog(Vec<HostLog>);

impl SampleSink for EveryLog {
    fn take(&mut self, sample: HostSample) {
        self.0.iter_mut().for_each(|log| log.push(Side::Local, &sample));
    }
}

/// Sampling that goes on.
pub(crate) struct HostWatch(Sampler<EveryLog>);

impl HostWatch {
    /// Begins to sample this host as `spec` says into the recordings of `lanes`.
    pub(crate) fn begin<L: Sampled>(lanes: &mut [L], spec: SamplerSpec) -> Result<HostWatch, MeasureError> {
        let logs: Result<Vec<HostLog>, _> = lanes.iter_mut().map(L::host_log).collect();
        let sampler = Sampler::start(HostRoot::live(), spec, EveryLog(logs?));
        Ok(HostWatch(sampler.map_err(MeasureError::Thread)?))
    }

    /// Takes the last sample of this host.
    pub(crate) fn end(self) -> Watched {
        Watched(self.0.stop())
    }
}

/// The logs of all lanes, with every sample of this host in them.
pub(crate) struct Watched(EveryLog);

impl Watched {
    /// Adds what came home from the far host, and gives each lane its log back.
    pub(crate) fn keep<L: Sampled>(self, lanes: &mut [L], far: &FarReturn) {
        let Watched(EveryLog(mut logs)) = self;
        for log in &mut logs {
            far.samples.iter().for_each(|sample| log.push(Side::Peer, sample));
        }
        lanes.iter_mut().zip(logs).for_each(|(lane, log)| lane.keep_host_log(&log, far.given_up));
    }
}
