//! What an agent sets on its host for the time of a run.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::error::RequestFailure;
use crate::diagnostics::{Explain, Failure};
use crate::facts::{Restoration, SettingFacts};
use crate::host::{HostGuard, HostRoot, KnobError, KnobJournal, PathInterfaces};
use crate::plan::SettingSpec;

/// What is asked of the settings of an agent's host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SettingsRequest {
    /// Find and read these knobs, and change nothing yet: this end reads its own before either host is changed.
    Find {
        /// As typed for a host of one's own: without a side.
        settings: Vec<SettingSpec>,
        /// The other end of the measured path, whose interface is meant where none is named.
        towards: IpAddr,
    },
    /// Turn what was found.
    Turn,
    /// Put everything back, the last first.
    Restore,
}

/// The settings of an agent's host: none, found, or turned. Put back when dropped.
#[derive(Debug, Default)]
pub(super) struct AgentSettings {
    guard: Option<HostGuard>,
}

impl AgentSettings {
    /// Does what `order` asks, and says what stands there now.
    pub(super) fn obey(&mut self, order: SettingsRequest) -> Result<Vec<SettingFacts>, RequestFailure> {
        match order {
            SettingsRequest::Find { settings, towards } => self.find(&settings, towards),
            SettingsRequest::Turn => {
                let mut guard =
                    self.guard.take().ok_or_else(|| RequestFailure::world("cannot set", "nothing was found"))?;
                // A guard that is dropped with its error puts back what it had set.
                guard.apply(KnobJournal::for_user().as_ref())?;
                Ok(self.guard.insert(guard).facts())
            }
            SettingsRequest::Restore => Ok(self.guard.take().map(|mut guard| guard.restore()).unwrap_or_default()),
        }
    }

    fn find(&mut self, settings: &[SettingSpec], towards: IpAddr) -> Result<Vec<SettingFacts>, RequestFailure> {
        if self.guard.is_some() {
            return Err(RequestFailure::world("cannot find settings", "this agent holds others"));
        }
        let guard = HostGuard::find(settings, &PathInterfaces::towards(towards, None), HostRoot::for_knobs())?;
        Ok(self.guard.insert(guard).facts())
    }

    /// Puts everything back that is not back yet.
    ///
    /// # Errors
    /// Something could not be put back; it stays in the journal of this host.
    pub(super) fn undo(&mut self) -> Result<(), RequestFailure> {
        let facts = self.guard.take().map(|mut guard| guard.restore()).unwrap_or_default();
        let failed = facts.iter().find_map(|fact| match &fact.ended {
            Some(Restoration::Failed { reason }) => Some((fact, reason)),
            _ => None,
        });
        failed.map_or(Ok(()), |(fact, reason)| {
            let message = format!("cannot put `{}` back to `{}` at `{}`", fact.setting, fact.before, fact.place);
            let hint = Some("`latlab doctor --restore` on that host tries again".into());
            Err(RequestFailure { hint, ..RequestFailure::world(message, reason.clone()) })
        })
    }
}

impl From<KnobError> for RequestFailure {
    fn from(error: KnobError) -> RequestFailure {
        let Failure { message, cause, hint, exit_code } = error.explain();
        RequestFailure { message, cause, hint, exit_code }
    }
}
