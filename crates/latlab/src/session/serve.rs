//! The reflector's loop over a socket: receive, read the clock, judge, read the clock, reply.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use super::counters::ReflectorCounters;
use super::key::PreSharedKey;
use super::reflector::{Judgement, SessionReflector};
use crate::clock::Clock;
use crate::transport::reflector::UdpReflector;
use crate::units::{ReflectorClock, Stamp};

/// One more byte than the largest UDP payload: nothing is ever cut off unseen.
const BUFFER_BYTES: usize = 65_508;
/// After so many failures of the receive call in a row the socket is taken for broken.
const RECEIVE_FAILURES_MAX: u32 = 100;

/// The socket of a reflector, as far as its loop needs one.
pub trait ReflectorSocket {
    /// Takes one datagram into `buffer`: its length, and where it came from. None where nothing came for
    /// about 100 ms (a spinning socket: at once), or a signal did.
    ///
    /// # Errors
    /// The kernel's; the loop counts them and gives up after a hundred in a row.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>>;

    /// Sends `datagram` to where its request came from.
    ///
    /// # Errors
    /// The kernel's; the loop counts them.
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()>;

    /// Told that `peer` has a session and that nobody else can get one while it lasts.
    fn hear_only(&mut self, peer: SocketAddr) {
        _ = peer;
    }

    /// Datagrams that the kernel dropped for want of room since the socket was made, modulo 2^32; none where it does
    /// not tell. Asked for when a session begins and ends, and ten times a second while there is a stream.
    fn dropped(&self) -> Option<u64> {
        None
    }
}

/// A standard socket; its read time-out, which the caller sets, is how often the loop looks up.
impl ReflectorSocket for UdpSocket {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        match self.recv_from(buffer) {
            Ok(received) => Ok(Some(received)),
            Err(error) if matches!(error.kind(), Interrupted | TimedOut | WouldBlock) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.send_to(datagram, to).map(|_| ())
    }
}

/// latlab's own socket.
impl ReflectorSocket for UdpReflector {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        UdpReflector::receive(self, buffer)
    }

    #[inline]
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        UdpReflector::reply(self, datagram, to)
    }

    fn hear_only(&mut self, peer: SocketAddr) {
        UdpReflector::hear_only(self, peer);
    }

    fn dropped(&self) -> Option<u64> {
        self.socket_drops()
    }
}

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
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut failures = 0;
    while !requests.stop.load(Ordering::Relaxed) {
        if requests.counters.load(Ordering::Relaxed) && requests.counters.swap(false, Ordering::Relaxed) {
            reflector.note_socket_drops(socket.dropped());
            show(reflector.counters(now(clock)));
        }
        match socket.receive(&mut buffer) {
            Ok(None) => failures = 0,
            Ok(Some((bytes, from))) => {
                failures = 0;
                reflect(socket, reflector, clock, &cpu, &mut buffer[..bytes], from);
            }
            Err(source) => {
                reflector.count_failed_receive();
                failures += 1;
                if failures >= RECEIVE_FAILURES_MAX {
                    return Err(ServeError::Broken { source });
                }
            }
        }
    }
    reflector.note_socket_drops(socket.dropped());
    Ok(())
}

#[inline]
fn reflect(
    socket: &mut impl ReflectorSocket,
    reflector: &mut SessionReflector,
    clock: &impl Clock,
    cpu: &impl Fn() -> Option<u16>,
    datagram: &mut [u8],
    from: SocketAddr,
) {
    let received = now(clock);
    if SessionReflector::reports_drops(datagram) {
        reflector.note_socket_drops(socket.dropped());
    }
    let bytes = match reflector.judge(datagram, from, received) {
        Judgement::Drop(_) | Judgement::Counted => return,
        Judgement::Reply(bytes) => return converse(socket, reflector, &datagram[..bytes], from),
        Judgement::Reflect(pending) => {
            let cpu = cpu();
            pending.seal(now(clock), cpu, datagram)
        }
    };
    if socket.reply(&datagram[..bytes], from).is_err() {
        reflector.count_failed_reply();
    }
}

/// Says what belongs around the probes; a reflector for one sender has found it once its session is open.
#[cold]
fn converse(socket: &mut impl ReflectorSocket, reflector: &mut SessionReflector, reply: &[u8], to: SocketAddr) {
    if socket.reply(reply, to).is_err() {
        reflector.count_failed_reply();
    }
    if let Some(peer) = reflector.only_peer() {
        socket.hear_only(peer);
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
