//! The fuzz targets of `fuzz/`, compiled by the stable toolchain, and each input of their kept corpora once. Fuzzing itself
//! needs a nightly one (`just fuzz TARGET`).

use std::fs;
use std::path::Path;

// The targets take `fuzz_target` from this crate in place of libFuzzer's.
extern crate self as libfuzzer_sys;

macro_rules! targets {
    ($($name:ident: $file:literal)+) => {
        $(#[path = $file]
        #[allow(unused_attributes, clippy::single_range_in_vec_init, reason = "a program of its own")]
        mod $name;

        #[test]
        fn $name() {
            let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(stringify!($name));
            let inputs: Vec<_> = fs::read_dir(corpus).expect("kept inputs").map(|entry| entry.expect("an entry")).collect();
            assert!(!inputs.is_empty());
            inputs.iter().for_each(|input| $name::run(&fs::read(input.path()).expect("readable")));
            if stringify!($name) == "recording" {
                _ = fs::remove_dir_all(std::env::temp_dir().join(format!("latlab-fuzz-{}", std::process::id())));
            }
        })+
    };
}

targets! {
    frames: "../../../fuzz/fuzz_targets/frames.rs"
    logs: "../../../fuzz/fuzz_targets/logs.rs"
    parsers: "../../../fuzz/fuzz_targets/parsers.rs"
    recording: "../../../fuzz/fuzz_targets/recording.rs"
    reflector: "../../../fuzz/fuzz_targets/reflector.rs"
    sender: "../../../fuzz/fuzz_targets/sender.rs"
    stream: "../../../fuzz/fuzz_targets/stream.rs"
    text: "../../../fuzz/fuzz_targets/text.rs"
}

/// Makes `run` of a target: its input is the bytes, or a value made of them.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:expr) => {
        pub(crate) fn run($input: &[u8]) {
            $body
        }
    };
    (|$input:ident: $made:ty| $body:expr) => {
        pub(crate) fn run(bytes: &[u8]) {
            let made = <$made as arbitrary::Arbitrary>::arbitrary_take_rest(arbitrary::Unstructured::new(bytes));
            if let Ok($input) = made {
                $body
            }
        }
    };
}
