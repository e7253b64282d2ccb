//! The reflector's loop over a socket: receive, read the clock, judge, read the clock, reply.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use super::counters::ReflectorCounters;
use super::down_source::DownDue;
use super::key::PreSharedKey;
use super::reflector::{ReflectorAction, SessionReflector};
use super::reflector_socket::ReflectorSocket;
use super::slot::ReceiverState;
use crate::clock::Clock;
use crate::transport::batch_receiver::BatchBuffer;
use crate::units::{Nanos, ReflectorClock, Stamp};

/// One more byte than the largest UDP payload: nothing is ever cut off unseen.
const BUFFER_BYTES: usize = 65_508;
/// After so many failures of the receive call in a row the socket is taken for broken.
const RECEIVE_FAILURES_MAX: u32 = 100;
/// Packets of a down-stream that leave between two looks at what comes.
const GIVEN_MAX: usize = 64;
/// Where nothing is due, the loop looks up as often as without a down-stream.
const NAP: Nanos = Nanos::from_millis(100);
/// So often it is seen whether there is still a stream that needs batches.
const ADAPT_EVERY: Nanos = Nanos::from_secs(1);

/// What others ask of the loop while it runs; looked at before every datagram.
#[derive(Clone, Copy, Debug)]
pub struct Requests<'a> {
    /// End the loop.
    pub stop: &'a AtomicBool,
    /// Show the counters (SIGUSR1); the loop takes the request back.
    pub counters: &'a AtomicBool,
}

/// Reflects until it is asked to stop. `cpu` tells on which CPU this thread runs, where that costs no system call;
/// `show` gets the counters whenever they are asked for. Two clock reads per reflected probe, one for anything else.
///
/// # Errors
/// [`ServeError::Broken`] where the socket fails again and again.
pub fn serve(
    socket: &mut impl ReflectorSocket,
    reflector: &mut SessionReflector,
    clock: &impl Clock,
    requests: Requests<'_>,
    cpu: impl Fn() -> Option<u16>,
    mut show: impl FnMut(&ReflectorCounters),
) -> Result<(), ServeError> {
    reflector.grants(socket.abilities());
    let mut desk = ReceiveLoop { socket, reflector, clock, cpu, given_from: None };
    // Both are pages that nobody has touched until something comes.
    let (mut buffer, mut room) = (vec![0; BUFFER_BYTES], BatchBuffer::new());
    let (mut failures, mut adapt_at) = (0, now(clock));
    while !requests.stop.load(Ordering::Relaxed) {
        if requests.counters.load(Ordering::Relaxed) && requests.counters.swap(false, Ordering::Relaxed) {
            desk.note_receiver();
            show(desk.reflector.counters(now(clock)));
        }
        if desk.socket.wants_care() {
            desk.care();
        }
        let taken = match desk.socket.batches() {
            _ if desk.reflector.gives_to().is_some() => desk.give_and_take(&mut buffer),
            false => desk.take_one(&mut buffer),
            true => desk
                .take_many(&mut room)
                .inspect(|at| {
                    if *at >= adapt_at {
                        desk.adapt(*at);
                        adapt_at = *at + ADAPT_EVERY;
                    }
                })
                .map(drop),
        };
        match taken {
            Ok(()) => failures = 0,
            Err(source) => {
                desk.reflector.count_failed_receive();
                failures += 1;
                if failures >= RECEIVE_FAILURES_MAX {
                    return Err(ServeError::Broken { source });
                }
            }
        }
    }
    desk.care();
    desk.note_receiver();
    Ok(())
}

/// What the loop has at hand.
struct ReceiveLoop<'a, S, C, F> {
    socket: &'a mut S,
    reflector: &'a mut SessionReflector,
    clock: &'a C,
    cpu: F,
    /// From which address of ours the down-stream leaves.
    given_from: Option<IpAddr>,
}

impl<S: ReflectorSocket, C: Clock, F: Fn() -> Option<u16>> ReceiveLoop<'_, S, C, F> {
    /// One datagram, if one comes.
    #[inline]
    fn take_one(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        if let Some((bytes, from)) = self.socket.receive(buffer)? {
            let received = now(self.clock);
            self.reflect(&mut buffer[..bytes], from, received);
        }
        Ok(())
    }

    /// What is due of a down-stream, and one datagram if one comes before more is due.
    #[inline]
    fn give_and_take(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut patience = Nanos::ZERO;
        for _ in 0..GIVEN_MAX {
            match self.reflector.down_due(now(self.clock), buffer) {
                DownDue::Packet { bytes, to } => {
                    self.socket.turn_to(self.given_from, false);
                    if self.socket.reply(&buffer[..bytes], to).is_err() {
                        self.reflector.count_failed_reply();
                    }
                }
                DownDue::In(span) => patience = span,
                DownDue::Nothing => patience = NAP,
            }
            if patience > Nanos::ZERO {
                break;
            }
        }
        if let Some((bytes, from)) = self.socket.receive_within(buffer, patience)? {
            let received = now(self.clock);
            self.reflect(&mut buffer[..bytes], from, received);
        }
        Ok(())
    }

    /// All datagrams that one call brings, and when that was.
    #[inline]
    fn take_many(&mut self, room: &mut BatchBuffer) -> io::Result<Stamp<ReflectorClock>> {
        let came = self.socket.receive_many(room)?;
        let received = now(self.clock);
        for index in 0..came {
            let Some(together) = room.together(index) else { continue };
            self.socket.turn_to(together.local, together.merged);
            if self.reflector.count_train(together.bytes, together.each_bytes, together.from, received) {
                continue;
            }
            for datagram in together.bytes.chunks_mut(together.each_bytes) {
                self.reflect(datagram, together.from, received);
            }
        }
        Ok(received)
    }

    #[inline]
    fn reflect(&mut self, datagram: &mut [u8], from: SocketAddr, received: Stamp<ReflectorClock>) {
        if SessionReflector::tells_receiver(datagram) {
            self.note_receiver();
        }
        let bytes = match self.reflector.judge(datagram, from, received) {
            ReflectorAction::Drop(_) | ReflectorAction::Counted => return,
            ReflectorAction::Reply(bytes) => return self.converse(&datagram[..bytes], from, received),
            ReflectorAction::Reflect(pending) => {
                let cpu = (self.cpu)();
                pending.seal(now(self.clock), cpu, datagram)
            }
        };
        if self.socket.reply(&datagram[..bytes], from).is_err() {
            self.reflector.count_failed_reply();
        }
    }

    /// Says what belongs around the probes; a reflector for one sender has found it once its session is open, and a socket
    /// is as the sessions need it.
    #[cold]
    fn converse(&mut self, reply: &[u8], to: SocketAddr, received: Stamp<ReflectorClock>) {
        if self.reflector.gives_to() == Some(to) {
            self.given_from = self.socket.asked_at();
        }
        // Before the other end knows that it may send: what comes after an ACCEPT is taken as that says.
        self.adapt(received);
        if self.socket.reply(reply, to).is_err() {
            self.reflector.count_failed_reply();
        }
        if let Some(peer) = self.reflector.only_peer() {
            self.socket.hear_only(peer);
        }
    }

    fn adapt(&mut self, at: Stamp<ReflectorClock>) {
        let needs = self.reflector.needs(at);
        self.socket.adapt(needs);
    }

    /// Ends the sessions of connections that are gone, and has the socket close those without a session.
    #[cold]
    fn care(&mut self) {
        while let Some(peer) = self.socket.gone() {
            self.reflector.hang_up(peer);
        }
        let (reflector, at) = (&*self.reflector, now(self.clock));
        self.socket.care(|peer| reflector.holds_session(peer, at));
    }

    #[cold]
    fn note_receiver(&mut self) {
        if let Some(tally) = self.socket.connections() {
            self.reflector.note_connections(tally);
        }
        self.reflector.note_receiver(ReceiverState {
            socket_drops: self.socket.dropped(),
            drops_merged: self.socket.has_merged(),
            thread_cpu: Some(Nanos(latlab_sys::clock::thread_cpu_ns())),
        });
    }
}

/// This host's clock, where this host is the reflector.
#[inline]
fn now(clock: &impl Clock) -> Stamp<ReflectorClock> {
    Stamp::from_nanos(clock.now().as_nanos())
}

/// Whether a reflector with `key` may listen on `address` (rule R1).
///
/// # Errors
/// [`ServeError::KeylessAfar`] for an address that others can reach, without a key.
pub fn check_address(address: SocketAddr, key: Option<&PreSharedKey>) -> Result<(), ServeError> {
    if key.is_some() || address.ip().to_canonical().is_loopback() {
        Ok(())
    } else {
        Err(ServeError::KeylessAfar { address })
    }
}

/// Why nothing is reflected.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others could reach it, and there is no key.
    #[error("cannot serve on `{address}` without a key")]
    KeylessAfar {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The socket fails.
    #[error("cannot receive any more")]
    Broken {
        /// The kernel's reason.
        source: io::Error,
    },
}

impl ServeError {
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        Some(match self {
            ServeError::KeylessAfar { .. } => {
                "other hosts could reach it; without a key only loopback is served".into()
            }
            ServeError::Broken { source } => format!("{RECEIVE_FAILURES_MAX} failures in a row: {source}"),
        })
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            ServeError::KeylessAfar { .. } => {
                Some("make a key with `latlab keygen lab.key` and give it as `--psk-file lab.key` at both ends".into())
            }
            ServeError::Broken { .. } => None,
        }
    }

    /// The exit code: 2 where the request was wrong, 3 where the world refused.
    pub fn exit_code(&self) -> u8 {
        match self {
            ServeError::KeylessAfar { .. } => 2,
            ServeError::Broken { .. } => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_key_only_loopback() {
        for (address, keyless) in [
            ("127.0.0.1:9862", true),
            ("127.9.9.9:9862", true),
            ("[::1]:9862", true),
            ("[::ffff:127.0.0.1]:9862", true),
            ("0.0.0.0:9862", false),
            ("[::]:9862", false),
            ("192.0.2.1:9862", false),
        ] {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(check_address(address, None).is_ok(), keyless, "{address}");
            let key = PreSharedKey::fresh().expect("chance");
            assert!(check_address(address, Some(&key)).is_ok());
        }
    }

    struct Broken;

    impl ReflectorSocket for Broken {
        fn receive(&mut self, _: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
            Err(io::Error::from_raw_os_error(19))
        }

        fn reply(&mut self, _: &[u8], _: SocketAddr) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_broken_socket_ends_the_loop_and_is_counted() {
        let mut reflector = SessionReflector::new(super::super::ReflectorLimits::DEFAULT, None, [0; 32]);
        let never = AtomicBool::new(false);
        let requests = Requests { stop: &never, counters: &never };
        let clock = crate::clock::Monotonic;
        let ended = serve(&mut Broken, &mut reflector, &clock, requests, || None, |_| {});
        assert!(matches!(ended, Err(ServeError::Broken { .. })));
        assert_eq!(reflector.counters(Stamp::from_nanos(0)).receive_failed, 100);
    }
}
