//! The condition of a run: what a comparison groups by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Direction, Pace, RunSpec, SendMode, StreamRunSpec, Via, WaitMode, defaults};
use crate::units::Nanos;

/// The settled factors of one run, flat, as the JSON document shows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// `local`, `lab`, `HOST:PORT`, `ssh:HOST` or `cmd:COMMAND`.
    pub target: String,
    /// `udp` or `tcp`; none where nothing is sent, as the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// `native` or `echo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Transport payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u32>,
    /// How this end waits for datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitMode>,
    /// How threads ask to be woken; none where no wake-up is measured, as the next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// Whether they ask for an interval from now on, and not for the next slot of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative: Option<bool>,
    /// Their SCHED_FIFO priority; null: the system's scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fifo: Option<u8>,
    /// The rate of a stream as typed; none of a run that is none, as the next six.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// By which call its packets leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SendMode>,
    /// Packets in one call at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u16>,
    /// Its flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u16>,
    /// Whether its packets have UDP checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<bool>,
    /// Whether its sender's sockets are connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<bool>,
    /// Which way its packets go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// From one probe beside a stream to the next; none where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_ns: Option<Nanos>,
    /// `closed`, `periodic` or `poisson`; of a stream `paced`, `max` or `search`.
    pub schedule: String,
    /// The (mean) gap of a schedule.
    pub interval_ns: Option<Nanos>,
    /// From one wake-up beside the probes to the next; none where none is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_wakeup_ns: Option<Nanos>,
    /// The source port, where one was asked for.
    pub source_port: Option<u16>,
    /// Loads asked for, in the words of the command line.
    pub loads: Vec<String>,
    /// Settings made: `KNOB[:DEV][@WHERE]` → value.
    pub settings: BTreeMap<String, String>,
    /// The user's own words.
    pub tags: BTreeMap<String, String>,
}

impl Condition {
    /// The batch, where it is not the default.
    pub fn unusual_batch(&self) -> Option<u16> {
        self.batch.filter(|batch| *batch != defaults::STREAM_BATCH)
    }

    /// The condition that `spec` asks for.
    pub fn of(spec: &RunSpec) -> Condition {
        let (sending, wakeup, stream) = (spec.sending(), spec.wakeup(), spec.stream());
        Condition {
            target: spec.target.to_string(),
            transport: spec.transport().map(|transport| transport.word().into()),
            protocol: sending.map(|ping| match ping.protocol {
                super::Protocol::Native => "native".into(),
                super::Protocol::Echo => "echo".into(),
            }),
            size_bytes: sending.map(|ping| ping.size_bytes).or_else(|| stream?.size.known()),
            wait: spec.path().map(|_| spec.here.wait),
            via: wakeup.map(|wakeup| wakeup.via),
            relative: wakeup.map(|wakeup| wakeup.relative),
            fifo: wakeup.and(spec.here.fifo),
            rate: stream.map(StreamRunSpec::rate_words),
            mode: stream.map(|stream| stream.sending.mode),
            batch: stream.map(|stream| stream.sending.batch),
            flows: stream.map(|stream| stream.flows),
            checksum: stream.map(|stream| stream.sending.checksum),
            connect: stream.map(|stream| stream.sending.connect),
            direction: stream.map(|stream| stream.direction),
            probe_ns: spec.probes_beside().and_then(|probes| probes.schedule.interval()),
            schedule: match stream {
                Some(StreamRunSpec { search: Some(_), .. }) => "search".into(),
                Some(stream) if stream.pace == Pace::Max => "max".into(),
                Some(_) => "paced".into(),
                None => spec.schedule().word().into(),
            },
            interval_ns: spec.schedule().interval(),
            with_wakeup_ns: spec.beside().map(|beside| beside.interval_ns),
            source_port: spec.path().and_then(|path| path.source_port),
            loads: spec.loads.iter().map(ToString::to_string).collect(),
            settings: super::setting::as_condition(&spec.settings),
            tags: spec.tags.clone(),
        }
    }
}
