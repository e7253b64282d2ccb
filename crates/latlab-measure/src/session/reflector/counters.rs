//! The counters of a reflector, among them one for every reason to drop a datagram (rule R8).

use crate::transport::ConnectionTally;
use crate::wire::{Malformed, RefuseReason};

crate::worded! {
    /// Why a datagram was dropped without an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum DropReason: name {
        /// Too short or too long for its message type.
        Length = "drop-length",
        /// The first byte is not a message type.
        Type = "drop-type",
        /// A set-up message without latlab's magic number.
        Magic = "drop-magic",
        /// A set-up message of another version.
        Version = "drop-version",
        /// A field with an invalid value.
        Value = "drop-value",
        /// A message that only reflectors send.
        Reply = "drop-reply",
        /// HELLO: above the rate of COOKIEs.
        CookieRate = "drop-cookie-rate",
        /// The source is another host, and the reflector has no key.
        KeylessRemote = "drop-keyless-afar",
        /// OPEN: the token is not for this address and nonce, or expired.
        Token = "drop-token",
        /// OPEN, CLOSE or POLL: the code is wrong, as with another key.
        Code = "drop-code",
        /// OPEN of a session that has ended: a replay.
        OpenReplayed = "drop-open-replayed",
        NoSession = "drop-no-session",
        /// The session has another address or nonce.
        WrongAddress = "drop-wrong-address",
        /// The session has ended by its duration or idle time.
        Ended = "drop-ended",
        /// PROBE or DATA: the tag is wrong.
        Tag = "drop-tag",
        /// PROBE or DATA: not of the agreed size.
        WrongSize = "drop-wrong-size",
        /// PROBE, DATA or POLL: the counter was received before.
        SeenBefore = "drop-seen-before",
        /// PROBE or DATA: the counter is below the replay window.
        LeftWindow = "drop-left-window",
        /// PROBE or DATA of a session whose probes are answered in the network driver, where it could not be checked.
        NotInDriver = "drop-not-in-driver",
    }
}

impl From<Malformed> for DropReason {
    fn from(malformed: Malformed) -> DropReason {
        match malformed {
            Malformed::Length => DropReason::Length,
            Malformed::Type => DropReason::Type,
            Malformed::Magic => DropReason::Magic,
            Malformed::Version => DropReason::Version,
            Malformed::Value => DropReason::Value,
        }
    }
}

/// The counters of a reflector since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflectorCounters {
    pub received: u64,
    /// Bytes of the received datagrams.
    pub received_bytes: u64,
    /// Datagrams sent as replies, of all types.
    pub replied: u64,
    /// Bytes of the replies, never more than `received_bytes`.
    pub replied_bytes: u64,
    pub answered: u64,
    /// Packets of streams counted: neither answered nor dropped.
    pub counted: u64,
    /// Packets of down-streams sent: no replies, but within their credit.
    pub down: u64,
    /// Bytes of the packets of down-streams sent.
    pub down_bytes: u64,
    pub tallies: u64,
    pub cookies: u64,
    pub opened: u64,
    /// ACCEPTs repeated, because the first was lost.
    pub accepts_repeated: u64,
    pub closed: u64,
    /// Sessions ended by their duration or idle time.
    pub expired: u64,
    /// Sessions ended because their sender did not confirm them, or had not yet when a new session took their slot.
    pub unconfirmed: u64,
    /// Sessions ended with their connection.
    pub disconnected: u64,
    /// Counts of connections; `None` if the socket has none.
    pub connections: Option<ConnectionTally>,
    /// Replies that could not be sent.
    pub reply_failed: u64,
    pub receive_failed: u64,
    /// Datagrams that the kernel dropped because the receive buffer was full, since the socket was made, modulo 2^32;
    /// `None` if unknown.
    pub socket_drops: Option<u64>,
    /// Samples over DDS whose writer is not a sender; `None` over other transports.
    pub ignored_samples: Option<u64>,
    refused: [u64; RefuseReason::ALL.len()],
    dropped: [u64; DropReason::ALL.len()],
}

impl ReflectorCounters {
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    pub fn refused(&self, reason: RefuseReason) -> u64 {
        self.refused[reason as usize - 1]
    }

    /// Name and value of every known counter, in the order of the documentation; zeros too.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let plain = [
            ("received", self.received),
            ("received-bytes", self.received_bytes),
            ("replied", self.replied),
            ("replied-bytes", self.replied_bytes),
            ("answered", self.answered),
            ("counted", self.counted),
            ("down", self.down),
            ("down-bytes", self.down_bytes),
            ("tallies", self.tallies),
            ("cookies", self.cookies),
            ("opened", self.opened),
            ("accepts-repeated", self.accepts_repeated),
            ("closed", self.closed),
            ("expired", self.expired),
            ("unconfirmed", self.unconfirmed),
            ("hung-up", self.disconnected),
            ("reply-failed", self.reply_failed),
            ("receive-failed", self.receive_failed),
        ];
        let refused = RefuseReason::ALL.into_iter().map(|reason| (reason.name(), self.refused(reason)));
        let dropped = DropReason::ALL.into_iter().map(|reason| (reason.name(), self.dropped(reason)));
        let socket_drops = self.socket_drops.map(|drops| ("socket-drops", drops));
        let ignored = self.ignored_samples.map(|samples| ("ignored-samples", samples));
        let connections = self.connections.into_iter().flat_map(connection_rows);
        plain.into_iter().chain(socket_drops).chain(ignored).chain(connections).chain(refused).chain(dropped)
    }

    pub(super) fn drop_many(&mut self, reason: DropReason, count: u64) {
        self.dropped[reason as usize] += count;
    }

    pub(super) fn drop_for(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    pub(super) fn refuse_for(&mut self, reason: RefuseReason) {
        self.refused[reason as usize - 1] += 1;
    }
}

fn connection_rows(tally: ConnectionTally) -> [(&'static str, u64); 5] {
    [
        ("connections", tally.accepted),
        ("connections-over-caps", tally.over_caps),
        ("closed-malformed", tally.malformed),
        ("closed-without-session", tally.without_session),
        ("closed-stuck", tally.stuck),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_its_own_counter_and_name() {
        let mut counters = ReflectorCounters::default();
        for reason in DropReason::ALL {
            counters.drop_for(reason);
            assert_eq!(counters.dropped(reason), 1);
        }
        for reason in RefuseReason::ALL {
            counters.refuse_for(reason);
            assert_eq!(counters.refused(reason), 1);
        }
        (counters.socket_drops, counters.ignored_samples) = (Some(5), Some(5));
        counters.connections =
            Some(ConnectionTally { accepted: 1, over_caps: 1, malformed: 1, without_session: 1, stuck: 1 });
        let names: BTreeSet<_> = counters.rows().map(|(name, _)| name).collect();
        assert_eq!(names.len(), counters.rows().count());
        assert_eq!(counters.rows().map(|(_, count)| count).sum::<u64>(), 19 + 7 + 5 + 5 + 5);
    }
}
