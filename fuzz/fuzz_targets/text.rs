//! Text that a user or another host writes: files of numbers, experiment files, key files. Each is read or refused.
#![no_main]

use latlab::cli::resolve::{ConditionSelection, Environment, experiment};
use latlab::formats::numbers::{TextColumn, read_numbers};
use latlab::session::PreSharedKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((which, content)) = input.split_first() else { return };
    match which % 3 {
        0 => {
            if let Ok(values) = read_numbers("fuzz", content, &TextColumn { number: 1, delimiters: b" \t".to_vec() }) {
                assert!(values.iter().all(|value| !value.is_nan()));
            }
        }
        1 => {
            if let Ok(text) = std::str::from_utf8(content) {
                let environment = Environment { store: None, seed: 7 };
                let _ = experiment("fuzz.toml", text, ConditionSelection::All, &environment);
            }
        }
        _ => {
            if let Ok(key) = PreSharedKey::from_reader("fuzz", content) {
                assert_eq!(PreSharedKey::from_reader("again", key.line().as_bytes()).expect("its own line"), key);
            }
        }
    }
});
