//! The reflector's loop over a socket: receive, read the clock, handle, read the clock, reply. [`listen`] opens the
//! socket of a transport as a [`Listener`], whose loop is compiled for its type.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use super::counters::ReflectorCounters;
use super::down_source::DownDue;
use super::machine::{PendingReply, ReflectorAction, SessionReflector};
use super::passages::Passages;
use super::sessions::ReceiverState;
use crate::clock::{Clock, Monotonic};
use crate::diagnostics::{Explain, Failure};
use crate::facts::XdpFacts;
use crate::plan::TransportKind;
use crate::session::key::PreSharedKey;
use crate::transport::{
    self, BatchBuffer, Bound, FamilyVisitor, ListenOptions, ReflectorSocket, TransportError, TransportFamily,
};
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::MessageType;

/// The largest UDP payload plus one byte, so that truncation is always seen.
const BUFFER_BYTES: usize = 65_508;
/// After so many failed receive calls in a row the loop ends.
const RECEIVE_FAILURES_MAX: u32 = 100;
/// Packets of a down-stream sent between two receive calls.
const DOWN_BURST_MAX: usize = 64;
/// The longest wait of a down-stream without a packet due.
const WAIT_MAX: Nanos = Nanos::from_millis(100);
/// The wait of a down-stream for space in the send buffer.
const FULL_BUFFER_WAIT: Nanos = Nanos::from_micros(100);
/// The interval at which the socket's stream terms are updated while it receives batches.
const CONFIGURE_EVERY: Nanos = Nanos::from_secs(1);

/// Requests to the loop, read before every datagram.
#[derive(Clone, Copy, Debug)]
pub struct Requests<'a> {
    pub stop: &'a AtomicBool,
    /// Show the counters (SIGUSR1); the loop resets it.
    pub counters: &'a AtomicBool,
}

/// Reflects until `requests.stop`. `cpu` returns the CPU of this thread, if that costs no system call; `show` gets the
/// counters when they are requested. Two clock reads per reflected probe, one for any other datagram.
///
/// # Errors
/// [`ServeError::Broken`] if the receive call keeps failing.
pub fn serve(
    socket: &mut (impl ReflectorSocket + Send),
    reflector: &mut SessionReflector,
    clock: &(impl Clock + Sync),
    requests: Requests<'_>,
    cpu: impl Fn() -> Option<u16> + Send,
    mut show: impl FnMut(&ReflectorCounters),
) -> Result<(), ServeError> {
    reflector.set_supported_terms(socket.supported_terms());
    reflector.set_answers_in_driver(socket.answers_in_driver());
    let threads = socket.receiving_threads();
    IS_BESIDE_LIBRARY.set(socket.is_of_library());
    let (passages, down_from) = (Passages::new(), None);
    let mut receiver =
        Receiver { socket, reflector, clock, cpu, batched: false, may_pause: false, down_from, passages };
    // Neither has resident pages before something is received.
    let (mut buffer, mut batch) = (vec![0; BUFFER_BYTES], BatchBuffer::new());
    let (mut failures, mut configure_at) = (0, now(clock));
    while !requests.stop.load(Ordering::Relaxed) {
        if requests.counters.load(Ordering::Relaxed) && requests.counters.swap(false, Ordering::Relaxed) {
            receiver.update_state();
            show(receiver.reflector.counters(now(clock)));
        }
        if receiver.socket.has_connection_work() {
            receiver.check_connections();
        }
        let received = match (&threads, receiver.batched) {
            _ if receiver.reflector.down_peer().is_some() => receiver.send_down_and_receive(&mut buffer),
            (Some(threads), _) => {
                let mut received = Ok(());
                threads.run_within(WAIT_MAX, &mut || {
                    // The first error is kept: the loop counts it.
                    if received.is_ok() {
                        received = receiver.receive_all(&mut buffer);
                    }
                });
                received
            }
            (None, false) => receiver.receive_one(&mut buffer),
            (None, true) => receiver.receive_batch(&mut batch).map(|at| {
                if at >= configure_at {
                    receiver.configure(at);
                    configure_at = at + CONFIGURE_EVERY;
                }
            }),
        };
        match received {
            Ok(()) => failures = 0,
            Err(source) => {
                receiver.reflector.count_failed_receive();
                failures += 1;
                if failures >= RECEIVE_FAILURES_MAX {
                    return Err(ServeError::Broken { source });
                }
            }
        }
    }
    receiver.check_connections();
    receiver.update_state();
    Ok(())
}

thread_local! {
    /// Whether threads of a library receive for this one.
    static IS_BESIDE_LIBRARY: Cell<bool> = const { Cell::new(false) };
}

/// The state of the loop.
struct Receiver<'a, S, C, F> {
    socket: &'a mut S,
    reflector: &'a mut SessionReflector,
    clock: &'a C,
    cpu: F,
    /// The socket is configured for batches.
    batched: bool,
    /// Every open session is a stream, so that no probe is delayed.
    may_pause: bool,
    /// The local address from which the down-stream is sent.
    down_from: Option<IpAddr>,
    passages: Passages,
}

impl<S: ReflectorSocket, C: Clock, F: Fn() -> Option<u16>> Receiver<'_, S, C, F> {
    /// Handles one datagram, if one comes.
    #[inline]
    fn receive_one(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        if let Some((bytes, from)) = self.socket.receive(buffer)? {
            let received = now(self.clock);
            self.handle(&mut buffer[..bytes], from, received);
        }
        Ok(())
    }

    /// Handles the datagrams that are there.
    #[inline]
    fn receive_all(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        while let Some((bytes, from)) = self.socket.receive(buffer)? {
            let received = now(self.clock);
            self.handle(&mut buffer[..bytes], from, received);
        }
        Ok(())
    }

    /// Sends the packets of a down-stream that are due, and handles one datagram if it comes before the next is due.
    #[inline]
    fn send_down_and_receive(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut max_wait = Nanos::ZERO;
        for _ in 0..DOWN_BURST_MAX {
            match self.reflector.down_due(now(self.clock), buffer) {
                DownDue::Packet { bytes, to } => {
                    self.socket.set_reply_source(self.down_from, false);
                    match self.socket.reply(&buffer[..bytes], to) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            self.reflector.take_back_down();
                            max_wait = FULL_BUFFER_WAIT;
                        }
                        sent => {
                            self.count(sent);
                            self.read_stamps();
                        }
                    }
                }
                DownDue::In(span) => max_wait = span,
                DownDue::Nothing => max_wait = WAIT_MAX,
            }
            if max_wait > Nanos::ZERO {
                break;
            }
        }
        if let Some((bytes, from)) = self.socket.receive_within(buffer, max_wait)? {
            let received = now(self.clock);
            self.handle(&mut buffer[..bytes], from, received);
        }
        Ok(())
    }

    /// Handles all datagrams of one receive call, and returns when that returned.
    #[inline]
    fn receive_batch(&mut self, batch: &mut BatchBuffer) -> io::Result<Stamp<ReflectorClock>> {
        let buffers = self.socket.receive_batch(batch, self.may_pause)?;
        let received = now(self.clock);
        for index in 0..buffers {
            let Some(datagrams) = batch.get(index) else { continue };
            self.socket.set_reply_source(datagrams.local, datagrams.merged);
            if self.reflector.count_train(datagrams.bytes, datagrams.each_bytes, datagrams.from, received) {
                continue;
            }
            for datagram in datagrams.bytes.chunks_mut(datagrams.each_bytes) {
                self.handle(datagram, datagrams.from, received);
            }
        }
        Ok(received)
    }

    #[inline]
    fn handle(&mut self, datagram: &mut [u8], from: SocketAddr, received: Stamp<ReflectorClock>) {
        if SessionReflector::needs_receiver_state(datagram) {
            self.update_state();
        }
        let bytes = match self.reflector.handle(datagram, from, received) {
            ReflectorAction::Drop(_) | ReflectorAction::Counted => return,
            ReflectorAction::Reply(bytes) => return self.reply(&datagram[..bytes], from, received),
            ReflectorAction::Reflect(pending) => match pending.stamped() {
                Some(probe) => return self.answer_stamped(pending, probe, datagram, from),
                None => {
                    let cpu = (self.cpu)();
                    pending.seal(now(self.clock), cpu, datagram)
                }
            },
        };
        self.send(&datagram[..bytes], from);
    }

    /// Answers with the kernel's receive stamp and the passage of an earlier answer, and then takes the stamps of those that
    /// have left.
    fn answer_stamped(&mut self, mut pending: PendingReply, probe: (u16, u64), datagram: &mut [u8], to: SocketAddr) {
        let (passages, cpu) = (&mut self.passages, (self.cpu)());
        pending.add_stamps(
            passages.arrival(self.socket.stamps().and_then(|stamps| stamps.received_ns)),
            passages.take(probe.0),
        );
        let sent = now(self.clock);
        let bytes = pending.seal(sent, cpu, datagram);
        let replied = self.socket.reply(&datagram[..bytes], to);
        self.count(replied);
        if let Some(number) = self.socket.stamps().and_then(|stamps| stamps.last_number) {
            self.passages.sent(number, probe, sent);
        }
        self.read_stamps();
    }

    /// Takes the stamps of what has left, after every reply: in the error queue they take up the receive buffer.
    #[inline]
    fn read_stamps(&mut self) {
        let Some(stamps) = self.socket.stamps() else { return };
        while let Some(stamp) = stamps.next_transmitted() {
            self.passages.left(stamp);
            if Some(stamp.number) == stamps.last_number {
                break;
            }
        }
    }

    /// Replies to a message of set-up, end or POLL, after which the socket may need another configuration.
    #[cold]
    fn reply(&mut self, reply: &[u8], to: SocketAddr, received: Stamp<ReflectorClock>) {
        if MessageType::of(reply) == Ok(MessageType::Cookie) {
            let sent = self.socket.reply_cookie(reply, to);
            return self.count(sent);
        }
        if self.reflector.down_peer() == Some(to) {
            self.down_from = self.socket.last_destination();
        }
        // Before the reply: after an ACCEPT packets may come as its terms say.
        self.configure(received);
        self.send(reply, to);
        if let Some(peer) = self.reflector.single_peer() {
            self.socket.dedicate_to(peer);
        }
    }

    #[inline]
    fn send(&mut self, datagram: &[u8], to: SocketAddr) {
        let sent = self.socket.reply(datagram, to);
        self.count(sent);
        self.read_stamps();
    }

    #[inline]
    fn count(&mut self, sent: io::Result<()>) {
        if sent.is_err() {
            self.reflector.count_failed_reply();
        }
    }

    fn configure(&mut self, at: Stamp<ReflectorClock>) {
        let terms = self.reflector.required_terms(at);
        self.batched = terms.batched;
        self.may_pause = self.reflector.has_streams_only(at);
        self.socket.configure(terms);
        self.read_driver();
        self.socket.offer(&mut self.reflector.in_driver(at));
    }

    /// Ends the sessions of closed connections, and closes connections without a session.
    #[cold]
    fn check_connections(&mut self) {
        while let Some(peer) = self.socket.next_closed() {
            self.reflector.disconnect(peer);
        }
        let (reflector, at) = (&*self.reflector, now(self.clock));
        self.socket.close_idle(|peer| reflector.has_session(peer, at));
    }

    /// Takes over what a program in the network driver has counted.
    fn read_driver(&mut self) {
        let Receiver { socket, reflector, .. } = self;
        socket.read_driver(&mut |session, counts| reflector.set_driver_counts(session, &counts));
    }

    #[cold]
    fn update_state(&mut self) {
        let report = self.socket.report();
        if let Some(tally) = report.connections {
            self.reflector.set_connections(tally);
        }
        self.reflector.set_ignored_samples(report.ignored_samples);
        self.read_driver();
        self.reflector.set_receiver_state(ReceiverState {
            socket_drops: report.drops,
            drops_merged: report.drops_merged,
            // Such a thread does a part of the work, or handles a message now and then while it waits for the others.
            thread_cpu: (!IS_BESIDE_LIBRARY.get()).then(|| Nanos(latlab_sys::clock::thread_cpu_ns())),
        });
    }
}

/// The clock of this host as the reflector's.
#[inline]
fn now(clock: &impl Clock) -> Stamp<ReflectorClock> {
    Stamp::from_nanos(clock.now().as_nanos())
}

/// The bound socket of a reflector, of any transport.
pub trait Listener: Send {
    fn kind(&self) -> TransportKind;

    /// The bound address, with the port that the kernel chose.
    fn address(&self) -> SocketAddr;

    /// The granted receive buffer in bytes; `None` if none was requested.
    fn receive_buffer_bytes(&self) -> Option<u32>;

    /// Its AF_XDP socket, or its program in the network driver; `None` without either.
    fn xdp(&self) -> Option<&XdpFacts>;

    /// [`serve`] on this host's clock. `cpu`: the CPU to which the calling thread is pinned.
    ///
    /// # Errors
    /// As [`serve`].
    fn serve(
        &mut self,
        reflector: &mut SessionReflector,
        cpu: Option<u16>,
        requests: Requests<'_>,
        show: &mut dyn FnMut(&ReflectorCounters),
    ) -> Result<(), ServeError>;
}

/// Binds the socket of a reflector.
///
/// # Errors
/// The port is in use, the address is not local, a permission is missing.
pub fn listen(kind: TransportKind, options: ListenOptions) -> Result<Box<dyn Listener>, TransportError> {
    transport::visit(kind, Listen(options))
}

struct Listen(ListenOptions);

impl FamilyVisitor for Listen {
    type Output = Result<Box<dyn Listener>, TransportError>;

    fn visit<F: TransportFamily>(self) -> Self::Output {
        Ok(Box::new(FamilyListener::<F>(F::listen(&self.0)?)))
    }
}

struct FamilyListener<F: TransportFamily>(Bound<F::Listener>);

impl<F: TransportFamily> Listener for FamilyListener<F> {
    fn kind(&self) -> TransportKind {
        F::KIND
    }

    fn address(&self) -> SocketAddr {
        self.0.address
    }

    fn receive_buffer_bytes(&self) -> Option<u32> {
        self.0.receive_buffer_bytes
    }

    fn xdp(&self) -> Option<&XdpFacts> {
        self.0.xdp.as_ref()
    }

    fn serve(
        &mut self,
        reflector: &mut SessionReflector,
        cpu: Option<u16>,
        requests: Requests<'_>,
        show: &mut dyn FnMut(&ReflectorCounters),
    ) -> Result<(), ServeError> {
        let socket = &mut self.0.socket;
        match cpu {
            // A pinned thread needs no look at its CPU.
            Some(cpu) => serve(socket, reflector, &Monotonic, requests, || Some(cpu), show),
            None => serve(socket, reflector, &Monotonic, requests, latlab_sys::scheduler::current_cpu, show),
        }
    }
}

/// Checks that a reflector with `key` may listen on `address` (rule R1).
///
/// # Errors
/// [`ServeError::KeylessRemote`] if other hosts can reach `address` and no key is given.
pub fn check_address(address: SocketAddr, key: Option<&PreSharedKey>) -> Result<(), ServeError> {
    if key.is_some() || address.ip().to_canonical().is_loopback() {
        Ok(())
    } else {
        Err(ServeError::KeylessRemote { address })
    }
}

/// Why a reflector does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other hosts could reach it without a key.
    #[error("cannot serve on `{address}` without a key")]
    KeylessRemote { address: SocketAddr },
    #[error("cannot receive any more")]
    Broken { source: io::Error },
}

impl Explain for ServeError {
    fn explain(&self) -> Failure {
        match self {
            ServeError::KeylessRemote { .. } => Failure::request(self)
                .because("other hosts could reach it; without a key only loopback is served")
                .hint("make a key with `latlab keygen lab.key` and give it as `--psk-file lab.key` at both ends"),
            ServeError::Broken { source } => {
                Failure::world(self).because(format!("{RECEIVE_FAILURES_MAX} failures in a row: {source}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::admission::ReflectorLimits;
    use super::*;

    #[test]
    fn without_a_key_only_loopback_is_permitted() {
        for (address, permitted) in [
            ("127.0.0.1:9862", true),
            ("127.9.9.9:9862", true),
            ("[::1]:9862", true),
            ("[::ffff:127.0.0.1]:9862", true),
            ("0.0.0.0:9862", false),
            ("[::]:9862", false),
            ("192.0.2.1:9862", false),
        ] {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(check_address(address, None).is_ok(), permitted, "{address}");
            let key = PreSharedKey::generate().expect("random bytes");
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
    fn a_broken_socket_is_counted_and_ends_the_loop() {
        let mut reflector = SessionReflector::new(ReflectorLimits::DEFAULT, None, [0; 32]);
        let never = AtomicBool::new(false);
        let requests = Requests { stop: &never, counters: &never };
        let ended = serve(&mut Broken, &mut reflector, &Monotonic, requests, || None, |_| {});
        assert!(matches!(ended, Err(ServeError::Broken { .. })));
        assert_eq!(reflector.counters(Stamp::from_nanos(0)).receive_failed, 100);
    }
}
