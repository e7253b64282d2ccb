//! Invariant 1: imports go down the floors only. The table is the one in ARCHITECTURE.md.

use crate::paths::{mentions, module_of};
use crate::source::{Source, shipped};
use crate::{Breach, expect_none, repository};

/// Room, floor, and what it may know besides itself: floors, rooms, or single modules of a room.
const ROOMS: [(&str, &str, &[&str]); 27] = [
    ("diagnostics", "below", &[]),
    ("facts", "F0", &["F0"]),
    ("metric", "F0", &["F0"]),
    ("probe", "F0", &["F0"]),
    ("sample", "F0", &["F0"]),
    ("stats", "F0", &["F0"]),
    ("units", "F0", &["F0"]),
    ("wire", "F1", &["F0"]),
    ("plan", "F1", &["F0"]),
    ("recipe", "F1", &["F0", "plan"]),
    ("clock", "F2", &["F0", "F1"]),
    ("formats", "F2", &["F0", "F1"]),
    ("host", "F2", &["F0", "F1", "clock"]),
    ("load", "F2", &["F0", "F1", "clock", "platform"]),
    ("platform", "F2", &["F0"]),
    ("recording", "F2", &["F0", "F1", "clock"]),
    ("transport", "F2", &["F0", "F1", "clock"]),
    ("session", "F3", &["F0", "F1", "F2"]),
    ("agent", "F3", &["F0", "F1", "F2", "session"]),
    ("measure", "F3", &["F0", "F1", "F2", "session", "agent"]),
    ("analysis", "F4", &["F0", "F1", "recording::reader", "recording::manifest"]),
    ("report", "F5", &["F0", "F4", "recording::manifest"]),
    ("experiment", "F6", &["F0", "F1", "F2", "F3", "F4"]),
    ("cli", "F7", ANYTHING),
    ("commands", "F7", ANYTHING),
    ("console", "F7", ANYTHING),
    ("error", "F7", ANYTHING),
];
const ANYTHING: &[&str] = &["F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7"];

/// What a pure room would read the world with (invariant 11: time and chance come in as arguments).
const WORLDLY: [&str; 9] =
    ["latlab_sys", "rustix", "Instant", "SystemTime", "getrandom", "from_os_rng", "UdpSocket", "env", "thread"];
const PURE: [&str; 4] = ["F0", "F1", "F4", "F5"];

fn room(name: &str) -> Option<&'static (&'static str, &'static str, &'static [&'static str])> {
    ROOMS.iter().find(|room| room.0 == name)
}

/// Whether room `from` may name the module `to`.
fn may_know(from: &str, to: &[String]) -> bool {
    let (Some((own, _, known)), Some((name, floor, _))) = (room(from), to.first().and_then(|name| room(name))) else {
        return false;
    };
    let module = to.iter().take(2).map(String::as_str).collect::<Vec<_>>().join("::");
    own == name
        || *floor == "below"
        || known.iter().any(|allowed| allowed == floor || allowed == name || *allowed == module)
}

/// The breaches of the floors in one file of `crates/latlab/src`.
fn floors(source: &Source) -> Vec<Breach> {
    let module = module_of(&source.path);
    let Some(from) = module.first() else { return Vec::new() };
    if room(from).is_none() {
        return vec![format!("{}: room `{from}` stands on no floor; add it to the table", source.path)];
    }
    mentions(source)
        .into_iter()
        .filter(|mention| !mention.segments.is_empty() && !may_know(from, &mention.segments))
        .map(|mention| {
            let to = mention.segments.join("::");
            format!("{}:{}: `{from}` may not know `crate::{to}`; imports go down the floors", source.path, mention.line)
        })
        .collect()
}

/// Clocks, sockets, chance and surroundings in a pure room.
fn purity(source: &Source) -> Vec<Breach> {
    let module = module_of(&source.path);
    if module.first().and_then(|name| room(name)).is_none_or(|room| !PURE.contains(&room.1)) {
        return Vec::new();
    }
    let worldly = |word: &'static str| source.find_word(word).into_iter().map(move |offset| (word, offset));
    WORLDLY
        .into_iter()
        .flat_map(worldly)
        .filter(|(word, offset)| *word != "env" || source.code[*offset..].starts_with("env::"))
        .filter(|(word, offset)| *word != "thread" || source.code[..*offset].ends_with("std::"))
        .map(|(word, offset)| {
            format!("{}:{}: `{word}` in a pure room; take it as an argument", source.path, source.line_of(offset))
        })
        .collect()
}

#[test]
fn imports_go_down_only() {
    let sources = shipped(&repository::sources("crates/latlab/src"));
    expect_none(sources.iter().flat_map(floors).collect());
}

#[test]
fn pure_rooms_read_neither_clock_nor_chance_nor_world() {
    let sources = shipped(&repository::sources("crates/latlab/src"));
    expect_none(sources.iter().flat_map(purity).collect());
}

#[test]
fn only_tests_are_not_shipped() {
    let file = |path: &str, text: &str| Source::new(&format!("crates/latlab/src/{path}"), text);
    let sources = [
        file("stats/mod.rs", "mod order;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod naive { use crate::host; }"),
        file("stats/tests.rs", "use crate::plan::Plan;"),
        file("stats/order.rs", "use crate::plan::Plan;"),
    ];
    let breaches: Vec<Breach> = shipped(&sources).iter().flat_map(floors).collect();
    assert_eq!(breaches.len(), 1, "{breaches:?}");
    assert!(breaches[0].contains("stats/order.rs:1"), "{breaches:?}");
}

#[test]
fn the_table_of_architecture_names_every_room() {
    let text = repository::read("ARCHITECTURE.md");
    for (room, floor, _) in ROOMS {
        let row = text.lines().find(|line| line.starts_with(&format!("| {floor} "))).unwrap_or_default();
        let named = [format!("`{room}/`"), format!("`{room}.rs`")].iter().any(|name| row.contains(name.as_str()));
        assert!(named, "ARCHITECTURE.md: the row of {floor} does not name `{room}`: {row}");
    }
}

#[test]
fn a_wrong_import_is_seen() {
    let cases = [
        ("stats/quantile.rs", "use crate::plan::Plan;", 1),
        ("stats/quantile.rs", "use crate::sample::Sample; use super::Wishes;", 0),
        ("wire/probe.rs", "use crate::plan::Schedule;", 1),
        ("transport/udp.rs", "use crate::host::facts;", 1),
        ("transport/udp.rs", "use crate::{clock::Clock, plan, units::Nanos};", 0),
        ("session/native.rs", "fn f() { crate::measure::ping::run() }", 1),
        ("measure/ping.rs", "use crate::session::Dialogue; use crate::recording::ring::EventLog;", 0),
        ("analysis/summary.rs", "use crate::recording::{reader::Recording, writer};", 1),
        ("analysis/summary.rs", "use crate::recording::Recording;", 1),
        ("report/text.rs", "use crate::recording::manifest::Manifest; use crate::plan::Plan;", 1),
        ("report/text.rs", "use super::super::transport::udp;", 1),
        ("console.rs", "use crate::report::text;", 0),
        ("error.rs", "use crate::nowhere::Thing;", 1),
        ("helpers/x.rs", "", 1),
        ("lib.rs", "pub mod helpers;", 0),
    ];
    for (path, text, expected) in cases {
        let breaches = floors(&Source::new(&format!("crates/latlab/src/{path}"), text));
        assert_eq!(breaches.len(), expected, "{path}: {text}: {breaches:?}");
    }
}

#[test]
fn a_worldly_word_in_a_pure_room_is_seen() {
    let cases = [
        ("stats/x.rs", "let now = std::time::Instant::now();", 1),
        ("report/x.rs", "std::env::var(\"NO_COLOR\"); std::thread::sleep(t);", 2),
        ("analysis/x.rs", "latlab_sys::clock::monotonic_ns();", 1),
        ("session/x.rs", "latlab_sys::clock::monotonic_ns();", 0),
        ("plan/x.rs", "/// Not an Instant.\nlet seed = spec.seed;", 0),
    ];
    for (path, text, expected) in cases {
        assert_eq!(purity(&Source::new(&format!("crates/latlab/src/{path}"), text)).len(), expected, "{text}");
    }
}
