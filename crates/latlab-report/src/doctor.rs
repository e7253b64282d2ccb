//! Rendering of findings as text and as `latlab.doctor/1`.

use serde_json::json;

use super::json::pretty;
use super::text::{CaveatChoice, Style, unwrapped, wrap};
use crate::facts::{Finding, FindingSeverity};

pub fn render_json(findings: &[Finding]) -> String {
    pretty(&json!({ "schema": "latlab.doctor/1", "findings": sorted(findings) }))
}

/// Width of the severity labels in characters.
const LABEL: usize = 11;

/// Renders findings as text, most severe first; checks without a problem share the last lines. A style with warnings only
/// leaves out notes and these checks. Without a finding the text is empty.
pub fn render_text(findings: &[Finding], style: Style) -> String {
    let available = style.width.saturating_sub(LABEL).max(20);
    let is_quiet = style.caveats == CaveatChoice::Warnings;
    let mut findings = sorted(findings);
    findings.retain(|finding| !is_quiet || finding.severity <= FindingSeverity::Warning);
    let mut lines = Vec::new();
    for finding in findings.iter().filter(|finding| finding.severity != FindingSeverity::Fine) {
        lines.extend(entry(finding.severity, wrap(&finding.message, available), style));
        lines.extend(finding.fix.iter().flat_map(|fix| fix_lines(fix, available, style)));
    }
    let fine: Vec<_> = findings.iter().filter(|finding| finding.severity == FindingSeverity::Fine).collect();
    let words = fine.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join(" · ");
    lines.extend(entry(FindingSeverity::Fine, wrap(&words, available), style));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Words with which commands begin.
const COMMANDS: [&str; 4] = ["sudo", "echo", "latlab", "ssh"];

/// `fix` below its finding: each command, which may stand behind a host and a colon, in one line; text in lines of
/// `available`.
fn fix_lines(fix: &str, available: usize, style: Style) -> Vec<String> {
    let is_command = |part: &str| part.split(' ').next().is_some_and(|word| COMMANDS.contains(&word));
    let commands: Vec<&str> = fix.split("; ").collect();
    if commands.len() > 1 && commands.iter().copied().all(is_command) && !fix.contains('\'') {
        return commands.into_iter().map(|command| unwrapped(command, LABEL, style)).collect();
    }
    if fix.split(": ").any(is_command) {
        vec![unwrapped(fix, LABEL, style)]
    } else {
        wrap(fix, available).iter().map(|line| format!("{:LABEL$}{line}", "")).collect()
    }
}

fn sorted(findings: &[Finding]) -> Vec<Finding> {
    let mut sorted = findings.to_vec();
    sorted.sort_by_key(|finding| finding.severity);
    sorted
}

fn entry(weight: FindingSeverity, text: Vec<String>, style: Style) -> Vec<String> {
    let word = match weight {
        FindingSeverity::Blocker => style.alarm("blocker"),
        FindingSeverity::Warning => style.warn("warning"),
        FindingSeverity::Note => "note".into(),
        FindingSeverity::Fine => style.quiet("fine"),
    };
    let plain_width = match weight {
        FindingSeverity::Blocker | FindingSeverity::Warning => 7,
        FindingSeverity::Note | FindingSeverity::Fine => 4,
    };
    let label =
        |first: bool| if first { format!(" {word}{}", " ".repeat(LABEL - 1 - plain_width)) } else { " ".repeat(LABEL) };
    text.into_iter().enumerate().map(|(number, line)| label(number == 0) + &line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: &str, severity: FindingSeverity, message: &str, fix: Option<&str>) -> Finding {
        Finding { code: code.into(), severity, message: message.into(), fix: fix.map(str::to_owned) }
    }

    fn findings() -> Vec<Finding> {
        vec![
            finding("clocksource", FindingSeverity::Fine, "clocksource tsc", None),
            finding(
                "governor",
                FindingSeverity::Warning,
                "governor is `ondemand` on 4 CPUs",
                Some("cpupower frequency-set -g performance"),
            ),
            finding("steal", FindingSeverity::Fine, "steal 0 %", None),
            finding(
                "rt-throttling",
                FindingSeverity::Blocker,
                "RT throttling would stop a spinning FIFO thread",
                Some("sudo sysctl kernel.sched_rt_runtime_us=-1"),
            ),
        ]
    }

    #[test]
    fn the_most_severe_is_first_and_passed_checks_share_a_line() {
        let expected = " blocker   RT throttling would stop a spinning FIFO thread\n           \
                        sudo sysctl kernel.sched_rt_runtime_us=-1\n \
                        warning   governor is `ondemand` on 4 CPUs\n           \
                        cpupower frequency-set -g performance\n \
                        fine      clocksource tsc · steal 0 %\n";
        assert_eq!(render_text(&findings(), Style::PLAIN), expected);
        assert_eq!(render_text(&[], Style::PLAIN), "");
        let quiet = Style { caveats: CaveatChoice::Warnings, ..Style::PLAIN };
        let (warnings, _) = expected.split_once(" fine").expect("the last line");
        let note = finding("preemption", FindingSeverity::Note, "the kernel is built without preemption", None);
        assert_eq!(render_text(&[findings(), vec![note]].concat(), quiet), warnings);
    }

    #[test]
    fn commands_stay_in_one_line_and_text_is_wrapped() {
        let narrow = Style { width: 40, ..Style::PLAIN };
        for (fix, lines) in [
            ("sudo ethtool -K eth0 rx-gro-hw off", &["  sudo ethtool -K eth0 rx-gro-hw off"][..]),
            (
                "echo 2 | sudo tee a; echo 200000 | sudo tee b",
                &["           echo 2 | sudo tee a", "           echo 200000 | sudo tee b"][..],
            ),
            (
                "ssh -t pi3 'echo 2 | sudo tee a; echo 3 | sudo tee b'",
                &["           ssh -t pi3 'echo 2 | sudo tee a; echo 3 | sudo tee b'"][..],
            ),
            ("on the far host: sudo reboot", &["           on the far host: sudo reboot"][..]),
            (
                "find the processes with `top`, and wait until they end",
                &["           find the processes with", "           `top`, and wait until they", "           end"][..],
            ),
        ] {
            assert_eq!(fix_lines(fix, 29, narrow), lines, "{fix}");
        }
    }

    #[test]
    fn the_document_conforms_to_its_schema() {
        crate::schemas::check("doctor", &render_json(&findings()));
        crate::schemas::check("doctor", &render_json(&[]));
    }
}
