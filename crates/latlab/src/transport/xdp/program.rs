//! The program that redirects one flow to an AF_XDP socket and lets everything else pass to the network stack, written as
//! the kernel's instructions ([RFC 9669](https://www.rfc-editor.org/rfc/rfc9669)).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use latlab_sys::bpf::Instruction;

use super::headers::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, UDP};

/// What a program lets pass goes to the network stack (`XDP_PASS`).
const PASS: i32 = 2;
/// `bpf_redirect_map`, of the kernel's functions.
const REDIRECT_MAP: i32 = 51;

/// Offsets in `struct xdp_md`, the argument of a program.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

/// Offsets in an Ethernet frame.
const TYPE: i16 = 12;
const IP: i16 = 14;

/// The packets that a program redirects: those to an address and port, and of a single sender if one is named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) to: SocketAddr,
    pub(super) from: Option<SocketAddr>,
}

/// The program for `flow`. `sockets`: the number of the map that has the sockets by queue.
pub(super) fn steering(flow: &Match, sockets: i32) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let (headers, kind) = match flow.to.ip() {
        IpAddr::V4(_) => (IP + 20 + 8, ETHERTYPE_IPV4),
        IpAddr::V6(_) => (IP + 40 + 8, ETHERTYPE_IPV6),
    };
    code.copy(Register::R6, Register::R1);
    code.load(Width::Word, Register::R2, Register::R1, DATA);
    code.load(Width::Word, Register::R3, Register::R1, DATA_END);
    code.copy(Register::R4, Register::R2);
    code.add(Register::R4, i32::from(headers));
    code.jump_if_greater(Register::R4, Register::R3, "pass");
    code.expect(Width::Half, TYPE, u32::from(kind.to_be()));
    match flow.to.ip() {
        IpAddr::V4(_) => {
            code.expect(Width::Byte, IP, 0x45);
            code.expect(Width::Byte, IP + 9, u32::from(UDP));
            // Neither an offset nor more fragments.
            code.expect_masked(Width::Half, IP + 6, 0x3fff_u16.to_be(), 0);
        }
        IpAddr::V6(_) => code.expect(Width::Byte, IP + 6, u32::from(UDP)),
    }
    let (from_address, to_address) = if flow.to.is_ipv4() { (IP + 12, IP + 16) } else { (IP + 8, IP + 24) };
    let (from_port, to_port) = (headers - 8, headers - 6);
    code.expect(Width::Half, to_port, u32::from(flow.to.port().to_be()));
    code.expect_address(to_address, flow.to.ip());
    if let Some(from) = flow.from {
        code.expect(Width::Half, from_port, u32::from(from.port().to_be()));
        code.expect_address(from_address, from.ip());
    }
    code.load(Width::Word, Register::R2, Register::R6, QUEUE);
    code.load_map(Register::R1, sockets);
    // Without a socket at that queue the packet passes.
    code.set(Register::R3, PASS);
    code.call(REDIRECT_MAP);
    code.exit();
    code.label("pass");
    code.set(Register::R0, PASS);
    code.exit();
    code.finish()
}

#[derive(Clone, Copy, Debug)]
enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
}

/// Instructions and the places that jumps name.
#[derive(Debug, Default)]
struct Assembler {
    code: Vec<Instruction>,
    labels: BTreeMap<&'static str, usize>,
    jumps: Vec<(usize, &'static str)>,
}

impl Assembler {
    fn push(&mut self, code: u8, destination: Register, source: Register, offset: i16, immediate: i32) {
        let (destination, source) = (destination as u8, source as u8);
        let registers =
            if cfg!(target_endian = "little") { source << 4 | destination } else { destination << 4 | source };
        self.code.push(Instruction { code, registers, offset, immediate });
    }

    fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(0x61 | width as u8, to, from, offset, 0);
    }

    fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, from, 0, 0);
    }

    fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, to, Register::R0, 0, value);
    }

    fn add(&mut self, to: Register, value: i32) {
        self.push(0x07, to, Register::R0, 0, value);
    }

    fn jump_if_greater(&mut self, left: Register, right: Register, label: &'static str) {
        self.jumps.push((self.code.len(), label));
        self.push(0x2d, left, right, 0, 0);
    }

    /// Lets the packet pass unless the field at `offset` has `value`, both as they are in memory.
    fn expect(&mut self, width: Width, offset: i16, value: u32) {
        self.load(width, Register::R5, Register::R2, offset);
        self.pass_unless_equal(value);
    }

    fn expect_masked(&mut self, width: Width, offset: i16, mask: u16, value: u32) {
        self.load(width, Register::R5, Register::R2, offset);
        self.push(0x57, Register::R5, Register::R0, 0, i32::from(mask));
        self.pass_unless_equal(value);
    }

    /// Compares 32 bits (`BPF_JMP32`), since a constant of 64 would have its sign extended.
    fn pass_unless_equal(&mut self, value: u32) {
        self.jumps.push((self.code.len(), "pass"));
        self.push(0x56, Register::R5, Register::R0, 0, value as i32);
    }

    fn expect_address(&mut self, offset: i16, address: IpAddr) {
        let octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let words = octets.as_chunks::<4>().0;
        for (word, at) in words.iter().zip((offset..).step_by(4)) {
            self.expect(Width::Word, at, u32::from_ne_bytes(*word));
        }
    }

    /// The address of a map: two instructions, of which the first says that the constant is a descriptor.
    fn load_map(&mut self, to: Register, number: i32) {
        self.push(0x18, to, Register::R1, 0, number);
        self.push(0, Register::R0, Register::R0, 0, 0);
    }

    fn call(&mut self, function: i32) {
        self.push(0x85, Register::R0, Register::R0, 0, function);
    }

    fn exit(&mut self) {
        self.push(0x95, Register::R0, Register::R0, 0, 0);
    }

    fn label(&mut self, name: &'static str) {
        self.labels.insert(name, self.code.len());
    }

    /// The instructions, with the distance of each jump to its label.
    fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels[label];
            self.code[at].offset = i16::try_from(target as i64 - at as i64 - 1).unwrap_or(i16::MAX);
        }
        self.code
    }
}
