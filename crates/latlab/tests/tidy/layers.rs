//! Invariant 1: imports go down the layers only. The table is the one in ARCHITECTURE.md.

use crate::paths::{mentions, module_of};
use crate::source::{Source, shipped};
use crate::{Breach, expect_none, repository};

/// A module of the crate's root.
struct Module {
    name: &'static str,
    layer: &'static str,
    /// What it may import beside itself and `diagnostics`: layers, modules, or single submodules.
    may_import: &'static [&'static str],
}

const fn module(name: &'static str, layer: &'static str, may_import: &'static [&'static str]) -> Module {
    Module { name, layer, may_import }
}

const MODULES: [Module; 27] = [
    module("diagnostics", "diagnostics", &[]),
    module("facts", "terms", &["terms"]),
    module("metric", "terms", &["terms"]),
    module("probe", "terms", &["terms"]),
    module("sample", "terms", &["terms"]),
    module("stats", "terms", &["terms"]),
    module("units", "terms", &["terms"]),
    module("plan", "intent", &["terms"]),
    module("recipe", "intent", &["terms", "plan"]),
    module("wire", "intent", &["terms"]),
    module("clock", "system", &["terms", "intent"]),
    module("formats", "system", &["terms", "intent", "platform", "recording"]),
    module("host", "system", &["terms", "intent", "clock", "platform"]),
    module("load", "system", &["terms", "intent", "clock", "platform"]),
    module("platform", "system", &["terms"]),
    module("recording", "system", &["terms", "intent", "clock", "platform"]),
    module("transport", "system", &["terms", "intent", "clock", "platform"]),
    module("session", "measuring", &["terms", "intent", "system"]),
    module("agent", "measuring", &["terms", "intent", "system", "session"]),
    module("measure", "measuring", &["terms", "intent", "system", "session", "agent"]),
    module("analysis", "judging", &["terms", "intent", "recording::reader", "recording::manifest"]),
    module("report", "reporting", &["terms", "intent", "judging", "recording::manifest"]),
    module("experiment", "experiments", &["terms", "intent", "system", "measuring", "judging"]),
    module("cli", "commands", ANY),
    module("commands", "commands", ANY),
    module("console", "commands", ANY),
    module("tui", "commands", &["terms", "host", "recording", "measure", "reporting"]),
];
const ANY: &[&str] = &["terms", "intent", "system", "measuring", "judging", "reporting", "experiments", "commands"];

/// Words by which a module reads clocks, chance or the system; pure layers take these as arguments (invariant 11).
const IMPURE: [&str; 9] =
    ["latlab_sys", "rustix", "Instant", "SystemTime", "getrandom", "from_os_rng", "UdpSocket", "env", "thread"];
const PURE: [&str; 4] = ["terms", "intent", "judging", "reporting"];

fn module_named(name: &str) -> Option<&'static Module> {
    MODULES.iter().find(|module| module.name == name)
}

/// Whether the module `from` may import the path `to`.
fn may_import(from: &str, to: &[String]) -> bool {
    let (Some(from), Some(target)) = (module_named(from), to.first().and_then(|name| module_named(name))) else {
        return false;
    };
    let submodule = to.iter().take(2).map(String::as_str).collect::<Vec<_>>().join("::");
    let names = [target.layer, target.name, submodule.as_str()];
    from.name == target.name
        || target.name == "diagnostics"
        || from.may_import.iter().any(|allowed| names.contains(allowed))
}

/// The imports of one file of `crates/latlab/src` that its layer does not allow.
fn wrong_imports(source: &Source) -> Vec<Breach> {
    let module = module_of(&source.path);
    let Some(from) = module.first() else { return Vec::new() };
    if module_named(from).is_none() {
        return vec![format!("{}: module `{from}` is in no layer; add it to the table", source.path)];
    }
    mentions(source)
        .into_iter()
        .filter(|mention| !mention.segments.is_empty() && !may_import(from, &mention.segments))
        .map(|mention| {
            let to = mention.segments.join("::");
            let at = format!("{}:{}", source.path, mention.line);
            format!("{at}: `{from}` may not import `crate::{to}`; imports go down the layers")
        })
        .collect()
}

/// Reads of clocks, sockets, chance and environment in a module of a pure layer.
fn impure_words(source: &Source) -> Vec<Breach> {
    let module = module_of(&source.path);
    let layer = module.first().and_then(|name| module_named(name)).map(|module| module.layer);
    if layer.is_none_or(|layer| !PURE.contains(&layer)) {
        return Vec::new();
    }
    let places = |word: &'static str| source.find_word(word).into_iter().map(move |offset| (word, offset));
    IMPURE
        .into_iter()
        .flat_map(places)
        .filter(|(word, offset)| *word != "env" || source.code[*offset..].starts_with("env::"))
        .filter(|(word, offset)| *word != "thread" || source.code[..*offset].ends_with("std::"))
        .map(|(word, offset)| {
            format!("{}:{}: `{word}` in a pure layer; take it as an argument", source.path, source.line_of(offset))
        })
        .collect()
}

#[test]
fn imports_go_down_only() {
    let sources = shipped(&repository::own_sources());
    expect_none(sources.iter().flat_map(wrong_imports).collect());
}

#[test]
fn pure_layers_read_no_clock_no_chance_and_no_system() {
    let sources = shipped(&repository::own_sources());
    expect_none(sources.iter().flat_map(impure_words).collect());
}

#[test]
fn imports_of_tests_are_not_checked() {
    let file = |path: &str, text: &str| Source::new(&format!("crates/latlab/src/{path}"), text);
    let sources = [
        file("stats/mod.rs", "mod order;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod naive { use crate::host; }"),
        file("stats/tests.rs", "use crate::plan::Plan;"),
        file("stats/order.rs", "use crate::plan::Plan;"),
    ];
    let breaches: Vec<Breach> = shipped(&sources).iter().flat_map(wrong_imports).collect();
    assert_eq!(breaches.len(), 1, "{breaches:?}");
    assert!(breaches[0].contains("stats/order.rs:1"), "{breaches:?}");
}

#[test]
fn architecture_names_every_module_in_its_layer() {
    let text = repository::read("ARCHITECTURE.md");
    for Module { name, layer, .. } in MODULES {
        let row = text.lines().find(|line| line.starts_with(&format!("| {layer} |"))).unwrap_or_default();
        let named = [format!("`{name}/`"), format!("`{name}.rs`")].iter().any(|path| row.contains(path.as_str()));
        assert!(named, "ARCHITECTURE.md: the row of the layer {layer} does not name `{name}`: {row}");
    }
}

#[test]
fn an_upward_import_is_reported() {
    let cases = [
        ("stats/quantile.rs", "use crate::plan::Plan;", 1),
        ("stats/quantile.rs", "use crate::sample::Sample; use super::Wishes;", 0),
        ("wire/probe.rs", "use crate::plan::Schedule;", 1),
        ("transport/udp.rs", "use crate::host::facts;", 1),
        ("transport/udp.rs", "use crate::{clock::Clock, plan, units::Nanos};", 0),
        ("session/native.rs", "fn f() { crate::measure::ping::run() }", 1),
        ("measure/ping.rs", "use crate::session::ProbeCodec; use crate::recording::ring::EventLog;", 0),
        ("analysis/summary.rs", "use crate::recording::{reader::Recording, writer};", 1),
        ("analysis/summary.rs", "use crate::recording::Recording;", 1),
        ("report/text.rs", "use crate::recording::manifest::Manifest; use crate::plan::Plan;", 0),
        ("report/text.rs", "use super::super::transport::udp;", 1),
        ("console/mod.rs", "use crate::report::text;", 0),
        ("console/mod.rs", "use crate::nowhere::Thing;", 1),
        ("helpers/x.rs", "", 1),
        ("lib.rs", "pub mod helpers;", 0),
    ];
    for (path, text, expected) in cases {
        let breaches = wrong_imports(&Source::new(&format!("crates/latlab/src/{path}"), text));
        assert_eq!(breaches.len(), expected, "{path}: {text}: {breaches:?}");
    }
}

#[test]
fn an_impure_word_in_a_pure_layer_is_reported() {
    let cases = [
        ("stats/x.rs", "let now = std::time::Instant::now();", 1),
        ("report/x.rs", "std::env::var(\"NO_COLOR\"); std::thread::sleep(t);", 2),
        ("analysis/x.rs", "latlab_sys::clock::monotonic_ns();", 1),
        ("session/x.rs", "latlab_sys::clock::monotonic_ns();", 0),
        ("plan/x.rs", "/// Not an Instant.\nlet seed = spec.seed;", 0),
    ];
    for (path, text, expected) in cases {
        assert_eq!(impure_words(&Source::new(&format!("crates/latlab/src/{path}"), text)).len(), expected, "{text}");
    }
}
