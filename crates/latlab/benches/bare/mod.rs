//! The bare loops: only the system calls of a run, to determine the cost that latlab adds to them. Each runs in processes of
//! the bench's own binary, as latlab's runs do.

#[cfg(feature = "dds")]
mod dds;
mod delivered;
pub(crate) mod receiver;
mod schedule;
mod stream;
mod tcp;
mod wakeup;
mod xdp;
mod xdp_stream;

use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use latlab::host::{Lab, placement};
use latlab::measure::baseline::bare::{self, Wait};
use latlab::metric::Metric;
use latlab::plan::{DdsSpec, EndSpec, SenderSocketOptions, TransportKind};
use latlab::sample::Sample;
use latlab::stats::{DescribeOptions, describe};
use latlab_sys::socket;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use delivered::Delivered;
use receiver::BareReceiver;
pub(crate) use wakeup::Wakeups;
use xdp::BareXdp;

/// The first argument of a process that runs a bare loop.
const COMMAND: &str = "bare";
/// Round trips of the warm-up.
const WARMUP: usize = 1_000;

/// What a process does: the second argument, as JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    RoundTrips(RoundTrips),
    Stream(Stream),
    Wakeups(Wakeups),
    /// Returns messages at this address.
    Reflect(RoundTrips, SocketAddr),
    /// Counts packets at this address.
    Count(Stream, SocketAddr),
}

/// Round trips on loopback; past the network stack between two private namespaces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RoundTrips {
    pub(crate) transport: TransportKind,
    pub(crate) dds: DdsSpec,
    /// The time between two messages, over UDP only; `None`: each follows the answer to the one before.
    pub(crate) interval_ns: Option<i64>,
    pub(crate) count: usize,
    pub(crate) size_bytes: u32,
    pub(crate) here: EndSpec,
    pub(crate) peer: EndSpec,
}

/// A stream on loopback; past the network stack between two private namespaces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Stream {
    pub(crate) transport: TransportKind,
    pub(crate) sending: SenderSocketOptions,
    pub(crate) receiver: BareReceiver,
    pub(crate) size_bytes: u32,
    pub(crate) span_ns: i64,
    pub(crate) ipv6: bool,
    pub(crate) here: EndSpec,
    pub(crate) peer: EndSpec,
}

impl Order {
    /// The process that runs it and prints its figures as JSON.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap_or_default());
        command.args([COMMAND, &json!(self).to_string()]).stdin(Stdio::null());
        command
    }

    fn run(&self) -> Result<Value, String> {
        match self {
            Order::RoundTrips(spec) => spec.measure(),
            Order::Stream(spec) => spec.measure().map(|delivered| json!(delivered)),
            Order::Wakeups(spec) => Ok(figures(Metric::WakeupLatency, spec.run()?)),
            Order::Reflect(spec, local) => spec.reflect(*local).map(|()| Value::Null),
            Order::Count(spec, local) => spec.count(*local).map(|()| Value::Null),
        }
    }
}

/// Runs the order in the arguments of this process, if there is one, and ends the process.
pub(crate) fn run_if_asked() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [COMMAND, order] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] else { return };
    let order = serde_json::from_str::<Order>(order).map_err(|error| error.to_string());
    match order.and_then(|order| order.run()) {
        Ok(figures) => println!("{figures}"),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(3);
        }
    }
    std::process::exit(0);
}

impl RoundTrips {
    fn measure(&self) -> Result<Value, String> {
        let loopback = Ipv4Addr::LOCALHOST.into();
        let far = FarEnd::start(self.transport, loopback, |local| Order::Reflect(*self, local))?;
        let _namespace = far.enter(&self.here)?;
        if self.interval_ns.is_some() {
            placement::minimise_timer_slack();
        }
        let (size, wait) = (self.size_bytes as usize, self.here.wait.into());
        let mut end = RoundTripEnd::connect(self, far.address, wait).map_err(text)?;
        end.ping(size, wait, WARMUP).map_err(text)?;
        let round_trips_ns = match (self.interval_ns, &end) {
            (Some(interval_ns), RoundTripEnd::Udp(socket)) => {
                schedule::ping(socket, size, wait, self.count, interval_ns)
            }
            _ => end.ping(size, wait, self.count),
        };
        let round_trips_ns = round_trips_ns.map_err(text)?.into_iter().map(i64::from).collect();
        Ok(figures(Metric::RoundTripDelay, round_trips_ns))
    }

    fn reflect(&self, local: SocketAddr) -> Result<(), String> {
        placement::place(&self.peer).map_err(text)?;
        let wait = self.peer.wait.into();
        let mut end = RoundTripEnd::bind(self, local, wait).map_err(text)?;
        println!("{}", end.address().map_err(text)?);
        end.reflect(self.size_bytes as usize, wait).map_err(text)
    }
}

impl Stream {
    fn measure(&self) -> Result<Delivered, String> {
        let [v4, v6] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let loopback = if self.ipv6 { v6 } else { v4 };
        let far = FarEnd::start(self.transport, loopback, |local| Order::Count(*self, local))?;
        let _namespace = far.enter(&self.here)?;
        match self.transport {
            TransportKind::Xdp => {
                let mut end = BareXdp::connect(far.address).map_err(text)?;
                end.stream(self.size_bytes as usize, self.sending, self.span_ns)
            }
            _ => stream::send(far.address, self.sending, self.size_bytes, self.span_ns),
        }
        .map_err(text)
    }

    fn count(&self, local: SocketAddr) -> Result<(), String> {
        placement::place(&self.peer).map_err(text)?;
        let wait = self.peer.wait.into();
        if self.transport == TransportKind::Xdp {
            let mut end = BareXdp::bind(local).map_err(text)?;
            println!("{}", end.address());
            return end.count(wait).map_err(text);
        }
        let socket = receiver::bind(local, wait, self.receiver).map_err(text)?;
        println!("{}", socket::local_address(socket.as_fd()).map_err(text)?);
        receiver::count(&socket, wait, self.receiver).map_err(text)
    }
}

/// The process of the other end, which is killed when this value is dropped.
struct FarEnd {
    lab: Option<Lab>,
    process: Child,
    address: SocketAddr,
}

impl FarEnd {
    fn start(
        transport: TransportKind,
        loopback: IpAddr,
        order: impl FnOnce(SocketAddr) -> Order,
    ) -> Result<FarEnd, String> {
        let lab = (transport == TransportKind::Xdp).then(Lab::set_up).transpose().map_err(text)?;
        let address = lab.as_ref().map_or(loopback, Lab::reflector_ipv4);
        let _namespace = lab.as_ref().map(Lab::enter_reflector).transpose().map_err(text)?;
        let mut command = order(SocketAddr::new(address, 0)).command();
        latlab_sys::process::end_with_parent(command.stdout(Stdio::piped()));
        let mut process = command.spawn().map_err(text)?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("no pipe")?;
        BufReader::new(output).read_line(&mut line).map_err(text)?;
        let address = line.trim().parse().map_err(|_| "the other end did not start".to_owned())?;
        Ok(FarEnd { lab, process, address })
    }

    /// Places this thread as the sender.
    fn enter(&self, here: &EndSpec) -> Result<Option<latlab::host::EnteredNamespace>, String> {
        let namespace = self.lab.as_ref().map(Lab::enter_sender).transpose().map_err(text)?;
        placement::place(here).map_err(text)?;
        Ok(namespace)
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One end of the round trips.
enum RoundTripEnd {
    Udp(OwnedFd),
    /// A TCP connection, or a listener.
    Tcp(OwnedFd),
    Xdp(BareXdp),
    /// A writer and a reader of DDS.
    #[cfg(feature = "dds")]
    Dds(Box<dds::BareDds>),
}

impl RoundTripEnd {
    fn connect(spec: &RoundTrips, peer: SocketAddr, wait: Wait) -> io::Result<RoundTripEnd> {
        match spec.transport {
            TransportKind::Udp => bare::connect(peer, wait).map(RoundTripEnd::Udp),
            TransportKind::Tcp => tcp::connect(peer, wait).map(RoundTripEnd::Tcp),
            TransportKind::Xdp => BareXdp::connect(peer).map(RoundTripEnd::Xdp).map_err(io::Error::other),
            #[cfg(feature = "dds")]
            TransportKind::Dds => dds::BareDds::connect(peer, spec.dds, wait).map(Box::new).map(RoundTripEnd::Dds),
            #[cfg(not(feature = "dds"))]
            TransportKind::Dds => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn bind(spec: &RoundTrips, local: SocketAddr, wait: Wait) -> io::Result<RoundTripEnd> {
        match spec.transport {
            TransportKind::Udp => bare::bind(local, wait).map(RoundTripEnd::Udp),
            TransportKind::Tcp => tcp::bind(local).map(RoundTripEnd::Tcp),
            TransportKind::Xdp => BareXdp::bind(local).map(RoundTripEnd::Xdp).map_err(io::Error::other),
            #[cfg(feature = "dds")]
            TransportKind::Dds => dds::BareDds::bind(local, spec.dds, wait).map(Box::new).map(RoundTripEnd::Dds),
            #[cfg(not(feature = "dds"))]
            TransportKind::Dds => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn address(&self) -> io::Result<SocketAddr> {
        match self {
            RoundTripEnd::Udp(socket) | RoundTripEnd::Tcp(socket) => socket::local_address(socket.as_fd()),
            RoundTripEnd::Xdp(end) => Ok(end.address()),
            #[cfg(feature = "dds")]
            RoundTripEnd::Dds(end) => Ok(end.address()),
        }
    }

    /// Sends `count` messages of `size` bytes, each after the answer to the last; their round trips in ns.
    fn ping(&mut self, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
        match self {
            RoundTripEnd::Udp(socket) => bare::ping(socket, size, wait, count),
            RoundTripEnd::Tcp(socket) => tcp::ping(socket, size, wait, count),
            RoundTripEnd::Xdp(end) => end.ping(size, wait, count),
            #[cfg(feature = "dds")]
            RoundTripEnd::Dds(end) => end.ping(size, wait, count),
        }
    }

    /// Returns messages of `size` bytes.
    fn reflect(&mut self, size: usize, wait: Wait) -> io::Result<()> {
        match self {
            RoundTripEnd::Udp(socket) => bare::reflect(socket, wait, &AtomicBool::new(false)),
            RoundTripEnd::Tcp(socket) => tcp::reflect(socket, size, wait),
            RoundTripEnd::Xdp(end) => end.reflect(wait),
            #[cfg(feature = "dds")]
            RoundTripEnd::Dds(end) => end.reflect(size, wait),
        }
    }
}

fn figures(metric: Metric, values_ns: Vec<i64>) -> Value {
    let options = DescribeOptions { quantiles: vec![0.5, 0.99, 0.999], confidence: 0.95, intervals: false };
    let described = describe(&Sample::new(metric, values_ns), &options);
    let quantile = |at: usize| described.quantiles.get(at).and_then(|quantile| quantile.value);
    json!({ "p50_ns": quantile(0), "p99_ns": quantile(1), "p999_ns": quantile(2) })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
