//! What conducting asks of a run with a path, whatever it measures there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::host_watch::HasRecording;
use super::lane::{RunEnd, SessionLifetime};
use super::{MeasureError, Peer, RecordingTarget};
use crate::facts::{LoadReport, SettingFacts};
use crate::plan::RunSpec;
use crate::recording::Finished;
use crate::session::PreSharedKey;

/// A run between its opening and its closing.
pub(super) trait MeasuredRun: HasRecording + Send + Sized {
    /// Opens path, sessions and recording, in this order: a target that does not answer leaves no recording behind, and a
    /// store that refuses stops the run before anything was sent.
    fn open(
        spec: &RunSpec,
        peer: &Peer,
        key: Option<&PreSharedKey>,
        place: RecordingTarget<'_>,
        lasting: SessionLifetime,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, MeasureError>;

    /// Measures the warm-up.
    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), MeasureError>;

    /// Measures slice `round` of `rounds`.
    fn measure(&mut self, round: u32, rounds: u32, stop: &AtomicBool) -> Result<(), MeasureError>;

    /// Takes everything back: nothing was measured. The sessions are ended too, since they hold places in the reflector
    /// that the next try may need.
    fn discard(self);

    /// Ends the sessions and finishes the recording.
    fn close(self, outcome: RunEnd) -> Result<Finished, MeasureError>;

    /// Writes down what the far host told about itself, where an agent stands there.
    fn note_far_host(&mut self, peer: &Peer) {
        if let Some(far) = peer.far() {
            let manifest = self.writer().manifest_mut();
            (manifest.peer, manifest.clock_relation) = (far.facts().clone(), far.relation());
        }
    }

    /// Writes down what the loads beside the run reached.
    fn note_loads(&mut self, loads: &[LoadReport]) {
        self.writer().manifest_mut().loads = loads.to_vec();
    }

    /// Writes down how the settings of the run were put back.
    fn note_settings(&mut self, settings: &[SettingFacts]) {
        self.writer().manifest_mut().settings = settings.to_vec();
    }
}
