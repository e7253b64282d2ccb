//! Independent pieces of work on several threads. Results are in the order of the pieces, whatever the number of threads.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// More threads than this read no faster from one disk, and each holds a recording in memory.
const THREADS_MAX: usize = 8;

/// How many threads are worth starting here; 1 if unknown.
pub fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// What `work` makes of each of `pieces`, in their order, done by up to `threads` threads, this one included.
///
/// A piece whose work breaks off is the last to be begun: all pieces before it are in the answer, of those after it only
/// the ones that were under way.
pub fn each<P: Sync, R: Send>(pieces: &[P], threads: usize, work: impl Fn(&P) -> ControlFlow<R, R> + Sync) -> Vec<R> {
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let turn = || {
        let mut done = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(place) else { break };
            done.push((
                place,
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
        let start = |_| thread::Builder::new().spawn_scoped(scope, turn).ok();
        // a thread that cannot be started leaves its pieces to the others
        let others: Vec<_> = (1..threads.min(pieces.len())).map_while(start).collect();
        let mut done = turn();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_pieces() {
        let pieces: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            let squares = each(&pieces, threads, |piece| ControlFlow::Continue(piece * piece));
            assert_eq!(squares, pieces.iter().map(|piece| piece * piece).collect::<Vec<_>>(), "{threads} threads");
        }
        assert!(each(&[0_u8; 0], 4, |piece| ControlFlow::Continue(*piece)).is_empty());
    }

    #[test]
    fn all_before_a_break_are_there_and_a_single_thread_goes_no_further() {
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

    #[test]
    #[should_panic(expected = "piece 7")]
    fn a_panic_is_handed_on() {
        each(&[1, 7, 3], 2, |piece| {
            assert_ne!(*piece, 7, "piece 7");
            ControlFlow::Continue(())
        });
    }
}
