//! Invariant 8: some things are done in one place only.

use crate::source::Source;
use crate::{Breach, expect_none, repository};

/// A word of code, where it may stand, and why.
struct Place {
    word: &'static str,
    allowed: &'static [&'static str],
    why: &'static str,
}

/// In everything that is shipped or tested.
const EVERYWHERE: [Place; 2] = [
    Place {
        word: "unsafe",
        allowed: &["crates/latlab-sys/src/", "crates/latlab-dds/src/", "crates/latlab/tests/alloc"],
        why: "unsafe code lives in latlab-sys, latlab-dds and the test allocator",
    },
    Place { word: "libc::", allowed: &["crates/latlab-sys/"], why: "system calls are wrapped in latlab-sys" },
];

const SHIPPED: [Place; 13] = [
    printing("println!"),
    printing("print!"),
    printing("eprintln!"),
    printing("eprint!"),
    printing("io::stdout"),
    printing("io::stderr"),
    Place { word: "dbg!", allowed: &[], why: "no debugging output in what is shipped" },
    Place { word: "process::exit", allowed: &["crates/latlab/src/main.rs"], why: "only main ends the process" },
    Place { word: "register_conditional_shutdown", allowed: &[SIGNALS], why: "a second signal ends the process" },
    Place { word: "low_level::exit", allowed: &[SIGNALS], why: "a second signal ends the process" },
    Place { word: "register_conditional_default", allowed: &[SIGNALS], why: "a signal ends it after its settings" },
    Place { word: "emulate_default_handler", allowed: &[SIGNALS], why: "a signal ends it after its settings" },
    Place { word: "process::abort", allowed: &[], why: "only main ends the process" },
];

const SIGNALS: &str = "crates/latlab-platform/src/signals.rs";

const fn printing(word: &'static str) -> Place {
    Place { word, allowed: &["crates/latlab/src/console/"], why: "printing is the console's" }
}

fn misplaced(source: &Source, places: &[Place]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for place in places.iter().filter(|place| !place.allowed.iter().any(|start| source.path.starts_with(start))) {
        let (head, mark) = place.word.split_at(place.word.trim_end_matches(['!', ':']).len());
        let found = source.find_word(head).into_iter().filter(|at| source.code[at + head.len()..].starts_with(mark));
        breaches
            .extend(found.map(|at| format!("{}:{}: `{}`; {}", source.path, source.line_of(at), place.word, place.why)));
    }
    breaches
}

#[test]
fn unsafe_code_has_its_place() {
    expect_none(repository::sources("crates").iter().flat_map(|source| misplaced(source, &EVERYWHERE)).collect());
    for library in repository::own_sources().iter().filter(|source| source.path.ends_with("/src/lib.rs")) {
        assert!(library.code.contains("#![forbid(unsafe_code)]"), "{} must forbid unsafe code", library.path);
    }
}

#[test]
fn printing_and_exiting_have_their_place() {
    let shipped = repository::own_sources();
    expect_none(shipped.iter().flat_map(|source| misplaced(source, &SHIPPED)).collect());
}

#[test]
fn misplaced_words_are_seen() {
    let text = "fn f() { println!(\"{}\", 1); std::process::exit(2); unsafe { libc::getpid() } }\n// println!(\"x\")";
    let elsewhere = Source::new("crates/latlab/src/stats/mod.rs", text);
    assert_eq!(misplaced(&elsewhere, &SHIPPED).len(), 2);
    assert_eq!(misplaced(&elsewhere, &EVERYWHERE).len(), 2);
    assert_eq!(misplaced(&Source::new("crates/latlab/src/console/mod.rs", text), &SHIPPED).len(), 1);
    assert_eq!(misplaced(&Source::new("crates/latlab/src/main.rs", text), &SHIPPED).len(), 1);
    assert!(misplaced(&Source::new("crates/latlab-sys/src/net.rs", text), &EVERYWHERE).is_empty());
    let text = "fn f() { flag::register_conditional_shutdown(2, 130, at); signal_hook::low_level::exit(130) }";
    assert_eq!(misplaced(&Source::new("crates/latlab/src/main.rs", text), &SHIPPED).len(), 2);
    assert!(misplaced(&Source::new(SIGNALS, text), &SHIPPED).is_empty());
    assert!(misplaced(&Source::new("x.rs", "#![forbid(unsafe_code)] fn fingerprint() {}"), &EVERYWHERE).is_empty());
}
