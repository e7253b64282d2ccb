//! The kernel's stamps at the reflector: of probes that came, and of answers that have left, each of which travels with a later
//! answer of its session. Memory is fixed.

use latlab_sys::stamps::TransmitStamp;

use crate::clock::RealtimeOffset;
use crate::units::{ReflectorClock, Stamp};
use crate::wire::Passage;

/// Answers whose stamps may be outstanding: more than a queue of a driver holds.
const ANSWERS: usize = 1_024;
/// Sessions with a passage that waits for their next answer. With more, some answers carry none.
const SESSIONS: usize = 64;

#[derive(Clone, Copy)]
struct SentAnswer {
    number: u32,
    session: u16,
    counter: u64,
    sent: Stamp<ReflectorClock>,
}

pub(super) struct Passages {
    clock: RealtimeOffset,
    answers: Box<[Option<SentAnswer>]>,
    known: [Option<(u16, Passage)>; SESSIONS],
}

impl Passages {
    pub(super) fn new() -> Passages {
        let answers = vec![None; ANSWERS].into_boxed_slice();
        Passages { clock: RealtimeOffset::read(), answers, known: [None; SESSIONS] }
    }

    /// The stamp of a probe that has just come; `None` if the clock was set since the stamp before.
    pub(super) fn arrival(&mut self, realtime_ns: Option<i64>) -> Option<Stamp<ReflectorClock>> {
        let holds = self.clock.holds();
        realtime_ns.filter(|_| holds).map(|ns| self.clock.to_monotonic(ns))
    }

    /// What is known of an earlier answer of `session`.
    pub(super) fn take(&mut self, session: u16) -> Option<Passage> {
        let known = self.known[usize::from(session) % SESSIONS].take_if(|(of, _)| *of == session);
        known.map(|(_, passage)| passage)
    }

    /// The answer to probe (session, counter) has the `number` in [`TransmitStamp`].
    pub(super) fn sent(&mut self, number: u32, (session, counter): (u16, u64), sent: Stamp<ReflectorClock>) {
        self.answers[number as usize % ANSWERS] = Some(SentAnswer { number, session, counter, sent });
    }

    /// An answer has left. The stamp counts if it is not before the send call, as it is if a clock was set.
    pub(super) fn left(&mut self, stamp: TransmitStamp) {
        let place = &mut self.answers[stamp.number as usize % ANSWERS];
        let Some(answer) = place.take_if(|answer| answer.number == stamp.number) else { return };
        let lag = self.clock.to_monotonic(stamp.realtime_ns) - answer.sent;
        if (0..i64::from(u32::MAX)).contains(&lag.0) {
            let passage = Passage { counter_low: answer.counter as u32, lag };
            self.known[usize::from(answer.session) % SESSIONS] = Some((answer.session, passage));
        }
    }
}
