//! The built-in experiments: their files, and their results with `--quick`.

use std::time::Duration;

use serde_json::Value;

use crate::experiment::only;
use crate::harness::{Latlab, check_schema};
use crate::lab::{privileged, without_rights};

/// An experiment at `--quick` that takes longer hangs: it is planned for a minute, and may get a fifth of a CPU only.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);

/// Runs `recipe` with `--quick`. Returns the printed text, and the JSON document of a report made afterwards.
fn quick(recipe: &str) -> (String, Value) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = || Latlab::at(directory.path()).deadline(DEADLINE);
    let ran = at().args(["run", recipe, "--quick"]).measured();
    let shown = only(directory.path()).display().to_string();
    let printed = at().args(["run", &shown, "--json", "-q"]).measured().stdout;
    let document = serde_json::from_str(&printed).expect("one document");
    check_schema(&document, "compare/1");
    (ran.stdout, document)
}

#[test]
fn dds_stands_beside_its_publication_and_beside_udp() {
    let (printed, document) = quick("dds-pingpong");
    for words in [
        "round trip / 2, µs",
        "Ave",
        "99.99 %",
        "Xeon, 1 GbE",
        "Pi 4, 1 GbE",
        "\n round trip",
        "UDP, 32 B",
        "reliable, keyed, 63,000 B",
        "(50 %)",
    ] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
    assert!(!printed.contains("undecided") && !printed.contains("1,024 B"), "{printed}");
    let published = &document["experiment"]["published"];
    assert_eq!(published["sources"], serde_json::json!(["Xeon, 1 GbE", "Pi 4, 1 GbE"]));
    let rows = published["rows"].as_array().expect("rows");
    // UDP and four cells, of two sizes.
    let measured: Vec<&Value> = rows.iter().filter(|row| !row["measured"].is_null()).collect();
    assert_eq!((rows.len(), measured.len()), (45, 10), "{published:#}");
    assert!(measured.iter().all(|row| row["measured"]["n"] == 1_000 && row["measured"]["lost"] == 0), "{measured:#?}");
    let compared = document["comparisons"].as_array().expect("comparisons");
    assert_eq!(compared.len(), 8, "{compared:#?}");
    assert!(
        compared.iter().all(|row| row["baseline"].as_str().is_some_and(|name| name.contains("udp"))),
        "{compared:#?}"
    );
}

#[test]
fn a_plan_names_in_one_line_what_needs_missing_rights() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let Some(output) = without_rights(home.path(), "run pi-udp-load --quick --dry-run --store s") else { return };
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = "left out     `xdp` (cannot open an AF_XDP socket: operation not permitted\n             (EPERM))";
    assert!(printed.contains(line) && printed.contains("all with reflect=none transport=udp"), "{printed}");
}
