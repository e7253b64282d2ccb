//! Programs that the kernel runs for each packet of an interface (XDP), and their maps.
//! [bpf(2)](https://man7.org/linux/man-pages/man2/bpf.2.html),
//! [linux/bpf.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/bpf.h)
//!
//! libc does not define `union bpf_attr`: each command has a structure of its own here, of the fields that it needs.

use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: c_int = 0;
const MAP_LOOKUP_ELEM: c_int = 1;
const MAP_UPDATE_ELEM: c_int = 2;
const PROG_LOAD: c_int = 5;
const PROG_TEST_RUN: c_int = 10;
const LINK_CREATE: c_int = 28;
const PROGRAM_OF_XDP: u32 = 6;
/// `BPF_XDP`, of the attach types.
const ATTACH_XDP: u32 = 37;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE` of linux/if_link.h.
const GENERIC: u32 = 1 << 1;
const NATIVE: u32 = 1 << 2;
/// The verifier's words on a program that it refuses, at most.
const LOG_BYTES: usize = 16 << 10;
/// The most attempts to load a program.
const LOADS: usize = 5;

/// One instruction of a program (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    pub code: u8,
    /// The destination register in the low four bits, the source register in the high ones; on big-endian hosts the other
    /// way round.
    pub registers: u8,
    /// A displacement of memory or a jump.
    pub offset: i16,
    pub immediate: i32,
}

/// The kinds of maps that latlab uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// `BPF_MAP_TYPE_ARRAY`: values of one size, by number.
    Array,
    /// `BPF_MAP_TYPE_XSKMAP`: AF_XDP sockets, by the number of their queue.
    XdpSockets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, before the kernel has made a buffer of the packet.
    Native,
    /// In the network stack, for drivers that cannot.
    Generic,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MapElement {
    map: u32,
    _unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct TestRun {
    program: u32,
    verdict: u32,
    input_bytes: u32,
    output_bytes: u32,
    input: u64,
    output: u64,
}

const _: () = assert!(size_of::<TestRun>() == 32);
const _: () = assert!(size_of::<MapCreate>() == 16);
const _: () = assert!(size_of::<MapElement>() == 32);
const _: () = assert!(size_of::<ProgramLoad>() == 40);
const _: () = assert!(size_of::<LinkCreate>() == 16);
const _: () = assert!(size_of::<Instruction>() == 8);

/// Runs `command` with `attributes`, which the kernel reads; it fills up a shorter structure with zeros.
fn bpf<T>(command: c_int, attributes: &T) -> io::Result<c_long> {
    let place: *const T = attributes;
    // SAFETY: pointer and length describe `attributes`. The pointers in it are to what its maker still borrows.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, place, size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// As [`bpf`], for a command that writes its results into `attributes`.
fn bpf_writing<T>(command: c_int, attributes: &mut T) -> io::Result<c_long> {
    let place: *mut T = attributes;
    // SAFETY: as above; the place is exclusive, and any bits are a valid value of these structures of numbers.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, place, size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn new_descriptor(answer: c_long) -> OwnedFd {
    // SAFETY: the call has just made this descriptor, which has no other owner.
    unsafe { OwnedFd::from_raw_fd(answer as c_int) }
}

/// A map between programs and this process; its keys are the numbers below the number of its entries.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    value_bytes: usize,
}

impl Map {
    /// A map of `entries` values, each of zeros.
    ///
    /// # Errors
    /// CAP_BPF or CAP_NET_ADMIN is missing, or memory is short.
    pub fn new(kind: MapKind, value_bytes: u32, entries: u32) -> io::Result<Map> {
        let kind = match kind {
            MapKind::Array => 2,
            MapKind::XdpSockets => 17,
        };
        let made = bpf(MAP_CREATE, &MapCreate { kind, key_bytes: 4, value_bytes, entries })?;
        Ok(Map { fd: new_descriptor(made), value_bytes: value_bytes as usize })
    }

    /// The number by which a program names the map when it is loaded.
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Sets the entry `key`.
    ///
    /// # Errors
    /// The kernel's, if the map lacks the entry.
    ///
    /// # Panics
    /// The value has another size.
    pub fn set(&self, key: u32, value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes, "bytes of a value");
        self.element(MAP_UPDATE_ELEM, key, value.as_ptr() as u64)
    }

    /// Sets the entry `key` to an AF_XDP socket.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn set_socket(&self, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.set(key, &socket.as_raw_fd().to_ne_bytes())
    }

    /// Reads the entry `key` into `value`.
    ///
    /// # Errors
    /// As [`Map::set`].
    ///
    /// # Panics
    /// As [`Map::set`].
    pub fn get(&self, key: u32, value: &mut [u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes, "bytes of a value");
        self.element(MAP_LOOKUP_ELEM, key, value.as_mut_ptr() as u64)
    }

    fn element(&self, command: c_int, key: u32, value: u64) -> io::Result<()> {
        let key = (&raw const key) as u64;
        bpf(command, &MapElement { map: self.fd.as_raw_fd() as u32, _unused: 0, key, value, flags: 0 }).map(drop)
    }
}

/// A program that the kernel has verified.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Program {
    /// Loads a program of XDP.
    ///
    /// # Errors
    /// CAP_BPF or CAP_NET_ADMIN is missing; or the verifier refuses the program, with its words in the error.
    pub fn load(instructions: &[Instruction]) -> io::Result<Program> {
        let license = c"GPL";
        let mut attributes = ProgramLoad {
            kind: PROGRAM_OF_XDP,
            count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_bytes: 0,
            log: 0,
        };
        let loaded = (0..LOADS).map(|_| bpf(PROG_LOAD, &attributes)).find(|loaded| !is_interrupted(loaded));
        let error = match loaded.unwrap_or_else(|| Err(io::ErrorKind::Interrupted.into())) {
            Ok(made) => return Ok(Program(new_descriptor(made))),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_refused(&error) => return Err(error),
            Err(error) => error,
        };
        // Only a second attempt asks for words, since the space for them may not suffice.
        let mut log = vec![0u8; LOG_BYTES];
        (attributes.log_level, attributes.log_bytes, attributes.log) = (1, LOG_BYTES as u32, log.as_mut_ptr() as u64);
        if let Ok(made) = bpf(PROG_LOAD, &attributes) {
            return Ok(Program(new_descriptor(made)));
        }
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let words = String::from_utf8_lossy(&log[..end]);
        // The reason is the last line but one; the last one has statistics.
        let words = words.lines().rev().find(|line| !line.is_empty() && !line.starts_with("processed ")).unwrap_or("");
        Err(if words.is_empty() { error } else { io::Error::new(error.kind(), format!("{error}: {words}")) })
    }

    /// Runs the program for `packet` once, without an interface: its verdict, and the packet that it leaves. Linux 4.12.
    ///
    /// # Errors
    /// CAP_BPF or CAP_NET_ADMIN is missing, or the packet is shorter than an Ethernet header.
    pub fn run_with(&self, packet: &[u8]) -> io::Result<(u32, Vec<u8>)> {
        let mut output = vec![0; packet.len()];
        let mut attributes = TestRun {
            program: self.0.as_raw_fd() as u32,
            verdict: 0,
            input_bytes: packet.len() as u32,
            output_bytes: output.len() as u32,
            input: packet.as_ptr() as u64,
            output: output.as_mut_ptr() as u64,
        };
        bpf_writing(PROG_TEST_RUN, &mut attributes)?;
        output.truncate(attributes.output_bytes as usize);
        Ok((attributes.verdict, output))
    }

    /// Runs the program for packets of the interface with the number `interface`, as long as the link lives: it goes with
    /// the process, also if that is killed. Linux 5.9.
    ///
    /// # Errors
    /// The driver cannot (`Native`), the interface has another program, or is gone.
    pub fn attach(&self, interface: u32, mode: AttachMode) -> io::Result<Link> {
        let flags = match mode {
            AttachMode::Native => NATIVE,
            AttachMode::Generic => GENERIC,
        };
        let program = self.0.as_raw_fd() as u32;
        let made = bpf(LINK_CREATE, &LinkCreate { program, interface, attach_type: ATTACH_XDP, flags })?;
        Ok(Link { _fd: new_descriptor(made) })
    }
}

/// A signal that waits ends the verifier with EAGAIN.
fn is_interrupted(loaded: &io::Result<c_long>) -> bool {
    loaded.as_ref().is_err_and(|error| matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)))
}

/// The verifier refuses a program with EACCES, a missing permission is EPERM.
fn is_refused(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EACCES)
}

/// A program at an interface, detached when this is dropped.
#[derive(Debug)]
pub struct Link {
    _fd: OwnedFd,
}
