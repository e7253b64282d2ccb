//! What is measured, in one line: the same words while it is measured and when it is shown.

use crate::analysis::{Condition, Family, Kind, StopWhen, Summary};
use crate::units::human::{bytes, grouped, span};

/// What a heading says of one run, be it planned or measured.
#[derive(Clone, Copy, Debug)]
pub struct Headline<'a> {
    /// What kind of rows.
    pub kind: Kind,
    /// Its factors.
    pub condition: &'a Condition,
    /// The family of the path, where it is known.
    pub family: Option<Family>,
    /// When it is to end.
    pub stop: StopWhen,
}

impl Headline<'_> {
    /// That of a summary.
    pub(super) fn of(summary: &Summary) -> Headline<'_> {
        let family = summary.peer_address.as_deref().map(family_of);
        Headline { kind: summary.kind, condition: &summary.condition, family, stop: summary.stop }
    }

    fn transport(&self) -> Option<String> {
        let transport = self.condition.transport.as_ref()?;
        let family = match self.family {
            Some(Family::Ipv6) => " ipv6",
            Some(Family::Ipv4) => " ipv4",
            None => "",
        };
        Some(format!("{transport}{family}"))
    }

    fn schedule(&self) -> String {
        if let Some(rate) = &self.condition.rate {
            return if rate == "max" { "as fast as sends go".into() } else { rate.clone() };
        }
        match (self.condition.schedule.as_str(), self.condition.interval_ns) {
            (_, None) => "closed loop".into(),
            ("poisson", Some(mean)) => format!("poisson, {} on average", span(mean)),
            (_, Some(interval)) => format!("every {}", span(interval)),
        }
    }

    /// How threads ask to be woken, beyond the usual also from when on and with which priority.
    fn via(&self) -> Option<String> {
        let via = self.condition.via?.word();
        let relative = if self.condition.relative == Some(true) { ", relative" } else { "" };
        let fifo = self.condition.fifo.map(|priority| format!(", fifo {priority}")).unwrap_or_default();
        Some(format!("{via}{relative}{fifo}"))
    }

    /// How a stream's packets leave, where that is not the usual way.
    fn sending(&self) -> Option<String> {
        let condition = self.condition;
        let mode = condition.mode?.word().to_owned();
        let flows = condition.flows.filter(|flows| *flows > 1).map(|flows| format!("{flows} flows"));
        let checksum = condition.checksum.filter(|on| !on).map(|_| "no checksum".to_owned());
        let down = condition.direction.filter(|way| way.word() == "down").map(|_| "down".to_owned());
        Some([Some(mode), flows, checksum, down].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    fn planned(&self) -> Option<String> {
        let count = self.stop.count.map(|count| format!("{} {}", grouped(count), self.kind.rows()));
        let up_to = if self.condition.schedule == "search" { "up to " } else { "" };
        let duration = self.stop.duration_ns.map(|duration| format!("{up_to}{}", span(duration)));
        count.into_iter().chain(duration).reduce(|count, duration| format!("{count} or {duration}"))
    }
}

/// That of an address with a port.
pub fn family_of(address: &str) -> Family {
    if address.starts_with('[') { Family::Ipv6 } else { Family::Ipv4 }
}

/// What a run has to say on something, if it has.
type Part = fn(&Headline) -> Option<String>;

/// What all runs have in common.
pub fn heading(runs: &[Headline]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let parts: [Part; 10] = [
        |run| {
            Some(match run.kind {
                Kind::Ping => format!("ping {}", run.condition.target),
                Kind::Wakeup => "wakeup".into(),
                Kind::Stream => format!("stream {}", run.condition.target),
            })
        },
        |run| run.via(),
        |run| run.transport(),
        |run| run.condition.protocol.clone().filter(|protocol| protocol != "native"),
        |run| run.condition.size_bytes.map(|size| bytes(size.into())),
        |run| Some(run.schedule()),
        |run| run.sending(),
        |run| Some(format!("wake-ups every {}", span(run.condition.with_wakeup_ns?))),
        |run| Some(format!("probes every {}", span(run.condition.probe_ns?))),
        |run| run.planned(),
    ];
    let common = parts.into_iter().filter_map(|part| {
        let text = part(first)?;
        runs.iter().all(|run| part(run).as_ref() == Some(&text)).then_some(text)
    });
    common.collect::<Vec<_>>().join(" · ")
}

/// How packets travel and leave, as far as that is not the usual way: what tells runs of one size and rate apart.
pub fn unusual(condition: &Condition, family: Option<Family>) -> Option<String> {
    // Over TCP every sender is connected.
    let tcp = condition.transport.as_deref().filter(|transport| *transport != "udp");
    let connect = condition.connect.filter(|connected| *connected && tcp.is_none());
    let words = [
        tcp.map(str::to_owned),
        family.filter(|family| *family == Family::Ipv6).map(|_| "ipv6".to_owned()),
        condition.mode.map(|mode| mode.word()).filter(|mode| *mode != "send").map(str::to_owned),
        condition.unusual_batch().map(|batch| format!("batch {batch}")),
        condition.flows.filter(|flows| *flows > 1).map(|flows| format!("{flows} flows")),
        condition.checksum.filter(|on| !on).map(|_| "no checksum".to_owned()),
        connect.map(|_| "connected".to_owned()),
        condition.direction.map(|way| way.word()).filter(|way| *way != "up").map(str::to_owned),
        condition.probe_ns.map(|interval| format!("probes every {}", span(interval))),
        condition.wait.map(|wait| wait.word()).filter(|wait| *wait != "block").map(str::to_owned),
    ];
    let told: Vec<String> = words.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{
        Direction, Pace, RunSpec, SendMode, SenderSocketOptions, StreamRunSpec, TransportKind, WaitMode, Work,
    };
    use crate::units::Nanos;

    #[test]
    fn only_what_is_unusual_is_told_apart() {
        let usual = StreamRunSpec::at(Pace::Max);
        let sending = |mode, checksum, connect| SenderSocketOptions { mode, checksum, connect, ..usual.sending };
        for (stream, expected) in [
            (usual.clone(), None),
            (
                StreamRunSpec {
                    transport: TransportKind::Tcp,
                    sending: sending(SendMode::Send, true, true),
                    ..usual.clone()
                },
                Some("tcp"),
            ),
            (StreamRunSpec { sending: sending(SendMode::Gso, true, false), ..usual.clone() }, Some("gso")),
            (
                StreamRunSpec { flows: 2, sending: sending(SendMode::Sendmmsg, false, true), ..usual.clone() },
                Some("sendmmsg, 2 flows, no checksum, connected"),
            ),
            (StreamRunSpec { direction: Direction::Down, ..usual.clone() }, Some("down")),
        ] {
            let condition = Condition::of(&RunSpec::here(Work::Stream(stream)));
            assert_eq!(unusual(&condition, Some(Family::Ipv4)).as_deref(), expected, "{condition:?}");
        }
        let usual = Condition::of(&RunSpec::here(Work::Stream(usual)));
        let odd = Condition {
            batch: Some(8),
            probe_ns: Some(Nanos::from_millis(1)),
            wait: Some(WaitMode::Spin),
            ..usual.clone()
        };
        assert_eq!(unusual(&odd, None).as_deref(), Some("batch 8, probes every 1 ms, spin"));
        assert_eq!(unusual(&usual, Some(Family::Ipv6)).as_deref(), Some("ipv6"));
    }
}
