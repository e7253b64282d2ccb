//! The only place where numbers become text for people, and text becomes numbers.
//!
//! Reading is strict: a unit is demanded wherever two are possible, arithmetic is exact (decimal, never
//! binary fractions), and what does not fit is refused with the value and a way out. Writing keeps three
//! significant digits, one unit per row, and never shows more precision than a reader can use.

mod bit_rate;
mod cpus;
mod general;
mod load;
mod parse;
mod rate;
mod show;
mod suggest;
mod typed;

pub use bit_rate::{NetworkRate, bit_rate, bits_wanted, parse_network_rate, typed_bit_rate, typed_packet_rate};
pub use cpus::{parse_cpus, typed_cpus};
pub use general::general;
pub use load::load_figure;
pub use parse::{ParseError, parse_count, parse_duration, parse_percent, parse_size};
pub use rate::{byte_rate, parse_byte_rate, typed_byte_rate};
pub use show::{TimeUnit, about, bytes, errno, grouped, percent, quantile, signed, significant, span, spans};
pub use suggest::{nearest, suggestion};
pub use typed::{typed_percent, typed_size, typed_span};

/// Stands for a figure that does not exist.
pub const ABSENT: &str = "–";
