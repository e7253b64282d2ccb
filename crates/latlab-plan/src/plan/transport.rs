//! The kinds of transport, and what follows from each for options, durations and judgements.

use serde::{Deserialize, Serialize};

use super::defaults;
use crate::units::Nanos;

crate::worded! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TransportKind: word {
        #[default]
        Udp = "udp",
        Tcp = "tcp",
        Dds = "dds",
        /// UDP packets past the network stack (AF_XDP).
        Xdp = "xdp",
    }
}

/// The properties of a kind of transport. Code outside of `transport/` reads these properties instead of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportProperties {
    pub name: &'static str,
    pub message: &'static str,
    /// Messages travel in a connection, not in packets of their own: loss delays them, fragments do not occur, a slow
    /// receiver slows the sender down, and a reflector sends nothing on its own. Listening for it is an option of `serve`.
    pub connection_oriented: bool,
    /// A library receives in threads of its own, which inherit pin and priority from the thread that opens the path.
    pub has_own_threads: bool,
    /// `--mode batch` is one of the ways in which a stream leaves.
    pub sends_batches: bool,
    /// The longest time in which both ends of a stream agree on what arrived, before and after each slice together.
    pub stream_settles: Nanos,
}

impl TransportKind {
    pub const fn properties(self) -> &'static TransportProperties {
        match self {
            TransportKind::Udp => &TransportProperties {
                name: "UDP",
                message: "packet",
                connection_oriented: false,
                has_own_threads: false,
                sends_batches: false,
                stream_settles: defaults::STREAM_SETTLES,
            },
            TransportKind::Tcp => &TransportProperties {
                name: "TCP",
                message: "packet",
                connection_oriented: true,
                has_own_threads: false,
                sends_batches: false,
                stream_settles: Nanos(defaults::STREAM_SETTLES_CONNECTED.0 * 2),
            },
            TransportKind::Dds => &TransportProperties {
                name: "DDS",
                message: "sample",
                connection_oriented: false,
                has_own_threads: true,
                sends_batches: true,
                stream_settles: defaults::STREAM_SETTLES,
            },
            TransportKind::Xdp => &TransportProperties {
                name: "AF_XDP",
                message: "packet",
                connection_oriented: false,
                has_own_threads: false,
                sends_batches: true,
                stream_settles: defaults::STREAM_SETTLES,
            },
        }
    }

    /// Whether it is the default, which manifests leave out.
    pub fn is_default(&self) -> bool {
        *self == TransportKind::default()
    }

    /// Whether this program has the transport: DDS needs the feature `dds`.
    pub const fn is_built(self) -> bool {
        !matches!(self, TransportKind::Dds) || cfg!(feature = "dds")
    }

    /// Whether messages travel in a connection.
    pub const fn is_connection_oriented(self) -> bool {
        self.properties().connection_oriented
    }
}
