//! At which end of the path something is done: `@local`, `@peer`, `@both`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An end of the path, or both of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The end that sends probes.
    Local,
    /// The end that reflects them.
    Peer,
    /// Each of them.
    Both,
}

impl Side {
    /// Every side, in the order of the contract.
    pub const ALL: [Side; 3] = [Side::Local, Side::Peer, Side::Both];

    /// The word behind `@`.
    pub const fn word(self) -> &'static str {
        match self {
            Side::Local => "local",
            Side::Peer => "peer",
            Side::Both => "both",
        }
    }

    /// The side of this word.
    pub fn from_word(word: &str) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.word() == word)
    }

    /// Whether this end is meant.
    pub const fn is_local(self) -> bool {
        matches!(self, Side::Local | Side::Both)
    }

    /// Whether the far end is meant.
    pub const fn is_peer(self) -> bool {
        matches!(self, Side::Peer | Side::Both)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_to_sides() {
        for side in Side::ALL {
            assert_eq!(Side::from_word(&side.to_string()), Some(side));
        }
        assert_eq!(Side::from_word("here"), None);
        assert_eq!((Side::Both.is_local(), Side::Both.is_peer()), (true, true));
        assert_eq!((Side::Local.is_local(), Side::Local.is_peer()), (true, false));
        assert_eq!((Side::Peer.is_local(), Side::Peer.is_peer()), (false, true));
    }
}
