//! The logs in `testdata/logs`, which real tools wrote: each is detected and read as the format in front of `--` in its name, and
//! damaged ones end in rows or in an error, within bounded time.

use std::path::Path;
use std::time::{Duration, Instant};

use latlab_formats::import::{
    LogBlock, LogEnd, LogError, LogHead, LogOptions, LogRows, format_named, format_of, read_log,
};
use latlab_terms::units::human::TimeUnit;

/// Each log with the name of its format.
fn logs() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/logs");
    let entries = std::fs::read_dir(folder).expect("the logs").map(|entry| entry.expect("readable").path());
    let mut logs: Vec<_> = entries
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            (name, std::fs::read(path).expect("readable"))
        })
        .collect();
    logs.sort();
    logs
}

/// The rows of `text`, which it has in `counts`, and its end.
fn read(format: &str, text: &[u8], skip_bad: bool) -> Result<(u64, LogEnd), LogError> {
    let format = format_named(format).unwrap_or_else(|| panic!("no format `{format}`"));
    let unit = Some(TimeUnit::Nanos).filter(|_| ["numbers", "hdr-histogram", "hdr-percentiles"].contains(&format.name));
    let options = LogOptions { unit, ..LogOptions::default() };
    let mut rows = 0;
    let mut pass = |block: &LogBlock| {
        rows += block.len() as u64;
        Ok(())
    };
    let mut input = text;
    let end = read_log(format, &mut input, &options, skip_bad, LogRows::new(1_000, &mut pass))?;
    Ok((rows, end))
}

fn format_in(name: &str) -> &str {
    name.split_once("--").expect("FORMAT--WHAT").0
}

#[test]
fn each_log_is_read_as_its_format_and_agrees_with_its_totals() {
    for (name, text) in logs() {
        let found = format_of(&LogHead { bytes: &text, is_whole: true }, None);
        assert_eq!(found.map(|format| format.name), Ok(format_in(&name)), "{name}");
        let (rows, end) = read(format_in(&name), &text, false).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert!(rows > 0, "{name}");
        assert_eq!(end.contradictions, Vec::<String>::new(), "{name}");
    }
}

/// The next of a sequence of pseudo-random numbers (xorshift64, Marsaglia 2003).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

/// A damaged copy: bytes changed, lines doubled, left out or cut, digits exchanged.
fn mutated(text: &[u8], state: &mut u64) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=next(state) % 3 {
        let at = next(state) % text.len();
        let end = memchr(&text, at);
        match next(state) % 7 {
            0 => text[at] ^= 1 << (next(state) % 8),
            1 => text.truncate(at.max(1)),
            2 => drop(text.drain(at..end)),
            3 => text.splice(at..at, text[at..end].to_vec()).for_each(drop),
            4 => text[at] = b"0123456789.-,e\"{}[]: \0\xff"[next(state) % 23],
            5 => text.splice(at..at, *b"99999999999999999999").for_each(drop),
            _ => drop(text.remove(at)),
        }
        if text.is_empty() {
            text.push(b'\n');
        }
    }
    text
}

/// The end of the line at `at`.
fn memchr(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length + 1)
}

#[test]
fn damaged_logs_end_in_rows_or_in_an_error() {
    // `just mutations` makes 10,000.
    let rounds = std::env::var("LATLAB_DAMAGED_LOGS").map_or(1_500, |rounds| rounds.parse().expect("a number"));
    let logs = logs();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut read_anyway = 0;
    for round in 0..rounds {
        let (name, text) = &logs[round % logs.len()];
        let damaged = mutated(text, &mut state);
        let before = Instant::now();
        let head = LogHead { bytes: &damaged[..damaged.len().min(1 << 16)], is_whole: damaged.len() <= 1 << 16 };
        let _ = format_of(&head, None);
        if let Ok((rows, _)) = read(format_in(name), &damaged, round % 2 == 0) {
            read_anyway += 1;
            assert!(rows <= 100_000, "{name}, round {round}: {rows} rows of {} bytes", damaged.len());
        }
        assert!(before.elapsed() < Duration::from_secs(10), "{name}, round {round}");
    }
    assert!(read_anyway > 100, "{read_anyway} of the damaged logs are read");
}
