//! The host of an agent: its facts and clocks before and after the run, samples and settings during the run.

use std::net::IpAddr;

use super::MeasureError;
use crate::agent::{Agent, AgentError, SettingsRequest};
use crate::facts::{ClockExchange, ClockRelation, HostSample, SettingFacts};
use crate::plan::{SettingSpec, Side};
use crate::recording::manifest::EndFacts;

/// The facts about the host of an agent.
#[derive(Clone, Debug)]
pub(crate) struct RemoteHost {
    /// Its address of the measured path, whose interface the facts describe.
    address: IpAddr,
    facts: EndFacts,
    before: ClockExchange,
    relation: Option<ClockRelation>,
}

/// The samples of the host of an agent.
#[derive(Debug, Default)]
pub struct RemoteResults {
    /// In order of time, on the clock of this host.
    pub samples: Vec<HostSample>,
    /// The number of samples that did not arrive in time.
    pub given_up: u64,
}

impl RemoteHost {
    /// Reads facts and clocks before a run is armed.
    pub(crate) fn before_run(agent: &mut Agent, address: IpAddr) -> Result<RemoteHost, AgentError> {
        let facts = agent.facts(Some(address))?;
        let (anchor, before) = agent.clocks()?;
        let facts = EndFacts { before: Some(facts), clock_start: Some(anchor), ..EndFacts::default() };
        Ok(RemoteHost { address, facts, before, relation: None })
    }

    /// Reads clocks and facts after the run was disarmed, and collects the samples. The clocks first: reading facts takes
    /// time, and a clock step during that time does not belong to the run.
    pub(crate) fn after_run(&mut self, agent: &mut Agent) -> Result<RemoteResults, AgentError> {
        let (anchor, after) = agent.clocks()?;
        let relation = ClockRelation { before: self.before, after };
        (self.facts.clock_end, self.relation) = (Some(anchor), Some(relation));
        self.facts.after = Some(agent.facts(Some(self.address))?);
        let collected = agent.collect_samples()?;
        let on_this_clock = |sample: HostSample| HostSample {
            start_ns: relation.near_ns(sample.start_ns),
            end_ns: relation.near_ns(sample.end_ns),
            ..sample
        };
        let samples = collected.samples.into_iter().map(on_this_clock).collect();
        Ok(RemoteResults { samples, given_up: collected.given_up })
    }

    /// The facts for `peer` in the manifest.
    pub(crate) fn facts(&self) -> &EndFacts {
        &self.facts
    }

    /// The offset of its clock to this host's; `None` before both exchanges were made.
    pub(crate) fn relation(&self) -> Option<ClockRelation> {
        self.relation
    }
}

/// The settings of the peer's host. Its agent gets them without their side (`@peer`, `@both`).
#[derive(Debug, Default)]
pub(super) struct PeerSettings {
    specs: Vec<SettingSpec>,
    facts: Vec<SettingFacts>,
}

impl PeerSettings {
    /// Reads the knobs of those of `settings` that concern the agent's host, without changing them. Network knobs are those
    /// of its interface towards `local`, this end's address.
    pub(super) fn find(
        agent: &mut Agent,
        settings: &[SettingSpec],
        local: IpAddr,
    ) -> Result<PeerSettings, MeasureError> {
        let specs: Vec<SettingSpec> = settings.iter().filter(|spec| spec.ends(false).is_peer()).cloned().collect();
        let mut found = PeerSettings { specs, facts: Vec::new() };
        if !found.specs.is_empty() {
            let settings = found.specs.iter().map(without_side).collect();
            found.request(agent, SettingsRequest::Find { settings, towards: local })?;
        }
        Ok(found)
    }

    /// Sets the knobs that were found.
    pub(super) fn apply(&mut self, agent: &mut Agent) -> Result<(), MeasureError> {
        if self.specs.is_empty() { Ok(()) } else { self.request(agent, SettingsRequest::Turn) }
    }

    /// Restores the settings. A lost agent does so by itself, and the facts stay as they were.
    pub(super) fn restore(&mut self, agent: &mut Agent) -> Result<(), MeasureError> {
        if self.specs.is_empty() { Ok(()) } else { self.request(agent, SettingsRequest::Restore) }
    }

    /// The settings, and how they were restored if that is known.
    pub(super) fn facts(&self) -> &[SettingFacts] {
        &self.facts
    }

    fn request(&mut self, agent: &mut Agent, request: SettingsRequest) -> Result<(), MeasureError> {
        self.facts = agent.settings(request)?.into_iter().map(|fact| at_peer(&self.specs, fact)).collect();
        Ok(())
    }
}

/// The setting as it is typed on that host.
fn without_side(spec: &SettingSpec) -> SettingSpec {
    SettingSpec { side: None, ..spec.clone() }
}

/// A fact of the agent about its host, with the setting as typed on this host.
fn at_peer(specs: &[SettingSpec], fact: SettingFacts) -> SettingFacts {
    let typed = specs.iter().find(|spec| without_side(spec).to_string() == fact.setting);
    let setting = typed.map_or_else(|| fact.setting.clone(), ToString::to_string);
    SettingFacts { setting, at: Side::Peer.word().into(), ..fact }
}
