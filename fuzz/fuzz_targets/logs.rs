//! A log of another tool, read by the driver of every importer: the first byte chooses the format, or lets it be detected, and
//! whether malformed rows are skipped. It is read or refused, alike however the input is cut, without a panic or a value that
//! a recording cannot have.
#![no_main]

use std::io::Read;

use latlab::formats::import::{FORMATS, LogBlock, LogHead, LogOptions, LogRows, format_of, read_log};
use latlab::units::human::TimeUnit;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((which, log)) = input.split_first() else { return };
    let typed = FORMATS.get(usize::from(which >> 1));
    let Ok(format) = format_of(&LogHead { bytes: log, is_whole: true }, typed) else { return };
    let options = LogOptions {
        unit: format.options.contains(&"--unit").then_some(TimeUnit::Micros),
        ..LogOptions::default()
    };
    let read = |pieces: usize| {
        let (mut rows, mut infinite) = (0, 0);
        let mut count = |block: &LogBlock| {
            rows += block.probes.len() + block.values.len() + block.intervals.len();
            infinite += block.values.iter().filter(|value| value.value_ns.is_none()).count();
            Ok(())
        };
        let mut input = Pieces(log, pieces);
        let end = read_log(format, &mut input, &options, which & 1 == 1, LogRows::new(64, &mut count));
        (end.is_ok(), rows, infinite)
    };
    assert_eq!(read(7), read(usize::MAX), "the cuts do not matter");
});

/// A reader that returns so many bytes at a time.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.len().min(self.1).min(buffer.len());
        let (now, rest) = self.0.split_at(bytes);
        buffer[..bytes].copy_from_slice(now);
        self.0 = rest;
        Ok(bytes)
    }
}
