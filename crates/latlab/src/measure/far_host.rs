//! The host of an agent, as a recording tells of it: facts and clocks before and after the run, samples in between.

use std::net::IpAddr;

use crate::agent::{Agent, AgentError};
use crate::facts::{ClockExchange, ClockRelation, HostSample};
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
