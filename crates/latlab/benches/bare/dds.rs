//! The bare loop over DDS: a round trip with the calls of the library that latlab makes, and clock reads. No session, no
//! transport trait, no recording; only the round-trip times are kept.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use latlab::measure::baseline::bare::Wait;
use latlab::plan::DdsSpec;
use latlab::transport::dds::{self, DdsError, Reader, Receiving, Writer, are_matched};
use latlab_sys::clock::monotonic_ns;

/// The time after which a missing answer is an error, and a missing partner.
const GIVE_UP: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(2);
/// This writer knows the peer's reader before that reader knows this writer: until then samples with best effort are lost.
const SETTLING: Duration = Duration::from_millis(200);

/// A writer and a reader of one end.
#[derive(Debug)]
pub(crate) struct BareDds {
    writer: Writer,
    reader: Reader,
    receiving: Receiving,
    address: SocketAddr,
    _port: Option<UdpSocket>,
}

impl BareDds {
    /// The sender of a reflector at `peer`.
    pub(crate) fn connect(peer: SocketAddr, spec: DdsSpec, wait: Wait) -> io::Result<BareDds> {
        let end = BareDds::open(peer, spec, wait, [0, 1])?;
        for _ in 0..GIVE_UP.as_millis() / STEP.as_millis() {
            thread::sleep(STEP);
            if are_matched(&end.writer, &end.reader).map_err(io::Error::other)? {
                thread::sleep(SETTLING);
                end.receiving.take_matched();
                return Ok(end);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// The reflector at `local`; port 0: a free one. The port only names the partition, and is reserved by a socket.
    pub(crate) fn bind(local: SocketAddr, spec: DdsSpec, wait: Wait) -> io::Result<BareDds> {
        let port = UdpSocket::bind(local)?;
        let end = BareDds::open(port.local_addr()?, spec, wait, [1, 0])?;
        Ok(BareDds { _port: Some(port), ..end })
    }

    /// `topics`: which one is written, and which one is read.
    fn open(address: SocketAddr, spec: DdsSpec, wait: Wait, topics: [usize; 2]) -> io::Result<BareDds> {
        let participant = dds::join(spec, address.ip(), address.ip(), wait == Wait::Spin).map_err(io::Error::other)?;
        let (names, kind) = (dds::topics(spec.keyed), dds::topic_type(spec.keyed));
        let (qos, partition) = (dds::qos(spec.reliability, spec.history), format!("latlab-bare/{}", address.port()));
        let (receiving, [to, from]) = (Receiving::default(), topics.map(|index| names[index]));
        let reader = participant.reader(from, kind, qos, &partition, &receiving).map_err(io::Error::other)?;
        let writer = participant.writer(to, kind, qos, &partition).map_err(io::Error::other)?;
        Ok(BareDds { writer, reader, receiving, address, _port: None })
    }

    /// The address, whose port names the partition.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends `count` messages of `size` bytes, each after the answer to the one before. Returns the round-trip times in ns.
    pub(crate) fn ping(&mut self, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
        let probe = vec![0x5a; size];
        let mut answer = vec![0; size + 1];
        // Written before the loop, so that the loop causes no page faults.
        let mut round_trips_ns = vec![u32::MAX; count];
        for round_trip_ns in &mut round_trips_ns {
            let sent = monotonic_ns();
            self.writer.write(&probe, dds::KEY).map_err(io::Error::other)?;
            let received = match wait {
                Wait::Spin => self.poll(&mut answer)?,
                Wait::Block | Wait::BusyPoll => self.listen(&mut answer)?,
            };
            *round_trip_ns = u32::try_from(received - sent).unwrap_or(u32::MAX);
        }
        Ok(round_trips_ns)
    }

    /// When the next sample came, by the thread that received it.
    fn listen(&mut self, answer: &mut [u8]) -> io::Result<i64> {
        let BareDds { reader, receiving, .. } = self;
        let (mut taken, mut received) = (Ok(None), 0);
        receiving.run_within(GIVE_UP, &mut || {
            taken = reader.take(answer);
            received = monotonic_ns();
            !matches!(taken, Ok(None))
        });
        taken.map_err(io::Error::other)?.map(|_| received).ok_or_else(|| io::ErrorKind::TimedOut.into())
    }

    /// When the next sample came, by this thread.
    fn poll(&mut self, answer: &mut [u8]) -> io::Result<i64> {
        let start = Instant::now();
        while start.elapsed() < GIVE_UP {
            if self.reader.take(answer).map_err(io::Error::other)?.is_some() {
                return Ok(monotonic_ns());
            }
            thread::yield_now();
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Returns every message.
    pub(crate) fn reflect(&mut self, size: usize, wait: Wait) -> io::Result<()> {
        let BareDds { writer, reader, receiving, .. } = self;
        let mut buffer = vec![0; size + 1];
        let mut failed = Ok(());
        let mut answer_all = || {
            while let Some(sample) = reader.take(&mut buffer)? {
                writer.write(&buffer[..sample.bytes], sample.key)?;
            }
            Ok::<(), DdsError>(())
        };
        while failed.is_ok() {
            if wait == Wait::Spin {
                failed = answer_all();
                thread::yield_now();
                continue;
            }
            receiving.run_within(Duration::from_millis(100), &mut || {
                failed = answer_all();
                failed.is_err()
            });
            receiving.take_matched();
        }
        failed.map_err(io::Error::other)
    }
}
