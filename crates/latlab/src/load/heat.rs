//! The work of CPU loads and heaters.

use std::hint::black_box;

/// A chain of hashes: each piece needs the one before it, and nothing of it leaves the first cache.
#[derive(Debug)]
pub(super) struct HashChain {
    block: Box<[u8; Self::BLOCK_BYTES]>,
}

impl HashChain {
    /// Some 8 µs of hashing on a current core, 80 µs on a small one: the grain of a CPU load.
    const BLOCK_BYTES: usize = 8_192;

    /// A chain of its own for each `worker`.
    pub(super) fn new(worker: usize) -> HashChain {
        HashChain { block: Box::new([worker as u8; Self::BLOCK_BYTES]) }
    }

    /// One more piece.
    pub(super) fn stir(&mut self) {
        let hash = blake3::hash(black_box(&self.block[..]));
        self.block[..blake3::OUT_LEN].copy_from_slice(hash.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pieces_and_no_two_workers_are_the_same() {
        let (mut one, mut other) = (HashChain::new(0), HashChain::new(1));
        let before = one.block.clone();
        one.stir();
        let once = one.block.clone();
        one.stir();
        other.stir();
        assert!(before != once && once != one.block && once != other.block);
    }
}
