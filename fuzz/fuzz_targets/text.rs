//! Text that a user or another host writes: files of numbers, experiment files, key files, quantities with units. Each is
//! read or refused, numbers as the standard library reads them, and what is written for a quantity is read again.
#![no_main]

use std::io::Read;

use latlab::cli::resolve::{ConditionSelection, Environment, experiment};
use latlab::formats::numbers::{TextColumn, read_numbers};
use latlab::plan::defaults::EXPERIMENT_RUNS_MAX;
use latlab::session::PreSharedKey;
use latlab::units::human::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((which, content)) = input.split_first() else { return };
    match which % 4 {
        0 => numbers(content),
        1 => experiment_file(content),
        2 => key_file(content),
        _ => quantities(content),
    }
});

/// A reader that returns a few bytes at a time.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.len().min(7).min(buffer.len());
        let (now, rest) = self.0.split_at(bytes);
        buffer[..bytes].copy_from_slice(now);
        self.0 = rest;
        Ok(bytes)
    }
}

/// The numbers of the first column as the documentation defines them; `None` if a line has another text there.
fn reference(content: &[u8]) -> Option<Vec<f64>> {
    let lines = content.split(|byte| *byte == b'\n');
    let columns = lines.filter(|line| !line.trim_ascii().starts_with(b"#")).filter_map(|line| {
        line.trim_ascii_end().split(|byte| b" \t".contains(byte)).find(|column| !column.is_empty())
    });
    let number = |text: &[u8]| std::str::from_utf8(text.trim_ascii()).ok()?.parse::<f64>().ok();
    columns.filter(|text| !text.starts_with(b"#")).map(|text| number(text).filter(|value| value.is_finite())).collect()
}

fn numbers(content: &[u8]) {
    let column = |number| TextColumn { number, delimiters: b" \t".to_vec() };
    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    let read = read_numbers("fuzz", content, &column(1)).ok().map(bits);
    assert_eq!(read, reference(content).map(bits));
    assert_eq!(read_numbers("fuzz", Pieces(content), &column(1)).ok().map(bits), read);
    if let Ok(values) = read_numbers("fuzz", content, &column(2)) {
        assert!(values.iter().all(|value| value.is_finite()));
    }
}

fn experiment_file(content: &[u8]) {
    let Ok(text) = std::str::from_utf8(content) else { return };
    let environment = Environment { store: None, seed: 7, cores: None, port: None };
    match experiment("fuzz.toml", text, ConditionSelection::All, &environment) {
        Ok(job) => {
            let conditions = &job.experiment.conditions;
            assert!(!conditions.is_empty() && conditions.len() == job.keys.len());
            assert!(job.experiment.design.runs_at_most(conditions.len()) <= EXPERIMENT_RUNS_MAX);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let _ = experiment("fuzz.toml", text, ConditionSelection::Possible, &environment);
}

fn key_file(content: &[u8]) {
    let Ok(key) = PreSharedKey::from_reader("fuzz", content) else { return };
    assert_eq!(PreSharedKey::from_reader("again", key.line().as_bytes()).expect("its own line"), key);
}

fn quantities(content: &[u8]) {
    let Ok(text) = std::str::from_utf8(content) else { return };
    if let Ok(span) = parse_duration(text) {
        assert_eq!(parse_duration(&typed_span(span)), Ok(span));
    }
    if let Ok(size) = parse_size(text) {
        assert_eq!(parse_size(&typed_size(size)), Ok(size));
    }
    match parse_network_rate(text) {
        Ok(NetworkRate::Bits(bps)) => assert_eq!(parse_network_rate(&typed_bit_rate(bps)), Ok(NetworkRate::Bits(bps))),
        Ok(rate @ NetworkRate::Packets(pps)) => assert_eq!(parse_network_rate(&typed_packet_rate(pps)), Ok(rate)),
        Err(_) => (),
    }
    if let Ok(cpus) = parse_cpus(text, 1_023) {
        assert!(cpus.is_sorted() && !cpus.is_empty());
        assert_eq!(parse_cpus(&typed_cpus(&cpus), 1_023), Ok(cpus));
    }
    assert!(parse_percent(text).is_ok_and(|share| share.is_finite()) || parse_percent(text).is_err());
    assert!(parse_byte_rate(text).is_ok_and(|rate| rate.is_finite()) || parse_byte_rate(text).is_err());
    let _ = parse_count(text);
}
