//! Documents that depend on the host, rendered from fixed facts: findings of doctor, achieved loads, gains of remedies.

use std::fs;

use latlab::analysis::experiment::{Gain, GainVerdict, RemedyGains};
use latlab::diagnostics::Colour;
use latlab::facts::{HostFacts, LoadReport};
use latlab::host::doctor::{Intent, findings};
use latlab::plan::{Condition, EndSpec, RunSpec, Via, WaitMode, WakeupCpus, WakeupSpec, Work};
use latlab::report::experiment::{RemediesView, UntriedRemedy, remedies_json, remedies_text};
use latlab::report::loads::LoadsView;
use latlab::report::{Style, doctor};
use latlab::units::Nanos;
use serde_json::Value;

use crate::{json, testdata};

/// The name of each golden, and its document.
pub(crate) fn all() -> Vec<(String, String)> {
    let doctors = [("doctor/findings".to_owned(), doctor_findings("loaded"))];
    let loads = ["loaded", "netload", "far"].map(|name| (format!("load/{name}"), load_reports(name)));
    doctors.into_iter().chain(loads).chain([("wakeup/remedies".to_owned(), remedy_gains())]).collect()
}

fn manifest(recording: &str) -> Value {
    let path = testdata().join("recordings/forms").join(recording).join("manifest.json");
    serde_json::from_str(&fs::read_to_string(path).expect("a manifest")).expect("JSON")
}

/// A document in all of its forms.
fn forms(plain: &str, coloured: &str, json: &str) -> String {
    json::check(json);
    let json = json::short(json);
    format!("[text]\n{plain}\n[colour]\n{}\n[JSON]\n{json}", coloured.replace(";7m", "m").replace('\u{1b}', "␛"))
}

fn coloured() -> Style {
    Style { colour: Colour::marked(7), ..Style::PLAIN }
}

/// Findings of doctor on the host of a recording.
fn doctor_findings(recording: &str) -> String {
    let here = &manifest(recording)["here"];
    let facts = ["before", "after"].map(|time| serde_json::from_value::<HostFacts>(here[time].clone()).expect("facts"));
    let [earlier, later] = &facts;
    let spin = EndSpec { wait: WaitMode::Spin, cpu: Some(1), ..EndSpec::SYSTEM };
    let all = [EndSpec::SYSTEM, spin].map(|end| {
        let found = findings(later, Some(earlier), Intent { here: &end, peer: Some(&end) });
        forms(
            &doctor::render_text(&found, Style::PLAIN),
            &doctor::render_text(&found, coloured()),
            &doctor::render_json(&found),
        )
    });
    all.join("\n")
}

/// Reports of the loads of a recording.
fn load_reports(recording: &str) -> String {
    let loads: Vec<LoadReport> = serde_json::from_value(manifest(recording)["loads"].clone()).expect("reports");
    let view = LoadsView::of(&loads);
    forms(&view.text(Style::PLAIN), &view.text(coloured()), &view.json())
}

fn gain(statistic: &str, with_us: f64, verdict: GainVerdict) -> Gain {
    let gained = 76e3 - with_us * 1e3;
    Gain {
        statistic: statistic.into(),
        asked_ns: Some(76e3),
        with_ns: Some(with_us * 1e3),
        gain_ns: Some(gained),
        low_ns: Some(gained - 900.0),
        high_ns: (verdict != GainVerdict::Undecided).then_some(gained + 1_100.0),
        verdict,
        adjusted_p_value: Some(0.001),
        runs_needed: (verdict == GainVerdict::Undecided).then_some(12),
    }
}

fn remedy_gains() -> String {
    let interval_ns = Nanos::from_millis(1);
    let wakeup =
        WakeupSpec { via: Via::Select, interval_ns, relative: false, cpus: WakeupCpus::Anywhere, break_ns: None };
    let condition = Condition::of(&RunSpec::here(Work::Wakeup(wakeup)));
    let gains_of = |remedy: &str, with_us, verdict| RemedyGains {
        remedy: remedy.into(),
        gains: vec![gain("p50", with_us, verdict), gain("p99", 1_204.5, GainVerdict::Helps)],
    };
    let untried = [UntriedRemedy {
        remedy: "--set governor=performance".into(),
        reason: "the kernel does not set frequencies here".into(),
    }];
    let view = RemediesView {
        heading: "wakeup · select · every 1 ms".into(),
        condition: &condition,
        runs: 9,
        blocks: 3,
        confidence: 0.95,
        gains: vec![
            gains_of("--fifo 80", 26.0, GainVerdict::Helps),
            gains_of("--set timer-slack=1ns", 77.0, GainVerdict::Undecided),
        ],
        untried: &untried,
        caveats: &[],
        recordings: vec!["latlab-runs/20261122T203455Z-wakeup-ca84".into()],
    };
    let decided = RemediesView { gains: view.gains[..1].to_vec(), untried: &[], ..view.clone() };
    let shown = [&view, &decided];
    shown
        .map(|view| forms(&remedies_text(view, Style::PLAIN), &remedies_text(view, coloured()), &remedies_json(view)))
        .join("\n")
}
