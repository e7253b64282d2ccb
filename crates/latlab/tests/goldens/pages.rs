//! Static pages: help, man pages, completions, recipes and their plans.

use crate::commands::LISTED;
use crate::{Case, case};

const RECIPES: [&str; 6] =
    ["pi-udp-load", "pi-roundtrip", "aa", "wakeup-governor", "udp-loopback-matrix", "dds-pingpong"];

pub(crate) fn cases() -> Vec<Case> {
    let help = LISTED.into_iter().map(|command| {
        case(
            &format!("help/{command}"),
            &[],
            &format!(
                "{command} -h
{command} --help"
            ),
        )
    });
    let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
    let completions = shells.map(|shell| case(&format!("completions/{shell}"), &[], &format!("completions {shell}")));
    let recipes = RECIPES.map(|recipe| case(&format!("recipes/{recipe}"), &[], &lines_of(recipe)));
    let others = [
        case(
            "help/latlab",
            &[],
            "\n~ help\n~ -h\n--help\n-V\n--version\nping -h\n~ tty ping -h\nCOLUMNS=40 tty agent -h\nCOLUMNS=200 tty agent -h",
        ),
        case("man", &[], "man\nman list\nman --output pages\ncat pages/latlab-agent.1"),
        case(
            "recipes/list",
            &[],
            "recipes\ntty recipes\nrecipes show\nrecipes show aaa\nrecipes show pi-udp\nrecipes aa aa\nrecipes --quick\nrecipes --quick --full",
        ),
    ];
    help.chain(completions).chain(recipes).chain(others).collect()
}

/// A recipe, and its plan at each scale.
fn lines_of(recipe: &str) -> String {
    let scales = ["", " --quick", " --full"];
    let shown = ["", "~ "]
        .into_iter()
        .chain(["~ "])
        .zip(scales)
        .map(|(varied, scale)| format!("{varied}recipes show {recipe}{scale}"));
    // Governors that the host has not are left out of a plan.
    let host = if recipe == "wakeup-governor" { "LATLAB_HOST_ROOT=DIR/host " } else { "" };
    let planned = scales.map(|scale| format!("{host}run {recipe}{scale} --dry-run"));
    let more = match recipe {
        "wakeup-governor" => {
            let policy = "host/sys/devices/system/cpu/cpufreq/policy0";
            vec![
                format!("run {recipe} lab --dry-run"),
                format!("write {policy}/scaling_governor ondemand"),
                format!("write {policy}/scaling_available_governors ondemand performance"),
                format!("{host}run {recipe} --quick --dry-run"),
            ]
        }
        "udp-loopback-matrix" => {
            vec![format!("run {recipe} --reboots --dry-run")]
        }
        "aa" => Vec::new(),
        _ => ["lab", "127.0.0.1:9"].map(|target| format!("run {recipe} {target} --quick --dry-run")).to_vec(),
    };
    shown.into_iter().chain(planned).chain(more).collect::<Vec<_>>().join("\n")
}
