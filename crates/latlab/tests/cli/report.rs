//! `latlab report`: pages and figures of recordings, experiments and comparisons; where they are written, and what is refused.

use std::fs;

use serde_json::Value;

use crate::harness::{Finished, Latlab, contains, empty};
use crate::hostile::{copy_directory, testdata};
use crate::sealed::write_manifest;

/// A directory with a copy of the recording or experiment at `place` of testdata as `name`.
fn lab_with(place: &str, name: &str) -> Latlab {
    let lab = Latlab::new();
    copy_directory(&testdata(place), &lab.path(name));
    lab
}

/// Runs `line`, which must print one path and nothing else; returns the text of that file.
#[track_caller]
fn written(lab: Latlab, line: &str, path: &str) -> String {
    let ran = lab.line(line).stderr(empty()).success();
    assert_eq!(ran.stdout, format!("{path}\n"), "{line}");
    fs::read_to_string(ran.directory().join(path)).expect("the file that it names")
}

/// The start tags of `name` in `page`.
fn tags<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("<{name}");
    let is_whole = |rest: &&str| rest.starts_with([' ', '>', '/']);
    page.split(start.as_str()).skip(1).filter(is_whole).map(|rest| rest.split('>').next().unwrap_or_default()).collect()
}

fn figures(page: &str) -> Vec<&str> {
    let name = |tag: &str| -> Option<usize> { tag.find("data-figure=\"").map(|at| at + "data-figure=\"".len()) };
    tags(page, "figure").into_iter().filter_map(|tag| tag[name(tag)?..].split('"').next()).collect()
}

/// Whether every start tag of `text` has its end tag, in the right order: HTML may leave some out, XML may not.
#[track_caller]
fn expect_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let (tag, after) = rest.split_once('>').expect("a tag ends");
        // A style sheet has no tags.
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        match tag {
            _ if tag.starts_with(['?', '!']) || tag.ends_with('/') => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "</{name}> in {text}"),
            _ => open.push(name),
        }
        assert!(tag.matches('"').count().is_multiple_of(2), "<{tag}>");
        rest = after;
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    for (at, _) in text.match_indices('&') {
        let entity = text[at..].split(';').next().unwrap_or_default();
        assert!(["&amp", "&lt", "&gt", "&quot", "&#39"].contains(&entity), "{entity}");
    }
}

#[test]
fn a_page_of_a_recording_has_its_parts_in_order_and_asks_for_nothing() {
    let page = written(lab_with("recordings/good/closed", "closed"), "report closed", "closed.html");
    let parts = ["Results", "Plots", "Caveats", "Conditions and hosts", "Methods", "How to reproduce"];
    let places: Vec<usize> =
        parts.iter().map(|part| page.find(&format!(">{part}</h2>")).unwrap_or_else(|| panic!("no {part}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(figures(&page), ["tail", "percentiles", "histogram", "over-time"]);
    for part in ["Of 1,997 probes p50 is", "; 5 lost or late.", "latlab report closed", "n 1,997 · lost 5</span>"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("default-src 'none'"));
    let asks = ["<link", "<img", "<iframe", "@import", "url(", " src="];
    asks.iter().for_each(|asked| assert!(!page.contains(asked), "{asked}"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn the_delays_of_each_way_are_on_the_page_if_asked() {
    let page = written(lab_with("recordings/forms/far", "far"), "report far --one-way", "far.html");
    for part in [">One-way delay</h2>", "backward 5.39 ± 15 µs; the bound is larger than the difference"] {
        assert!(page.contains(part), "{part}");
    }
    let plain = written(lab_with("recordings/forms/far", "far"), "report far", "far.html");
    assert!(!plain.contains("One-way delay") && !plain.contains("A delay of one way"));
    let stream = lab_with("recordings/old/1.4-stream", "x").line("report x --one-way");
    stream.stderr(contains("`--one-way` is of probes with stamps of both ends: it changes nothing here")).success();
}

#[test]
fn the_same_recordings_make_the_same_page() {
    let first = lab_with("experiments/finished/factors", "x").line("report x").success();
    let page = || fs::read(first.directory().join("x.html")).expect("the page");
    let before = page();
    Latlab::at(first.directory()).line("report x").success();
    assert_eq!(before, page());
}

#[test]
fn a_page_of_an_experiment_has_its_verdicts_and_its_file() {
    let page = written(lab_with("experiments/finished/factors", "x"), "report x", "x.html");
    for part in [
        ">Comparison</h2>",
        "Loss ratio is higher with load <code>cpu=20%</code> than with <code>load=none</code>, size=64: 1.67 % and 0 %, +1.667",
        "baseline, candidate: geometric means of the runs",
        "latlab run experiment.toml",
        "[[compare]]",
        "Loads, offered and achieved",
        "A comparison has runs as its observations",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let found = figures(&page);
    for figure in ["forest", "tail", "percentiles", "shift", "histogram", "box-plots"] {
        assert!(found.contains(&figure), "{figure}: {found:?}");
    }
    let recipe = written(lab_with("experiments/finished/pi-udp-load", "x"), "report x", "x.html");
    for part in [
        "What does CPU load do to the latency of UDP, and what does bypassing the network stack?",
        "Under 80 % CPU load p99 of the whole round trip is 87.8 µs, and 57.3 µs without: higher, +53 % [+42, +66].",
        "avg / p99.9 with the ids averaged in (without): UDP, no load ",
        "latlab run pi-udp-load local",
        "Compare directions, not values.",
    ] {
        assert!(recipe.contains(part), "{part}");
    }
    // Two experiments of one recipe share the rows of its publication, and are not compared.
    let both = lab_with("experiments/finished/pi-udp-load", "x");
    copy_directory(&testdata("experiments/finished/pi-udp-load"), &both.path("y"));
    let joint = written(both, "report x y -o j.html", "j.html");
    for part in ["local · x: UDP, no load", "local · y: UDP, no load", "whether conditions differ was not tested"] {
        assert!(joint.contains(part), "{part}");
    }
    let unnamed = written(lab_with("experiments/finished/alone", "x"), "report x", "x.html");
    for part in [
        "<title>Experiment ping local: x</title>",
        "Over 10 runs of one condition: geometric means p50 45.0 µs [44.6 µs, 45.4 µs], p99 59.0 µs",
        "everywhere the mean of the values of the runs. It is the geometric mean",
    ] {
        assert!(unnamed.contains(part), "{part}");
    }
    let lost = written(lab_with("experiments/finished/lost", "x"), "report x", "x.html");
    assert!(lost.contains("without any answer in ") && !lost.contains("higher, –"));
}

#[test]
fn groups_are_compared_and_single_recordings_are_not() {
    let lab = lab_with("experiments/finished/factors", "x");
    let ran = lab.line("report x --by load -o by-load.html").success();
    let page = fs::read_to_string(ran.directory().join("by-load.html")).expect("the page");
    assert!(page.contains("is higher with <code>cpu=20%</code> than with <code>none</code>: infinite in "));
    let lab = lab_with("recordings/good/closed", "a");
    copy_directory(&testdata("recordings/good/scheduled"), &lab.path("b"));
    let page = written(lab, "report a b", "latlab-report.html");
    assert!(page.contains("whether conditions differ was not tested") && !page.contains(">Comparison</h2>"));
    assert!(page.contains(": 2 recordings</title>"));
}

#[test]
fn a_figure_has_three_forms() {
    let lab = lab_with("recordings/good/closed", "closed");
    let svg = written(lab, "report closed --figure tail", "tail.svg");
    expect_well_formed(&svg);
    assert!(svg.starts_with("<?xml version=\"1.0\"") && svg.contains("class=\"figure\"") && !svg.contains("<script"));
    let csv = written(lab_with("recordings/good/closed", "closed"), "report closed --figure tail -o x.csv", "x.csv");
    let mut lines = csv.lines();
    let heading = lines.next().expect("a heading");
    assert!(heading.starts_with("round_trip_delay_ns,"), "{heading}");
    let number = |cell: &str| (!cell.is_empty()).then(|| cell.parse::<f64>().expect("a number"));
    let rows: Vec<Vec<Option<f64>>> = lines.map(|line| line.split(',').map(number).collect()).collect();
    assert!((100..=1_000).contains(&rows.len()) && rows.iter().all(|row| row.len() == 2), "{} rows", rows.len());
    // 5 of 1,997 probes have no delay.
    let without: Vec<_> = rows.iter().filter(|row| row[0].is_none()).map(|row| row[1].expect("a share")).collect();
    assert!(without.len() == 1 && (without[0] - 5.0 / 1_997.0).abs() < 1e-9, "{without:?}");
}

/// The page of a copy of `recording` whose manifest was changed by `change`.
fn page_of_changed(recording: &str, change: impl Fn(&mut Value)) -> Finished {
    let lab = lab_with(recording, "x");
    let path = lab.path("x/manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(path).expect("read")).expect("JSON");
    change(&mut manifest);
    write_manifest(&lab.path("x"), manifest);
    lab.line("report x -o -").success()
}

#[test]
fn names_and_tags_of_others_are_text() {
    const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&`\u{202e}";
    let ran = page_of_changed("recordings/old/1.10-finished", |manifest| {
        for tags in ["/condition/tags", "/spec/tags"] {
            manifest.pointer_mut(tags).expect(tags)[HOSTILE] = HOSTILE.into();
        }
        manifest["here"]["before"]["cpu_model"] = HOSTILE.into();
        manifest["software"]["version"] = HOSTILE.into();
        manifest["command"] = vec!["latlab", HOSTILE].into();
    });
    let page = ran.stdout;
    assert!(page.contains("&lt;/script&gt;"), "the text is shown");
    assert!(!page.contains("<img") && !page.contains("<script>alert") && !page.contains('\u{202e}'));
    // The script of latlab, and the values behind each figure.
    assert_eq!(tags(&page, "script").len(), 1 + figures(&page).len());
}

/// The page of a new measurement with `options`.
fn page_of_measured(options: &str) -> String {
    let measured = Latlab::new().line(&format!("ping --warmup 0 {options} -o x")).start().exits_with_one_of(&[0, 3, 4]);
    let ran = Latlab::at(measured.directory()).line("report x").success();
    fs::read_to_string(ran.directory().join("x.html")).expect("the page")
}

#[test]
fn one_probe_and_only_lost_probes_have_a_page() {
    let one = page_of_measured("-n 1");
    assert!(figures(&one).is_empty() && one.contains("Plots are missing: there is one probe."));
    // Nothing listens there.
    let lost = page_of_measured("127.0.0.1:9 --protocol echo -n 3 -i 10ms --timeout 10ms");
    assert!(lost.contains("p99 is lost; 3 lost or late"), "{lost}");
    assert!(!figures(&lost).contains(&"tail"));
    assert!(lost.contains("Plots of delays are missing: all of 3 probes count as lost or late."), "{lost}");
}
