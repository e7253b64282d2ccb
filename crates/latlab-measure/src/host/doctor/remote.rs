//! Findings on the host of an agent, which name the host and say on which host each fix is to be typed.

use crate::facts::Finding;
use crate::plan::Target;

/// Codes that concern this host only.
const OF_THIS_HOST: [&str; 1] = ["no-lab-right"];

/// A finding on the host of `peer`'s agent, for a reader on this host; `None` if it does not concern a measurement with it.
pub fn for_remote_host(finding: Finding, peer: &Target) -> Option<Finding> {
    let Finding { code, severity, message, fix } = finding;
    let fix = fix.map(|fix| remote_fix(&fix, peer));
    (!OF_THIS_HOST.contains(&code.as_str())).then(|| Finding {
        message: format!("`{peer}`: {message}"),
        code,
        severity,
        fix,
    })
}

/// A fix is a command on that host (`sudo …`, `echo …`), a command on this one (`latlab ping …`), or text; a second one may
/// follow it.
fn remote_fix(fix: &str, peer: &Target) -> String {
    let (first, second) = fix.split_once(", or ").map_or((fix, None), |(first, second)| (first, Some(second)));
    let of_this_host = |fix: &str| fix.strip_prefix("latlab ping ").map(|options| ping(options, peer));
    let is_a_command = ["sudo ", "echo "].iter().any(|start| first.starts_with(start));
    if let (false, None) = (is_a_command, of_this_host(first)) {
        return match peer {
            Target::Ssh { .. } => format!("on `{peer}`: {fix}"),
            _ => format!("on the far host: {fix}"),
        };
    }
    let first = of_this_host(first).unwrap_or_else(|| typed_there(first, peer));
    let second = second.map(|second| of_this_host(second).unwrap_or_else(|| second.to_owned()));
    second.map_or(first.clone(), |second| format!("{first}, or {second}"))
}

/// How to run `command` on that host: `ssh -t` lets sudo ask for a password; quotes keep `|` and `$` from this shell.
fn typed_there(command: &str, peer: &Target) -> String {
    let plain = |sign: char| sign.is_alphanumeric() || " -_./=+,:".contains(sign);
    match peer {
        Target::Ssh { host } if command.chars().all(plain) => format!("ssh -t {host} {command}"),
        Target::Ssh { host } => format!("ssh -t {host} '{command}'"),
        _ => format!("on the far host: {command}"),
    }
}

/// The command line `latlab ping` against `peer` with `options`, of which `--set` applies to the peer.
fn ping(options: &str, peer: &Target) -> String {
    let options = match options.split_once("--set ").and_then(|(before, set)| Some((before, set.split_once('=')?))) {
        Some((before, (knob, value))) => format!("{before}--set {knob}@peer={value}"),
        None => options.to_owned(),
    };
    match peer {
        Target::Ssh { .. } => format!("latlab ping {peer} {options}"),
        _ => format!("latlab ping cmd:… {options}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{SPINNING, judged};
    use super::*;
    use crate::facts::FindingSeverity;
    use crate::host::facts::{Interface, read};
    use crate::host::test_hosts::{container, raspberry_pi_4, two_sockets};
    use crate::plan::EndSpec;

    fn ssh() -> Target {
        Target::Ssh { host: "pi@pi3".into() }
    }

    fn command() -> Target {
        Target::Command { words: ["ip", "netns", "exec", "b", "latlab", "agent", "--stdio"].map(String::from).into() }
    }

    #[test]
    fn a_fix_says_where_it_is_to_be_typed() {
        for (fix, over_ssh, by_command) in [
            (
                "sudo sysctl kernel.sched_rt_runtime_us=-1",
                "ssh -t pi@pi3 sudo sysctl kernel.sched_rt_runtime_us=-1",
                "on the far host: sudo sysctl kernel.sched_rt_runtime_us=-1",
            ),
            (
                "echo off | sudo tee /sys/devices/system/cpu/smt/control",
                "ssh -t pi@pi3 'echo off | sudo tee /sys/devices/system/cpu/smt/control'",
                "on the far host: echo off | sudo tee /sys/devices/system/cpu/smt/control",
            ),
            (
                "sudo setcap cap_ipc_lock+ep $(command -v latlab)",
                "ssh -t pi@pi3 'sudo setcap cap_ipc_lock+ep $(command -v latlab)'",
                "on the far host: sudo setcap cap_ipc_lock+ep $(command -v latlab)",
            ),
            (
                "latlab ping --set governor=performance",
                "latlab ping ssh:pi@pi3 --set governor@peer=performance",
                "latlab ping cmd:… --set governor@peer=performance",
            ),
            (
                "sudo cpupower idle-set -D 10, or latlab ping --wait spin",
                "ssh -t pi@pi3 sudo cpupower idle-set -D 10, or latlab ping ssh:pi@pi3 --wait spin",
                "on the far host: sudo cpupower idle-set -D 10, or latlab ping cmd:… --wait spin",
            ),
            (
                "latlab ping --fifo 50, or --wait spin",
                "latlab ping ssh:pi@pi3 --fifo 50, or --wait spin",
                "latlab ping cmd:… --fifo 50, or --wait spin",
            ),
            (
                "choose another CPU, or find the process with `top -1`",
                "on `ssh:pi@pi3`: choose another CPU, or find the process with `top -1`",
                "on the far host: choose another CPU, or find the process with `top -1`",
            ),
        ] {
            assert_eq!(remote_fix(fix, &ssh()), over_ssh);
            assert_eq!(remote_fix(fix, &command()), by_command);
        }
    }

    #[test]
    fn every_finding_on_a_remote_host_names_it() {
        let endless = EndSpec { fifo: Some(50), cpu: Some(1), mlock: true, ..SPINNING };
        let mut seen = 0;
        for host in [raspberry_pi_4(), two_sockets(), container()] {
            let facts = read(&host.root, Interface::Named("lo"));
            for end in [endless, EndSpec::SYSTEM] {
                for finding in judged(&facts, &end).into_iter().filter_map(|finding| for_remote_host(finding, &ssh())) {
                    assert!(finding.message.starts_with("`ssh:pi@pi3`: "), "{finding:?}");
                    assert!(finding.fix.as_ref().is_none_or(|fix| fix.contains("pi@pi3")), "{finding:?}");
                    assert_ne!(finding.code, "no-lab-right");
                    seen += usize::from(finding.fix.is_some());
                }
            }
        }
        assert!(seen > 10, "{seen} remedies");
        let lab = Finding::new(FindingSeverity::Note, "no-lab-right", "no right", "sudo latlab ping lab");
        assert_eq!(for_remote_host(lab, &ssh()), None);
    }
}
