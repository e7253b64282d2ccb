//! How datagrams travel. One file per way; the seam has two verbs (docs/design/0003-transport-seam.md).

pub mod batch_receiver;
pub mod burst;
pub mod connections;
pub mod frame;
mod place;
pub mod prefix;
pub mod reflector;
pub mod refusal;
pub mod resolve;
pub mod sim;
pub mod tcp;
pub mod tcp_reflector;
pub mod udp;
pub mod udp_stream;
mod waiting;

use std::io;

use crate::units::Nanos;

/// A path to one peer, open and connected: what it can carry was settled when it was opened.
pub trait Transport {
    /// Hands one datagram to the network. An error is the kernel's refusal of *this* datagram.
    fn send(&mut self, datagram: &[u8]) -> io::Result<()>;

    /// Takes one datagram from the network into `buffer`, whole, and returns its length.
    ///
    /// `None`: nothing came. That may be earlier than `patience` (a spinning transport returns at
    /// once, an interrupted one when the signal came, a blocking one after its nap), never much later;
    /// callers read the clock and ask again.
    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>>;
}

/// A transport as a guest: lets a session borrow one that the caller keeps.
impl<T: Transport + ?Sized> Transport for &mut T {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        (**self).send(datagram)
    }

    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        (**self).receive(buffer, patience)
    }
}
