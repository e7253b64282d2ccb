//! What this end asks about the host of its agent: facts, clocks, samples.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::message::{Reply, Request};
use super::{Agent, AgentError};
use crate::clock::{Clock, Monotonic};
use crate::facts::{ClockAnchor, ClockExchange, HostFacts, HostSample};
use crate::plan::{PathSpec, Target};

/// Exchanges with the far clock; the quickest is the best, since the error is bounded by half its round trip.
const EXCHANGES: usize = 8;
/// How long the collection of samples may take; a user waits for the summary, so the rest is given up.
const COLLECTED_WITHIN: Duration = Duration::from_secs(10);

/// What came home of the samples.
#[derive(Debug, Default)]
pub struct RemoteSamples {
    /// In their order, on the clock of the far host.
    pub samples: Vec<HostSample>,
    /// How many were given up because the way was too slow.
    pub given_up: u64,
}

/// The facts of `target`'s host, twice: `apart` from each other. Its interface is the one that has `address`; without
/// one, the one that ssh reached, or that of the default route.
///
/// # Errors
/// [`AgentError`].
pub fn far_facts(
    target: &Target,
    address: Option<IpAddr>,
    apart: Duration,
) -> Result<(HostFacts, HostFacts), AgentError> {
    let mut agent = Agent::start(target, &PathSpec::SYSTEM, &[], &Arc::default())?;
    let address = address.or(agent.greeting().reached);
    let earlier = agent.facts(address)?;
    thread::sleep(apart);
    let facts = agent.facts(address)?;
    agent.dismiss()?;
    Ok((earlier, facts))
}

impl Agent {
    /// The facts of its host, and of the interface there that has `address`; none: that of its default route.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn facts(&mut self, address: Option<IpAddr>) -> Result<HostFacts, AgentError> {
        match self.ask(&Request::ReadFacts { address })? {
            Reply::Facts(facts) => Ok(*facts),
            other => Err(self.unknown(&other)),
        }
    }

    /// Where its clocks stand, and what its CLOCK_MONOTONIC is on this one's.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn clocks(&mut self) -> Result<(ClockAnchor, ClockExchange), AgentError> {
        let mut best = self.clocks_once()?;
        for _ in 1..EXCHANGES {
            let next = self.clocks_once()?;
            if next.1.bound_ns < best.1.bound_ns {
                best = next;
            }
        }
        Ok(best)
    }

    fn clocks_once(&mut self) -> Result<(ClockAnchor, ClockExchange), AgentError> {
        let asked_ns = Monotonic.now().as_nanos();
        let reply = self.ask(&Request::ReadClocks)?;
        let answered_ns = Monotonic.now().as_nanos();
        match reply {
            Reply::Clocks(anchor) => Ok((anchor, ClockExchange::of(asked_ns, &anchor, answered_ns))),
            other => Err(self.unknown(&other)),
        }
    }

    /// Has its host sampled from now on, off the CPUs that measure there.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn start_sampling(&mut self, avoid_cpus: Vec<u16>) -> Result<(), AgentError> {
        match self.ask(&Request::StartSampling { avoid_cpus })? {
            Reply::Done => Ok(()),
            other => Err(self.unknown(&other)),
        }
    }

    /// Ends the sampling and brings the samples home.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn collect_samples(&mut self) -> Result<RemoteSamples, AgentError> {
        let begun = Instant::now();
        let mut home = RemoteSamples::default();
        loop {
            let page = match self.ask(&Request::CollectSamples)? {
                Reply::Samples(page) => page,
                other => return Err(self.unknown(&other)),
            };
            let nothing_came = page.samples.is_empty();
            home.samples.extend(page.samples);
            if page.left == 0 || nothing_came || begun.elapsed() > COLLECTED_WITHIN {
                home.given_up = page.left;
                return Ok(home);
            }
        }
    }
}
