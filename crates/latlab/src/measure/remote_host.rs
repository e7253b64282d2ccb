//! The host of an agent, as a recording tells of it: facts and clocks before and after the run, samples in between.

use std::net::IpAddr;

use super::MeasureError;
use crate::agent::{Agent, AgentError, SettingsRequest};
use crate::facts::{ClockExchange, ClockRelation, HostSample, SettingFacts};
use crate::plan::{SettingSpec, Side};
use crate::recording::manifest::EndFacts;

/// What is known about the far host.
#[derive(Clone, Debug)]
pub(crate) struct RemoteHost {
    /// Of the measured path: its interface is the one that is described.
    address: IpAddr,
    facts: EndFacts,
    before: ClockExchange,
    relation: Option<ClockRelation>,
}

/// What came home when the run was over.
#[derive(Debug, Default)]
pub(crate) struct RemoteResults {
    /// On the clock of this host.
    pub(crate) samples: Vec<HostSample>,
    /// Samples that did not come in time.
    pub(crate) given_up: u64,
}

impl RemoteHost {
    /// Asks before a run is armed.
    pub(crate) fn meet(agent: &mut Agent, address: IpAddr) -> Result<RemoteHost, AgentError> {
        let facts = agent.facts(Some(address))?;
        let (anchor, before) = agent.clocks()?;
        let facts = EndFacts { before: Some(facts), clock_start: Some(anchor), ..EndFacts::default() };
        Ok(RemoteHost { address, facts, before, relation: None })
    }

    /// Asks after it was disarmed; the clocks first: reading facts may take a while, and a step of the clock in it
    /// is not the run's.
    pub(crate) fn part(&mut self, agent: &mut Agent) -> Result<RemoteResults, AgentError> {
        let (anchor, after) = agent.clocks()?;
        let relation = ClockRelation { before: self.before, after };
        (self.facts.clock_end, self.relation) = (Some(anchor), Some(relation));
        self.facts.after = Some(agent.facts(Some(self.address))?);
        let home = agent.collect_samples()?;
        let on_this_clock = |sample: HostSample| HostSample {
            start_ns: relation.near_ns(sample.start_ns),
            end_ns: relation.near_ns(sample.end_ns),
            ..sample
        };
        Ok(RemoteResults { samples: home.samples.into_iter().map(on_this_clock).collect(), given_up: home.given_up })
    }

    /// For `peer` in the manifest.
    pub(crate) fn facts(&self) -> &EndFacts {
        &self.facts
    }

    /// How its clock stands to this one, once both exchanges are over.
    pub(crate) fn relation(&self) -> Option<ClockRelation> {
        self.relation
    }
}

/// What is set at the peer by its agent.
#[derive(Debug, Default)]
pub(super) struct PeerSettings {
    /// As typed.
    specs: Vec<SettingSpec>,
    facts: Vec<SettingFacts>,
}

impl PeerSettings {
    /// Has the agent find and read those of `settings` that are about its host, and change nothing; network knobs are
    /// those of its interface towards `ours`, this end's address.
    pub(super) fn find(
        agent: &mut Agent,
        settings: &[SettingSpec],
        ours: IpAddr,
    ) -> Result<PeerSettings, MeasureError> {
        let specs: Vec<SettingSpec> = settings.iter().filter(|spec| spec.ends(false).is_peer()).cloned().collect();
        let mut far = PeerSettings { specs, facts: Vec::new() };
        if !far.specs.is_empty() {
            let settings = far.specs.iter().map(as_of_one_host).collect();
            far.learn(agent, SettingsRequest::Find { settings, towards: ours })?;
        }
        Ok(far)
    }

    /// Has the agent turn what it found.
    pub(super) fn turn(&mut self, agent: &mut Agent) -> Result<(), MeasureError> {
        if self.specs.is_empty() { Ok(()) } else { self.learn(agent, SettingsRequest::Turn) }
    }

    /// Has the agent put everything back. One that is lost does so by itself, and nobody hears what came of it.
    pub(super) fn restore(&mut self, agent: &mut Agent) -> Result<(), MeasureError> {
        if self.specs.is_empty() { Ok(()) } else { self.learn(agent, SettingsRequest::Restore) }
    }

    /// What is set, and how it was put back where that is known.
    pub(super) fn facts(&self) -> &[SettingFacts] {
        &self.facts
    }

    fn learn(&mut self, agent: &mut Agent, order: SettingsRequest) -> Result<(), MeasureError> {
        self.facts = agent.settings(order)?.into_iter().map(|fact| at_peer(&self.specs, fact)).collect();
        Ok(())
    }
}

/// The setting as somebody on that host would type it.
fn as_of_one_host(spec: &SettingSpec) -> SettingSpec {
    SettingSpec { side: None, ..spec.clone() }
}

/// What the agent says of its own host, in the words of this end.
fn at_peer(specs: &[SettingSpec], fact: SettingFacts) -> SettingFacts {
    let typed = specs.iter().find(|spec| as_of_one_host(spec).to_string() == fact.setting);
    let setting = typed.map_or_else(|| fact.setting.clone(), ToString::to_string);
    SettingFacts { setting, at: Side::Peer.word().into(), ..fact }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Setting;

    #[test]
    fn the_agents_words_become_ours() {
        let spec = |setting, side| SettingSpec { setting, interface: None, side: Some(side) };
        let specs = [spec(Setting::Mtu(1_400), Side::Both), spec(Setting::RtRuntime(-1), Side::Peer)];
        for (told, typed) in [("mtu=1400", "mtu@both=1400"), ("rt-runtime=-1", "rt-runtime@peer=-1"), ("x=1", "x=1")] {
            let fact = SettingFacts {
                setting: told.into(),
                at: "local".into(),
                place: "p".into(),
                places: 1,
                root: None,
                before: "0".into(),
                set: "1".into(),
                read_back: None,
                ended: None,
            };
            let ours = at_peer(&specs, fact);
            assert_eq!((ours.setting.as_str(), ours.at.as_str()), (typed, "peer"));
        }
    }
}
