//! Whether the crates of others that are shipped keep the rules of deny.toml. `cargo deny` reads the same file, but to build
//! it takes a tenth of the time of CI.

use std::fs;
use std::process::Command;

use spdx::{Expression, ParseMode};
use toml::{Table, Value};

use super::{expect_none, root};

#[test]
fn every_shipped_crate_has_an_allowed_licence_name_and_source() {
    let rules: Table = fs::read_to_string(root().join("deny.toml")).expect("deny.toml").parse().expect("TOML");
    let licences = words(&rules["licenses"]["allow"], |licence| licence);
    let denied = words(&rules["bans"]["deny"], |ban| &ban["name"]);
    let allowed = |line: &&String| {
        let (package, licence) = line.split_once('|').expect("a package and its licence");
        // crates.io is the source that cargo does not print.
        let name = package.split_once(" v").filter(|(_, version)| !version.contains("://")).map(|(name, _)| name);
        name.is_some_and(|name| !denied.contains(&name)) && has_licence(licence, &licences)
    };
    let mut breaches = Vec::new();
    for target in words(&rules["graph"]["targets"], |target| target) {
        breaches.extend(foreign_crates(target).iter().filter(|line| !allowed(line)).cloned());
    }
    breaches.sort();
    breaches.dedup();
    expect_none(&breaches);
}

fn words<'a>(list: &'a Value, of: impl Fn(&'a Value) -> &'a Value) -> Vec<&'a str> {
    list.as_array().expect("a list").iter().map(|entry| of(entry).as_str().expect("a word")).collect()
}

fn has_licence(licence: &str, allowed: &[&str]) -> bool {
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|wanted| {
            wanted.addition.is_none() && wanted.license.id().is_some_and(|id| allowed.contains(&id.name))
        })
    })
}

/// As `name vVERSION (SOURCE)|LICENCE`.
fn foreign_crates(target: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--all-features", "--edges", "normal,build", "--target", target])
        .args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"])
        .current_dir(root())
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().filter(|line| !line.is_empty() && !line.contains(" (/")).map(str::to_owned).collect()
}
