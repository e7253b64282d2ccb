//! Instructions of the kernel's virtual machine ([RFC 9669](https://www.rfc-editor.org/rfc/rfc9669)), written by name, and
//! jumps to labels.

use std::collections::BTreeMap;
use std::net::IpAddr;

use latlab_sys::bpf::Instruction;

use super::headers::octets;

/// The registers: R0 has results, R1 to R5 have arguments and are lost by a call, R10 is the end of the stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

/// An operation of 64 bits on a register, by its opcode.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    ExclusiveOr = 0xa0,
}

/// When a jump is taken, by its opcode; unsigned, unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) enum JumpIf {
    Equal = 0x10,
    Greater = 0x20,
    AtLeast = 0x30,
    /// A bit is set in both.
    CommonBit = 0x40,
    NotEqual = 0x50,
    SignedGreater = 0x60,
}

/// Operands in registers, or the second one a constant.
const OF_REGISTERS: u8 = 0x08;

/// Instructions and the places that jumps name.
#[derive(Debug, Default)]
pub(super) struct Assembler {
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

    pub(super) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(0x61 | width as u8, to, from, offset, 0);
    }

    pub(super) fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.push(0x63 | width as u8, to, from, offset, 0);
    }

    pub(super) fn store_constant(&mut self, width: Width, to: Register, offset: i16, value: i32) {
        self.push(0x62 | width as u8, to, Register::R0, offset, value);
    }

    /// Adds `from` to the 64 bits in memory, atomically.
    pub(super) fn add_in_memory(&mut self, to: Register, offset: i16, from: Register) {
        self.push(0xdb, to, from, offset, 0);
    }

    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, from, 0, 0);
    }

    pub(super) fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, to, Register::R0, 0, value);
    }

    /// `to` becomes `to` `operation` `value`.
    pub(super) fn alter(&mut self, operation: Operation, to: Register, value: i32) {
        self.push(0x07 | operation as u8, to, Register::R0, 0, value);
    }

    pub(super) fn combine(&mut self, operation: Operation, to: Register, with: Register) {
        self.push(0x07 | OF_REGISTERS | operation as u8, to, with, 0, 0);
    }

    /// `to` becomes the difference modulo 2^32.
    pub(super) fn subtract_words(&mut self, to: Register, from: Register) {
        self.push(0x1c, to, from, 0, 0);
    }

    /// From the host's order of bytes to the network's, or back.
    pub(super) fn swap_order(&mut self, width: Width, register: Register) {
        let bits = match width {
            Width::Byte => 8,
            Width::Half => 16,
            Width::Word => 32,
            Width::Double => 64,
        };
        self.push(0xdc, register, Register::R0, 0, bits);
    }

    pub(super) fn jump(&mut self, label: &'static str) {
        self.jumps.push((self.code.len(), label));
        self.push(0x05, Register::R0, Register::R0, 0, 0);
    }

    pub(super) fn jump_if(&mut self, condition: JumpIf, left: Register, right: Register, label: &'static str) {
        self.jumps.push((self.code.len(), label));
        self.push(0x05 | OF_REGISTERS | condition as u8, left, right, 0, 0);
    }

    pub(super) fn jump_if_constant(&mut self, condition: JumpIf, left: Register, right: i32, label: &'static str) {
        self.jumps.push((self.code.len(), label));
        self.push(0x05 | condition as u8, left, Register::R0, 0, right);
    }

    /// Jumps unless the field of the packet in R7 has `value`, both as they are in memory. Changes R5.
    pub(super) fn expect(&mut self, width: Width, offset: i16, value: u32, label: &'static str) {
        self.load(width, Register::R5, Register::R7, offset);
        self.jump_unless_word(value, label);
    }

    pub(super) fn expect_masked(&mut self, width: Width, offset: i16, mask: u16, value: u32, label: &'static str) {
        self.load(width, Register::R5, Register::R7, offset);
        self.alter(Operation::And, Register::R5, i32::from(mask));
        self.jump_unless_word(value, label);
    }

    /// Compares 32 bits (`BPF_JMP32`), since a constant of 64 would have its sign extended.
    fn jump_unless_word(&mut self, value: u32, label: &'static str) {
        self.jumps.push((self.code.len(), label));
        self.push(0x56, Register::R5, Register::R0, 0, value as i32);
    }

    pub(super) fn expect_address(&mut self, offset: i16, address: IpAddr, label: &'static str) {
        let octets = octets(address);
        let words = octets.as_chunks::<4>().0;
        for (word, at) in words.iter().zip((offset..).step_by(4)) {
            self.expect(Width::Word, at, u32::from_ne_bytes(*word), label);
        }
    }

    /// The address of a map: two instructions, of which the first says that the constant is a descriptor.
    pub(super) fn load_map(&mut self, to: Register, number: i32) {
        self.push(0x18, to, Register::R1, 0, number);
        self.push(0, Register::R0, Register::R0, 0, 0);
    }

    pub(super) fn call(&mut self, function: i32) {
        self.push(0x85, Register::R0, Register::R0, 0, function);
    }

    /// Ends the program with `verdict`.
    pub(super) fn exit_with(&mut self, verdict: i32) {
        self.set(Register::R0, verdict);
        self.exit();
    }

    pub(super) fn exit(&mut self) {
        self.push(0x95, Register::R0, Register::R0, 0, 0);
    }

    pub(super) fn label(&mut self, name: &'static str) {
        self.labels.insert(name, self.code.len());
    }

    /// The instructions, with the distance of each jump to its label.
    ///
    /// # Panics
    /// A jump names no label, or is too long.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let distance = self.labels[label] as i64 - at as i64 - 1;
            self.code[at].offset = i16::try_from(distance).expect("a program of a few hundred instructions");
        }
        self.code
    }
}
