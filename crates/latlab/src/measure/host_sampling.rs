//! Samples this host while the lanes of a plan take their turns, for the recording of each of them; samples of the far
//! host, taken there meanwhile, are added at the end.

use super::MeasureError;
use super::remote_host::RemoteResults;
use crate::facts::HostSample;
use crate::host::HostRoot;
use crate::host::sampler::{SampleSink, Sampler, SamplerSpec};
use crate::plan::Side;
use crate::recording::{HostLog, RecordingWriter};

/// A run with a recording of its own.
pub(crate) trait HasRecording {
    /// Who writes its recording: samples of the hosts go there, and what is known about the run.
    fn writer(&mut self) -> &mut RecordingWriter;
}

/// The logs of all lanes, in their order: each recording stands for itself, so each gets every sample.
struct EveryLog(Vec<HostLog>);

impl SampleSink for EveryLog {
    fn take(&mut self, sample: HostSample) {
        self.0.iter_mut().for_each(|log| log.push(Side::Local, &sample));
    }
}

/// Sampling that goes on.
pub(crate) struct HostSampling(Sampler<EveryLog>);

impl HostSampling {
    /// Begins to sample this host as `spec` says into the recordings of `lanes`.
    pub(crate) fn begin<L: HasRecording>(lanes: &mut [L], spec: SamplerSpec) -> Result<HostSampling, MeasureError> {
        let logs: Result<Vec<HostLog>, _> = lanes.iter_mut().map(|lane| lane.writer().host_log()).collect();
        let sampler = Sampler::start(HostRoot::live(), spec, EveryLog(logs?));
        Ok(HostSampling(sampler.map_err(MeasureError::Thread)?))
    }

    /// Takes the last sample of this host.
    pub(crate) fn end(self) -> SampledLogs {
        SampledLogs(self.0.stop())
    }
}

/// The logs of all lanes, with every sample of this host in them.
pub(crate) struct SampledLogs(EveryLog);

impl SampledLogs {
    /// Adds what came home from the far host, and gives each lane its log back.
    pub(crate) fn keep<L: HasRecording>(self, lanes: &mut [L], far: &RemoteResults) {
        let SampledLogs(EveryLog(mut logs)) = self;
        for log in &mut logs {
            far.samples.iter().for_each(|sample| log.push(Side::Peer, sample));
        }
        for (lane, log) in lanes.iter_mut().zip(logs) {
            lane.writer().keep_host_log(&log);
            lane.writer().note_samples_given_up(far.given_up);
        }
    }
}
