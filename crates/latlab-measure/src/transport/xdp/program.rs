//! The programs that run for each packet of an interface: one redirects a flow to an AF_XDP socket, the other answers the
//! probes of sessions. Both let everything else pass to the network stack. docs/design/0024-xdp.md

use std::net::{IpAddr, SocketAddr};

use latlab_sys::bpf::Instruction;

use super::assembler::{Assembler, JumpIf, Operation, Register, Width};
use super::headers::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, UDP, header_bytes};
use super::slot::{self, Slot};
use crate::wire::{FLAG_CPU, MessageType, PROBE_MIN_BYTES};

/// What becomes of a packet (`enum xdp_action`).
const DROP: i32 = 1;
const PASS: i32 = 2;
const SEND_BACK: i32 = 3;

/// Functions of the kernel (`enum bpf_func_id`).
const MAP_LOOKUP: i32 = 1;
const MONOTONIC_NS: i32 = 5;
const CURRENT_CPU: i32 = 8;
const CHECKSUM_DIFFERENCE: i32 = 28;
const REDIRECT_MAP: i32 = 51;

/// Offsets in `struct xdp_md`, the argument of a program.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

/// Offsets in an Ethernet frame.
const TYPE: i16 = 12;
const IP: i16 = 14;

/// The packets that a program handles: those to an address and port, and of a single sender if one is named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) to: SocketAddr,
    pub(super) from: Option<SocketAddr>,
}

/// Offsets in a frame of UDP over one family.
struct Offsets {
    from_address: i16,
    to_address: i16,
    address_bytes: i16,
    /// The length field of the IP header.
    ip_length: i16,
    from_port: i16,
    to_port: i16,
    udp_length: i16,
    checksum: i16,
    payload: i16,
}

impl Offsets {
    fn of(address: IpAddr) -> Offsets {
        let payload = header_bytes(address.is_ipv6()) as i16;
        let (from_address, to_address, address_bytes, ip_length) = match address {
            IpAddr::V4(_) => (IP + 12, IP + 16, 4, IP + 2),
            IpAddr::V6(_) => (IP + 8, IP + 24, 16, IP + 4),
        };
        let [from_port, to_port, udp_length, checksum] = [8, 6, 4, 2].map(|before| payload - before);
        Offsets {
            from_address,
            to_address,
            address_bytes,
            ip_length,
            from_port,
            to_port,
            udp_length,
            checksum,
            payload,
        }
    }
}

/// The program that redirects `flow`. `sockets`: the number of the map that has the sockets by queue.
pub(super) fn steering(flow: &Match, sockets: i32) -> Vec<Instruction> {
    let mut code = Assembler::default();
    pass_unless_matched(&mut code, flow, 0);
    code.load(Width::Word, Register::R2, Register::R6, QUEUE);
    code.load_map(Register::R1, sockets);
    // Without a socket at that queue the packet passes.
    code.set(Register::R3, PASS);
    code.call(REDIRECT_MAP);
    code.exit();
    code.label("pass");
    code.exit_with(PASS);
    code.finish()
}

/// Goes on with packets of `flow` that have a payload of `payload_bytes` or more: R6 has the argument, R7 the packet. Others
/// jump to `pass`.
fn pass_unless_matched(code: &mut Assembler, flow: &Match, payload_bytes: i16) {
    let at = Offsets::of(flow.to.ip());
    code.copy(Register::R6, Register::R1);
    code.load(Width::Word, Register::R7, Register::R6, DATA);
    pass_if_shorter(code, at.payload + payload_bytes);
    match flow.to.ip() {
        IpAddr::V4(_) => {
            code.expect(Width::Half, TYPE, u32::from(ETHERTYPE_IPV4.to_be()), "pass");
            code.expect(Width::Byte, IP, 0x45, "pass");
            code.expect(Width::Byte, IP + 9, u32::from(UDP), "pass");
            // Neither an offset nor more fragments.
            code.expect_masked(Width::Half, IP + 6, 0x3fff_u16.to_be(), 0, "pass");
        }
        IpAddr::V6(_) => {
            code.expect(Width::Half, TYPE, u32::from(ETHERTYPE_IPV6.to_be()), "pass");
            code.expect(Width::Byte, IP + 6, u32::from(UDP), "pass");
        }
    }
    code.expect(Width::Half, at.to_port, u32::from(flow.to.port().to_be()), "pass");
    code.expect_address(at.to_address, flow.to.ip(), "pass");
    if let Some(from) = flow.from {
        code.expect(Width::Half, at.from_port, u32::from(from.port().to_be()), "pass");
        code.expect_address(at.from_address, from.ip(), "pass");
    }
}

/// Lets the packet in R7 pass if it has fewer than `bytes`.
fn pass_if_shorter(code: &mut Assembler, bytes: i16) {
    code.load(Width::Word, Register::R3, Register::R6, DATA_END);
    code.copy(Register::R4, Register::R7);
    code.alter(Operation::Add, Register::R4, i32::from(bytes));
    code.jump_if(JumpIf::Greater, Register::R4, Register::R3, "pass");
}

/// The program that answers probes of sessions at `to`. `slots`: the number of the map of `count` slots, a power of two.
///
/// Registers: R6 has the argument, R7 the packet, R8 the slot, R9 the receive stamp.
pub(super) fn answering(to: SocketAddr, slots: i32, count: u16) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let at = Offsets::of(to.ip());
    pass_unless_matched(&mut code, &Match { to, from: None }, PROBE_MIN_BYTES as i16);
    find_slot(&mut code, &at, slots, count);
    check_sender_and_length(&mut code, &at);
    check_time(&mut code);
    check_head(&mut code, &at);
    check_checksum(&mut code, &at);
    check_window(&mut code, &at);
    for head_bytes in [40, 32] {
        code.load(Width::Word, Register::R5, Register::R8, Slot::HEAD_BYTES);
        code.jump_if_constant(JumpIf::Equal, Register::R5, head_bytes.into(), head_label(head_bytes));
    }
    for head_bytes in [24, 32, 40] {
        code.label(head_label(head_bytes));
        answer(&mut code, &at, head_bytes);
        code.jump("send");
    }
    code.label("send");
    send_back(&mut code, &at);
    for (label, count) in [("seen-before", Slot::SEEN_BEFORE), ("left-window", Slot::LEFT_WINDOW)] {
        code.label(label);
        count_one(&mut code, count);
        code.exit_with(DROP);
    }
    code.label("pass");
    code.exit_with(PASS);
    code.finish()
}

const fn head_label(bytes: i16) -> &'static str {
    match bytes {
        40 => "head-40",
        32 => "head-32",
        _ => "head-24",
    }
}

/// Finds the slot of the session of a probe without a tag.
fn find_slot(code: &mut Assembler, at: &Offsets, slots: i32, count: u16) {
    let type_and_flags = u16::from_ne_bytes([MessageType::Probe as u8, 0]);
    code.expect(Width::Half, at.payload, type_and_flags.into(), "pass");
    code.load(Width::Double, Register::R5, Register::R7, at.payload + 16);
    code.jump_if_constant(JumpIf::NotEqual, Register::R5, 0, "pass");
    code.load(Width::Half, Register::R5, Register::R7, at.payload + 2);
    code.swap_order(Width::Half, Register::R5);
    code.alter(Operation::And, Register::R5, i32::from(count - 1));
    code.store(Width::Word, Register::R10, -4, Register::R5);
    code.load_map(Register::R1, slots);
    code.copy(Register::R2, Register::R10);
    code.alter(Operation::Add, Register::R2, -4);
    code.call(MAP_LOOKUP);
    code.jump_if_constant(JumpIf::Equal, Register::R0, 0, "pass");
    code.copy(Register::R8, Register::R0);
}

/// The session must be offered, and be that of the packet's sender and length.
fn check_sender_and_length(code: &mut Assembler, at: &Offsets) {
    code.load(Width::Word, Register::R5, Register::R8, Slot::OFFERED);
    code.jump_if_constant(JumpIf::Equal, Register::R5, 0, "pass");
    let halves = [
        (at.payload + 2, Slot::SESSION),
        (at.from_port, Slot::PEER_PORT),
        (at.udp_length, Slot::UDP_LENGTH),
        (at.ip_length, Slot::IP_LENGTH),
    ];
    let words = (0..at.address_bytes).step_by(4).map(|by| (Width::Word, at.from_address + by, Slot::PEER_ADDRESS + by));
    for (width, in_packet, in_slot) in
        halves.map(|(in_packet, in_slot)| (Width::Half, in_packet, in_slot)).into_iter().chain(words)
    {
        code.load(width, Register::R4, Register::R7, in_packet);
        code.load(width, Register::R5, Register::R8, in_slot);
        code.jump_if(JumpIf::NotEqual, Register::R4, Register::R5, "pass");
    }
}

/// The session must not have ended by its duration or its idle time.
fn check_time(code: &mut Assembler) {
    code.call(MONOTONIC_NS);
    code.copy(Register::R9, Register::R0);
    code.load(Width::Double, Register::R5, Register::R8, Slot::ENDS_AT);
    code.jump_if(JumpIf::SignedGreater, Register::R9, Register::R5, "pass");
    code.load(Width::Double, Register::R5, Register::R8, Slot::NEWEST_AT);
    code.load(Width::Double, Register::R4, Register::R8, Slot::IDLE);
    code.combine(Operation::Add, Register::R5, Register::R4);
    code.jump_if(JumpIf::SignedGreater, Register::R9, Register::R5, "pass");
}

/// The bytes that the answer changes must be there: what counts as answered is answered.
fn check_head(code: &mut Assembler, at: &Offsets) {
    for (head_bytes, otherwise) in [(32, "other-than-32"), (40, "other-than-40")] {
        code.load(Width::Word, Register::R5, Register::R8, Slot::HEAD_BYTES);
        code.jump_if_constant(JumpIf::NotEqual, Register::R5, head_bytes.into(), otherwise);
        pass_if_shorter(code, at.payload + head_bytes);
        code.label(otherwise);
    }
}

/// The answer's checksum is that of the probe, changed by what the answer changes: if the probe was damaged, so is the
/// answer, and its receiver drops it. That needs a complete checksum. One that the sender's kernel left to its device, which
/// computed nothing, is the same for each probe; a complete one differs from that of the probe before.
fn check_checksum(code: &mut Assembler, at: &Offsets) {
    code.load(Width::Half, Register::R5, Register::R7, at.checksum);
    code.jump_if_constant(JumpIf::Equal, Register::R5, 0, "pass");
    code.load(Width::Half, Register::R4, Register::R8, Slot::NEWEST_CHECKSUM);
    code.store(Width::Half, Register::R8, Slot::NEWEST_CHECKSUM, Register::R5);
    code.jump_if(JumpIf::NotEqual, Register::R4, Register::R5, "complete");
    code.load(Width::Half, Register::R4, Register::R8, Slot::UNFINISHED_CHECKSUM);
    code.jump_if(JumpIf::Equal, Register::R4, Register::R5, "pass");
    code.label("complete");
}

/// The counter must be new, within the window or after it.
fn check_window(code: &mut Assembler, at: &Offsets) {
    code.load(Width::Word, Register::R5, Register::R7, at.payload + 4);
    code.swap_order(Width::Word, Register::R5);
    code.load(Width::Word, Register::R4, Register::R8, Slot::NEWEST);
    code.load(Width::Double, Register::R1, Register::R8, Slot::WINDOW);
    code.copy(Register::R3, Register::R5);
    code.subtract_words(Register::R3, Register::R4);
    code.jump_if_constant(JumpIf::Equal, Register::R3, 0, "not-newer");
    code.jump_if_constant(JumpIf::Greater, Register::R3, i32::MAX, "not-newer");
    // Newer: the window moves.
    code.store(Width::Word, Register::R8, Slot::NEWEST, Register::R5);
    code.jump_if_constant(JumpIf::AtLeast, Register::R3, slot::WINDOW_PROBES, "beyond-window");
    code.combine(Operation::ShiftLeft, Register::R1, Register::R3);
    code.jump("moved");
    code.label("beyond-window");
    code.set(Register::R1, 0);
    code.label("moved");
    code.alter(Operation::Or, Register::R1, 1);
    code.jump("mark");
    code.label("not-newer");
    code.subtract_words(Register::R4, Register::R5);
    code.jump_if_constant(JumpIf::AtLeast, Register::R4, slot::WINDOW_PROBES, "left-window");
    code.set(Register::R2, 1);
    code.combine(Operation::ShiftLeft, Register::R2, Register::R4);
    code.jump_if(JumpIf::CommonBit, Register::R1, Register::R2, "seen-before");
    code.combine(Operation::Or, Register::R1, Register::R2);
    code.label("mark");
    code.store(Width::Double, Register::R8, Slot::WINDOW, Register::R1);
    code.store(Width::Double, Register::R8, Slot::NEWEST_AT, Register::R9);
}

/// Turns the probe into its answer, of which the first `head_bytes` differ from it, and adapts its checksum.
fn answer(code: &mut Assembler, at: &Offsets, head_bytes: i16) {
    // The verifier has not seen it in all branches.
    pass_if_shorter(code, at.payload + head_bytes);
    // What was there, for the checksum. The last eight bytes of the stack have the key of the slot.
    for by in (0..head_bytes).step_by(8) {
        code.load(Width::Double, Register::R5, Register::R7, at.payload + by);
        code.store(Width::Double, Register::R10, by - head_bytes - 8, Register::R5);
    }
    let mut flags = 0;
    if head_bytes >= 40 {
        flags = FLAG_CPU;
        code.call(CURRENT_CPU);
        code.swap_order(Width::Half, Register::R0);
        code.store_constant(Width::Word, Register::R7, at.payload + 32, 0);
        code.store(Width::Half, Register::R7, at.payload + 36, Register::R0);
        code.store_constant(Width::Half, Register::R7, at.payload + 38, 0);
    }
    if head_bytes >= 32 {
        code.copy(Register::R5, Register::R9);
        code.swap_order(Width::Double, Register::R5);
        code.store(Width::Double, Register::R7, at.payload + 24, Register::R5);
    }
    code.copy(Register::R5, Register::R9);
    code.alter(Operation::ShiftRight, Register::R5, 32);
    code.alter(Operation::And, Register::R5, 0x0f);
    code.alter(Operation::Or, Register::R5, flags.into());
    code.store_constant(Width::Byte, Register::R7, at.payload, MessageType::Answer as i32);
    code.store(Width::Byte, Register::R7, at.payload + 1, Register::R5);
    code.copy(Register::R5, Register::R9);
    code.swap_order(Width::Word, Register::R5);
    code.store(Width::Word, Register::R7, at.payload + 8, Register::R5);
    code.call(MONOTONIC_NS);
    code.combine(Operation::Subtract, Register::R0, Register::R9);
    code.swap_order(Width::Word, Register::R0);
    code.store(Width::Word, Register::R7, at.payload + 12, Register::R0);
    adapt_checksum(code, at, head_bytes);
}

/// RFC 1624: the complement of the checksum, less what was there, and what is there now.
fn adapt_checksum(code: &mut Assembler, at: &Offsets, head_bytes: i16) {
    code.copy(Register::R1, Register::R10);
    code.alter(Operation::Add, Register::R1, i32::from(-head_bytes - 8));
    code.set(Register::R2, head_bytes.into());
    code.copy(Register::R3, Register::R7);
    code.alter(Operation::Add, Register::R3, at.payload.into());
    code.set(Register::R4, head_bytes.into());
    code.load(Width::Half, Register::R5, Register::R7, at.checksum);
    code.alter(Operation::ExclusiveOr, Register::R5, 0xffff);
    code.call(CHECKSUM_DIFFERENCE);
    for _ in 0..3 {
        code.copy(Register::R5, Register::R0);
        code.alter(Operation::And, Register::R5, 0xffff);
        code.alter(Operation::ShiftRight, Register::R0, 16);
        code.alter(Operation::And, Register::R0, 0xffff);
        code.combine(Operation::Add, Register::R0, Register::R5);
    }
    code.alter(Operation::ExclusiveOr, Register::R0, 0xffff);
    code.store(Width::Half, Register::R7, at.checksum, Register::R0);
}

/// Counts the answer and sends it to the sender of its probe.
fn send_back(code: &mut Assembler, at: &Offsets) {
    // 0 stands for a packet without a checksum.
    code.load(Width::Half, Register::R5, Register::R7, at.checksum);
    code.jump_if_constant(JumpIf::NotEqual, Register::R5, 0, "summed");
    code.store_constant(Width::Half, Register::R7, at.checksum, 0xffff);
    code.label("summed");
    let hardware = [(Width::Word, 0, 6), (Width::Half, 4, 10)];
    let ports = [(Width::Half, at.from_port, at.to_port)];
    let addresses = (0..at.address_bytes).step_by(4).map(|by| (Width::Word, at.from_address + by, at.to_address + by));
    for (width, one, other) in hardware.into_iter().chain(ports).chain(addresses) {
        code.load(width, Register::R4, Register::R7, one);
        code.load(width, Register::R5, Register::R7, other);
        code.store(width, Register::R7, one, Register::R5);
        code.store(width, Register::R7, other, Register::R4);
    }
    count_one(code, Slot::ANSWERED);
    code.exit_with(SEND_BACK);
}

fn count_one(code: &mut Assembler, count: i16) {
    code.set(Register::R1, 1);
    code.add_in_memory(Register::R8, count, Register::R1);
}
