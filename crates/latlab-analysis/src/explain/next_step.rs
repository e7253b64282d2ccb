//! The one step that would show more of the slow probes, or help.

use serde::Serialize;

use super::common::{CommonCause, CommonTest};
use super::stages::{StageShares, StageSubject};
use crate::plan::{Target, TransportKind, WaitMode};
use crate::recording::manifest::Manifest;

/// What to do next, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NextStep {
    pub why: String,
    /// A command, or what is added to that of the run: `--wait spin`.
    pub command: String,
}

/// What helps where most of the excess is in a stage, unless it says more to divide it.
const REMEDIES: [(StageSubject, &str, &str); 7] = [
    (StageSubject::SendCall, "the sender did not get into its send call in time", "latlab doctor"),
    (StageSubject::Queue, "packets wait in the queueing discipline or the driver of the sender", "tc -s qdisc show"),
    (StageSubject::Network, "packets wait between the drivers: a link, a switch, interrupts", "latlab doctor TARGET"),
    (StageSubject::PeerWakeup, "the reflector is woken late, or has no CPU", "--wait spin"),
    (StageSubject::PeerProcess, "the reflector does not run while it has the probe", "--fifo 80"),
    (StageSubject::PeerReply, "answers wait in the queueing discipline or the driver of the peer", "tc -s qdisc show"),
    (StageSubject::Wakeup, "the sender is woken late, or has no CPU", "--wait spin"),
];

impl NextStep {
    /// After a run with these stages and causes.
    pub(super) fn of(
        manifest: &Manifest,
        stages: &[StageShares],
        common: &[CommonCause],
        is_stamped: bool,
    ) -> NextStep {
        let spec = &manifest.spec;
        let own = |why: &str, command: &str| NextStep { why: why.into(), command: command.into() };
        if spec.import().is_some() {
            return own("the log says when and how long, but not where", "latlab ping TARGET --stamps kernel");
        }
        if spec.wakeup().is_some() {
            return own(
                "a setting of this host may be the reason: each remedy is tried and measured",
                "--try-remedies",
            );
        }
        let of_this_host = |why: &str| own(why, if spec.trace { "latlab doctor" } else { "--trace" });
        // The options of a stream are not those of its probes.
        if spec.stream().is_some() {
            return of_this_host("something of these hosts may disturb");
        }
        let is_of_cpus = |test: CommonTest| {
            matches!(
                test,
                CommonTest::SentCpu | CommonTest::ReceivedCpu | CommonTest::ReflectorCpu | CommonTest::Placement
            )
        };
        let is_unpinned = spec.here.cpu.is_none() && spec.target.is_this_host();
        if is_unpinned && common.iter().any(|cause| cause.is_claimed && is_of_cpus(cause.test)) {
            return own("the CPUs of the ends matter: pin them", "--cpu 0 --peer-cpu 1");
        }
        if !is_stamped
            && spec.transport() == Some(TransportKind::Udp)
            && spec.ping().is_some_and(|it| it.stamps.is_none())
        {
            return own("stamps of the kernels divide the path", "--stamps kernel");
        }
        let most = |one: &&StageShares, other: &&StageShares| one.excess_ns.total_cmp(&other.excess_ns);
        let subject = stages.iter().max_by(most).map(|stage| stage.stage.subject);
        let Some((_, why, step)) = REMEDIES.iter().find(|(own, ..)| Some(*own) == subject) else {
            return of_this_host("something of this host may disturb");
        };
        let is_peer =
            matches!(subject, Some(StageSubject::PeerWakeup | StageSubject::PeerProcess | StageSubject::PeerReply));
        let is_set = match *step {
            "--wait spin" => spec.here.wait == WaitMode::Spin,
            "--fifo 80" => spec.here.fifo.is_some(),
            _ => false,
        };
        // An option sets both ends, unless the reflector was already running.
        match *step {
            step if step.starts_with("--") && is_peer && matches!(spec.target, Target::Host { .. }) => {
                own(why, &format!("latlab serve {step}"))
            }
            step if step.starts_with("--") && !is_set => own(why, step),
            step if (step.starts_with("--") || step.ends_with(" TARGET")) && !spec.target.is_this_host() && is_peer => {
                own(why, &format!("latlab doctor {}", spec.target))
            }
            step if step.starts_with("--") || step.ends_with("doctor") || step.ends_with(" TARGET") => {
                of_this_host(why)
            }
            step => own(why, step),
        }
    }
}
