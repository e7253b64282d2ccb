//! Documents that depend on the host, rendered from fixed facts: findings of doctor, and achieved loads.

use std::fs;

use latlab::diagnostics::Colour;
use latlab::facts::{HostFacts, LoadReport};
use latlab::host::doctor::{Intent, findings};
use latlab::plan::{EndSpec, WaitMode};
use latlab::report::loads::LoadsView;
use latlab::report::{Style, doctor};
use serde_json::Value;

use crate::{json, testdata};

/// The name of each golden, and its document.
pub(crate) fn all() -> Vec<(String, String)> {
    let doctors = [("doctor/findings".to_owned(), doctor_findings("loaded"))];
    let loads = ["loaded", "netload", "far"].map(|name| (format!("load/{name}"), load_reports(name)));
    doctors.into_iter().chain(loads).collect()
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
