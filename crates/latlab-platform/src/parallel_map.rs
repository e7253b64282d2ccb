//! Independent pieces of work on several threads. Results are in the order of the pieces for any number of threads.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// More threads do not read faster from one disk, and each holds a recording in memory.
const THREADS_MAX: usize = 8;

/// The number of threads to start on this host; 1 if unknown.
pub fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// The results of `work` on `pieces`, in their order, by up to `threads` threads, this one included.
///
/// After a `Break` no further piece is begun: the results include those of all pieces before it, and after it only of those
/// that had begun.
pub fn each<P: Sync, R: Send>(pieces: &[P], threads: usize, work: impl Fn(&P) -> ControlFlow<R, R> + Sync) -> Vec<R> {
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let run = || {
        let mut done = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(index) else { break };
            done.push((
                index,
                match work(piece) {
                    ControlFlow::Continue(result) => result,
                    ControlFlow::Break(result) => {
                        over.store(true, Ordering::Relaxed);
                        result
                    }
                },
            ));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, run).ok();
        // The other threads take the pieces of a thread that cannot be started.
        let others: Vec<_> = (1..threads.min(pieces.len())).map_while(start).collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_pieces() {
        let pieces: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            let squares = each(&pieces, threads, |piece| ControlFlow::Continue(piece * piece));
            assert_eq!(squares, pieces.iter().map(|piece| piece * piece).collect::<Vec<_>>(), "{threads} threads");
        }
        assert!(each(&[0_u8; 0], 4, |piece| ControlFlow::Continue(*piece)).is_empty());
    }

    #[test]
    fn all_results_before_a_break_are_returned() {
        let pieces: Vec<usize> = (0..50).collect();
        let work = |piece: &usize| match piece {
            20 => ControlFlow::Break(*piece),
            _ => ControlFlow::Continue(*piece),
        };
        assert_eq!(each(&pieces, 1, work), pieces[..=20]);
        for _ in 0..20 {
            let done = each(&pieces, 4, work);
            assert!(done.len() > 20 && done == pieces[..done.len()], "{done:?}");
        }
    }
}
