//! What the drivers of network interfaces can do past the network stack, as the kernel lists it since Linux 6.3: the family
//! `netdev` of
//! [generic netlink](https://docs.kernel.org/networking/generic_netlink.html),
//! [netdev](https://docs.kernel.org/networking/netlink_spec/netdev.html).

use std::io;

use netlink_sys::{Socket, protocols::NETLINK_GENERIC};
use rustix::io::Errno;

use super::route_socket::kernel_socket;

/// The family that lists families.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GET_DEVICE: u8 = 1;
const INTERFACE_INDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;
const GET_NAPI: u8 = 11;
const DEFER_INTERRUPTS: u16 = 5;
const FLUSH_TIMEOUT: u16 = 6;
/// Bits of the features.
const BASIC: u64 = 1;
const REDIRECT: u64 = 2;
const ZERO_COPY: u64 = 8;

const REQUEST: u16 = 1;
/// An answer of several messages, until one says that it is done.
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// The headers of netlink and of generic netlink, and of an attribute.
const HEADER_BYTES: usize = 16 + 4;
const ATTRIBUTE_BYTES: usize = 4;
/// More than an answer has.
const BUFFER_BYTES: usize = 8 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    /// It runs programs, which can redirect packets.
    pub native: bool,
    /// Its device writes into the memory of AF_XDP sockets.
    pub zero_copy: bool,
}

/// The queues of an interface that can be polled without interrupts
/// ([NAPI](https://docs.kernel.org/networking/napi.html)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolledQueues {
    pub count: u32,
    /// Whether all of them keep interrupts off while they are polled: `napi_defer_hard_irqs` and `gro_flush_timeout` are set.
    /// `None` without a queue, and before Linux 6.13.
    pub defer_interrupts: Option<bool>,
}

impl PolledQueues {
    /// `queues`: the attributes of each.
    fn of(queues: &[Vec<u8>]) -> PolledQueues {
        let is_set = |queue: &[u8], setting| Some(attribute(queue, setting)?.iter().any(|byte| *byte > 0));
        let defers = |queue: &Vec<u8>| Some(is_set(queue, DEFER_INTERRUPTS)? && is_set(queue, FLUSH_TIMEOUT)?);
        let known: Option<Vec<bool>> = queues.iter().map(defers).collect();
        let defer_interrupts =
            known.filter(|known| !known.is_empty()).map(|known| known.into_iter().all(|defers| defers));
        PolledQueues { count: queues.len() as u32, defer_interrupts }
    }
}

/// The family `netdev` of generic netlink, in the namespace of the calling thread.
#[derive(Debug)]
pub struct DeviceAbilities {
    socket: Socket,
    family: u16,
}

impl DeviceAbilities {
    /// # Errors
    /// ENOENT: the kernel is older than Linux 6.3.
    pub fn open() -> io::Result<DeviceAbilities> {
        let socket = kernel_socket(NETLINK_GENERIC)?;
        let value = b"netdev\0";
        let question = Question { family: CONTROL, command: GET_FAMILY, is_dump: false, attribute: FAMILY_NAME, value };
        let family = ask(&socket, question)?;
        let family = family.first().and_then(|family| attribute(family, FAMILY_ID)?.first_chunk());
        let family = u16::from_ne_bytes(*family.ok_or(io::ErrorKind::InvalidData)?);
        Ok(DeviceAbilities { socket, family })
    }

    /// The abilities of the driver of the interface `index`.
    ///
    /// # Errors
    /// ENODEV: the interface is gone.
    pub fn xdp(&self, index: u32) -> io::Result<XdpFeatures> {
        let device = self.ask(GET_DEVICE, false, index)?;
        let features = device.first().and_then(|device| attribute(device, XDP_FEATURES)?.first_chunk());
        let features = u64::from_ne_bytes(*features.ok_or(io::ErrorKind::InvalidData)?);
        let native = features & (BASIC | REDIRECT) == BASIC | REDIRECT;
        Ok(XdpFeatures { native, zero_copy: features & ZERO_COPY != 0 })
    }

    /// The polled queues of the interface `index`; `None`: the kernel does not list them (before Linux 6.8).
    ///
    /// # Errors
    /// The kernel's.
    pub fn polled_queues(&self, index: u32) -> io::Result<Option<PolledQueues>> {
        match self.ask(GET_NAPI, true, index) {
            Ok(queues) => Ok(Some(PolledQueues::of(&queues))),
            Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ask(&self, command: u8, is_dump: bool, index: u32) -> io::Result<Vec<Vec<u8>>> {
        let value = &index.to_ne_bytes();
        ask(&self.socket, Question { family: self.family, command, is_dump, attribute: INTERFACE_INDEX, value })
    }
}

struct Question<'a> {
    family: u16,
    command: u8,
    /// Its answer has several messages.
    is_dump: bool,
    attribute: u16,
    value: &'a [u8],
}

/// Returns the attributes of each message of the answer.
fn ask(socket: &Socket, question: Question<'_>) -> io::Result<Vec<Vec<u8>>> {
    socket.send(&message(&question), 0)?;
    let mut found = Vec::new();
    loop {
        let mut answer = Vec::with_capacity(BUFFER_BYTES);
        socket.recv(&mut answer, 0)?;
        let mut rest = &answer[..];
        while let Some(head) = rest.first_chunk::<16>() {
            let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let bytes = word(0) as usize;
            let whole = rest.get(..bytes).filter(|_| bytes >= head.len()).ok_or(io::ErrorKind::InvalidData)?;
            match word(4) as u16 {
                // An error before the first message of an answer, and one that ends it early.
                kind @ (ERROR | DONE) => {
                    let errno = whole.get(16..20).and_then(|errno| Some(i32::from_ne_bytes(*errno.first_chunk()?)));
                    let errno = errno.unwrap_or_default().wrapping_neg();
                    let is_whole = kind == DONE && errno <= 0;
                    return is_whole.then_some(found).ok_or_else(|| io::Error::from_raw_os_error(errno));
                }
                _ => found.push(whole.get(HEADER_BYTES..).unwrap_or_default().to_vec()),
            }
            rest = rest.get(bytes.next_multiple_of(4)..).unwrap_or_default();
        }
        if !question.is_dump {
            return Ok(found);
        }
    }
}

fn message(question: &Question<'_>) -> Vec<u8> {
    let Question { family, command, is_dump, attribute, value } = question;
    let flags = if *is_dump { REQUEST | DUMP } else { REQUEST };
    let mut message = vec![0; HEADER_BYTES + ATTRIBUTE_BYTES];
    let attribute_bytes = (ATTRIBUTE_BYTES + value.len()) as u16;
    message[4..6].copy_from_slice(&family.to_ne_bytes());
    message[6..8].copy_from_slice(&flags.to_ne_bytes());
    (message[16], message[17]) = (*command, 1);
    message[HEADER_BYTES..][..2].copy_from_slice(&attribute_bytes.to_ne_bytes());
    message[HEADER_BYTES + 2..].copy_from_slice(&attribute.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
    let bytes = message.len() as u32;
    message[..4].copy_from_slice(&bytes.to_ne_bytes());
    message
}

/// The value of the attribute `wanted`.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (head, rest) = attributes.split_first_chunk::<ATTRIBUTE_BYTES>()?;
        let bytes = usize::from(u16::from_ne_bytes([head[0], head[1]])).checked_sub(ATTRIBUTE_BYTES)?;
        let value = rest.get(..bytes)?;
        if u16::from_ne_bytes([head[2], head[3]]) == wanted {
            return Some(value);
        }
        attributes = rest.get(bytes.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LOOPBACK;

    #[test]
    fn loopback_runs_programs_in_the_network_stack_only_and_polls_nothing() {
        let abilities = match DeviceAbilities::open() {
            Ok(abilities) => abilities,
            Err(error) => {
                return assert_eq!(error.kind(), io::ErrorKind::NotFound, "only an older kernel does not say: {error}");
            }
        };
        let features = abilities.xdp(LOOPBACK).expect("it is there");
        assert_eq!(features, XdpFeatures { native: false, zero_copy: false });
        let queues = abilities.polled_queues(LOOPBACK).expect("an answer");
        assert!(queues.is_none_or(|queues| queues == PolledQueues { count: 0, defer_interrupts: None }), "{queues:?}");
        let unknown = u32::MAX >> 1;
        assert!(abilities.xdp(unknown).is_err());
        let queues = abilities.polled_queues(unknown);
        assert!(matches!(queues, Err(_) | Ok(None)), "the list ends early: {queues:?}");
    }

    #[test]
    fn interrupts_are_deferred_if_each_queue_says_so() {
        let setting =
            |number: u16, value: u32| [&8_u16.to_ne_bytes()[..], &number.to_ne_bytes(), &value.to_ne_bytes()].concat();
        let queue = |defer, timeout| {
            [setting(1, 2), setting(DEFER_INTERRUPTS, defer), setting(FLUSH_TIMEOUT, timeout)].concat()
        };
        // As before Linux 6.13.
        let silent = setting(1, 2);
        for (queues, expected) in [
            (vec![queue(2, 200_000)], Some(true)),
            (vec![queue(2, 200_000), queue(1, 1 << 16)], Some(true)),
            (vec![queue(2, 200_000), queue(2, 0)], Some(false)),
            (vec![queue(0, 200_000)], Some(false)),
            (vec![queue(2, 200_000), silent.clone()], None),
            (vec![silent], None),
            (vec![], None),
        ] {
            let found = PolledQueues::of(&queues);
            assert_eq!(found, PolledQueues { count: queues.len() as u32, defer_interrupts: expected });
        }
    }

    #[test]
    fn attributes_are_found_behind_others() {
        let attributes = [5, 0, 1, 0, 9, 0, 0, 0, 8, 0, 3, 0, 1, 2, 3, 4];
        assert_eq!(attribute(&attributes, 1), Some(&[9][..]));
        assert_eq!(attribute(&attributes, 3), Some(&[1, 2, 3, 4][..]));
        assert_eq!(attribute(&attributes, 2), None);
        assert_eq!(attribute(&attributes[..15], 3), None, "truncated");
        assert_eq!(attribute(&[3, 0, 3, 0], 3), None, "shorter than its head");
    }
}
