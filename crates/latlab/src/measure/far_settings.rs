//! The settings of the peer's host, seen from this end: its agent turns them, and knows no ends of a path.

use std::net::IpAddr;

use super::MeasureError;
use crate::agent::{Agent, SettingsRequest};
use crate::facts::SettingFacts;
use crate::plan::{SettingSpec, Side};

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
