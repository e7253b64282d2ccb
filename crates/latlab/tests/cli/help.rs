//! Help: short pages fit a screen of 80 × 50, and every page ends with two examples.

use crate::harness::{Latlab, empty};

const COMMANDS: [&str; 13] = [
    "ping",
    "serve",
    "keygen",
    "summary",
    "compare",
    "load",
    "run",
    "recipes",
    "list",
    "doctor",
    "agent",
    "completions",
    "man",
];

fn page(line: &str) -> String {
    Latlab::new().line(line).stderr(empty()).success().stdout
}

#[test]
fn the_reflector_has_help_of_its_own() {
    let help = page("serve --help");
    assert!(help.contains("Pin the answering thread") && help.contains("This end only"), "{help}");
    assert!(!help.contains("Pin the measuring thread") && !help.contains("Both ends do so"), "{help}");
}

#[test]
fn every_command_is_on_the_first_page() {
    let first = page("--help");
    for command in COMMANDS {
        assert!(first.contains(&format!("\n  {command} ")), "{command} is not in\n{first}");
    }
    for hidden in ["reflector", "stressor", "bare"] {
        assert!(!first.contains(hidden), "{hidden} is in\n{first}");
    }
}

#[test]
fn short_help_fits_a_screen() {
    for line in COMMANDS.map(|command| format!("{command} -h")).into_iter().chain(["-h".to_owned()]) {
        let page = page(&line);
        assert!(page.lines().count() <= 50, "{line} has {} lines", page.lines().count());
        let widest = page.lines().max_by_key(|row| row.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= 80, "{line}: {widest}");
    }
}

#[test]
fn every_page_ends_with_two_examples() {
    for line in COMMANDS.map(|command| format!("{command} --help")).into_iter().chain(["--help".to_owned()]) {
        let page = page(&line);
        let (_, examples) = page.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{line} has no examples"));
        let count = examples.lines().filter(|row| row.starts_with("  latlab ")).count();
        assert_eq!((count, examples.lines().count()), (2, 4), "{line}:\n{examples}");
    }
}

#[test]
fn ping_shows_ten_options_first_and_all_of_them_on_demand() {
    let options = |page: &str| {
        let is_option = |row: &&str| row.trim_start().starts_with('-') && row.starts_with("  ");
        page.lines().filter(is_option).filter(|row| !row.contains("--help")).count()
    };
    let (short, long) = (page("ping -h"), page("ping --help"));
    assert_eq!(options(&short), 10, "{short}");
    for option in
        "--count --duration --interval --poisson --seed --size --warmup --timeout --wait --transport --protocol -4 -6 \
         --bind --peer-addr --source-port --dscp --df --cpu --peer-cpu --fifo --mlock --psk-file --load --set --tag --quantiles --window \
         --deadline --half --max-backlog --output --store --no-record --json --quiet --verbose"
            .split_whitespace()
    {
        let named = long.split_whitespace().any(|word| word.trim_end_matches(',') == option);
        assert!(named, "{option} is not in\n{long}");
    }
}

#[test]
fn the_version_is_data() {
    let expected = format!("latlab {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(page("--version"), expected);
    assert_eq!(page("-V"), expected);
}
