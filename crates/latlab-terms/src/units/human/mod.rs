//! Conversion of quantities to text for people, and of text to quantities.
//!
//! Parsing is strict: a unit is required wherever two are possible, arithmetic is decimal and exact, and a value that
//! cannot be represented is refused with a hint. Formatting keeps three significant digits and one unit per row.

mod parse;
mod rates;
mod show;

pub use parse::{
    ParseError, meant, nearest, parse_count, parse_cpus, parse_duration, parse_number, parse_percent, parse_quantile,
    parse_size, suggestion, typed_cpus,
};
pub use rates::{
    BitRateUnit, NetworkRate, bit_rate, bits_wanted, byte_rate, load_figure, parse_byte_rate, parse_network_rate,
    typed_bit_rate, typed_byte_rate, typed_packet_rate,
};
pub use show::{
    ABSENT, TimeUnit, about, bytes, columns, counted, csv_field, errno, few, few_parts, general, grouped, listed,
    percent, quantile, shell_word, signed, significant, span, spans, typed_percent, typed_size, typed_span,
};
