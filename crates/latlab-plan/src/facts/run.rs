//! Facts about a run apart from its rows: its command line, the cost of the instrument, settings, and reports of its ends.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::iter;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;
use crate::units::human::shell_word;

/// The most bytes of a bounded command line, with one after each word.
const MOST_COMMAND_BYTES: usize = 64 * 1024;
/// Stands for the words that a bounded command line leaves out.
const OMITTED_WORDS: &str = "…";

/// The words of a command line of latlab, `latlab` first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandLine {
    words: Vec<String>,
}

impl CommandLine {
    /// The command line `typed`, whose first word is the path of the program. What is not UTF-8 is replaced by U+FFFD.
    pub fn of(typed: &[impl AsRef<OsStr>]) -> CommandLine {
        let arguments = typed.iter().skip(1).map(|word| word.as_ref().to_string_lossy().into_owned());
        CommandLine { words: iter::once("latlab".to_owned()).chain(arguments).collect() }
    }

    /// The words up to 64 KiB, and `…` as the last one if there are more.
    pub fn bounded(&self) -> CommandLine {
        let mut bytes = 0;
        let fits = |word: &&String| {
            bytes += word.len() + 1;
            bytes <= MOST_COMMAND_BYTES
        };
        let mut words: Vec<String> = self.words.iter().take_while(fits).cloned().collect();
        if words.len() < self.words.len() {
            words.push(OMITTED_WORDS.to_owned());
        }
        CommandLine { words }
    }

    /// The line as it can be pasted into a shell.
    pub fn in_shell(&self) -> String {
        in_shell(&self.words)
    }
}

/// `words` as a line that can be pasted into a shell.
pub fn in_shell(words: &[String]) -> String {
    words.iter().map(|word| shell_argument(word)).collect::<Vec<_>>().join(" ")
}

/// `word` as one word of a shell. Options need no quotes.
fn shell_argument(word: &str) -> String {
    let name = word.trim_start_matches('-');
    let is_option = name.len() < word.len() && (name.is_empty() || shell_word(name) == name);
    if is_option { word.to_owned() } else { shell_word(word) }
}

/// The cost of the instrument during one run: the lower limit of its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instrument {
    pub clock_resolution_ns: Option<Nanos>,
    /// Median cost of one clock read, measured when the run was armed.
    pub clock_read_ns: Option<f64>,
    /// Median cost of computing or checking one authentication tag; null without a key.
    pub tag_ns: Option<f64>,
    /// The bare loop on the same CPUs, if `latlab doctor --calibrate` has measured it.
    pub bare_loop: Option<BareLoop>,
}

/// The round trip time of the bare loop: send, receive and two clock reads, without recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BareLoop {
    /// Median of the round trip time.
    pub p50_ns: f64,
    /// 99th percentile of the round trip time.
    pub p99_ns: f64,
    pub n: u64,
    #[serde(flatten)]
    pub conditions: BareConditions,
    /// When it was measured, UTC, RFC 3339.
    pub measured_at: String,
    /// The boot in which it was measured; it is valid in no other.
    pub boot_id: Option<String>,
}

/// The conditions of a bare loop, which is always a closed one over UDP and IPv4 on loopback, without loads and
/// settings. It is the lower limit of runs in the same conditions only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BareConditions {
    pub size_bytes: u32,
    /// `block`, `spin` or `busy-poll`, both ends.
    pub wait: String,
    pub cpu: Option<u16>,
    pub peer_cpu: Option<u16>,
    /// SCHED_FIFO priority of both ends. Calibrations of earlier versions do not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fifo: Option<u8>,
}

impl BareConditions {
    /// Whether both of its ends were pinned. Without pins the scheduler chooses the CPUs, on which the round trip depends:
    /// such a figure is the lower limit of no other run.
    pub fn is_pinned(&self) -> bool {
        self.cpu.is_some() && self.peer_cpu.is_some()
    }
}

/// One setting at one end for the time of a run. Numbers are in the units of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFacts {
    /// As on the command line: `governor=performance`.
    pub setting: String,
    /// `local`, `peer` or, if both ends are on one host, `both`.
    pub at: String,
    /// A file, or an interface and its attribute.
    pub place: String,
    /// Number of places with the values below, of which `place` is the first.
    pub places: u32,
    /// The root of the files, if it is not that of the host (`LATLAB_HOST_ROOT`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    pub before: String,
    pub set: String,
    /// Value that was read back.
    pub read_back: Option<String>,
    /// How it was restored; null while it is not yet.
    pub ended: Option<Restoration>,
}

/// How a setting was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Restoration {
    /// To the value before the run.
    Restored,
    /// Another process had set another value meanwhile, which was kept.
    Changed { found: String },
    /// The value could not be read or written.
    Failed { reason: String },
}

/// The counters of a session at the reflector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReflectorReport {
    pub answered: u64,
    /// Probes dropped as duplicates or older than the replay window.
    pub replayed: u64,
    /// Probes of this session dropped for other reasons: reason → count above 0.
    pub dropped: BTreeMap<String, u64>,
    /// Datagrams of all sessions dropped by its socket during the session because the buffer was full, modulo 2^32; null
    /// if unknown.
    #[serde(default)]
    pub socket_drops: Option<u64>,
}

/// The kernel's stamps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampFacts {
    /// The largest error of their conversion from CLOCK_REALTIME.
    pub error_ns: i64,
    /// How often CLOCK_REALTIME was set: stamps around that are absent.
    pub clock_steps: u64,
    /// What stamps add to one passage of the kernel, measured on loopback before the run: a send and a receive call.
    pub cost_ns: i64,
}

/// The scheduling parameters of the threads that slept, and the late wake-up that ended the run, if one did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupFacts {
    /// Timer slack, read back in a thread that slept.
    pub timer_slack_ns: Option<Nanos>,
    /// Niceness, −20 to 19: for nice threads select, poll and epoll extend time-outs five times as much.
    pub niceness: Option<i32>,
    /// The wake-up that ended the run (`--break`); null if none did.
    pub broke: Option<LateWakeup>,
    /// Whether a concurrent run ended this one early by its `--break`; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Slots of the measuring phase for which no thread slept, since it was too far behind; absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_slept: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One wake-up that was later than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateWakeup {
    pub seq: u64,
    /// CPU of the thread, if known.
    pub cpu: Option<u16>,
    /// When it was due, ns of CLOCK_MONOTONIC.
    pub due_ns: i64,
    /// When the thread ran, ns of CLOCK_MONOTONIC.
    pub woke_ns: i64,
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_command_line_begins_with_latlab_and_can_be_pasted() {
        let typed = ["/usr/bin/latlab", "ping", "-n", "5", "--tag", "build=it's a", "--output", "", "--", "-a b"];
        let line = CommandLine::of(&typed);
        assert_eq!(line.in_shell(), r"latlab ping -n 5 --tag 'build=it'\''s a' --output '' -- '-a b'");
        let not_utf8 = CommandLine::of(&[OsStr::from_bytes(b"latlab"), OsStr::from_bytes(b"a\xff")]);
        assert_eq!(not_utf8.words, ["latlab", "a\u{fffd}"]);
        assert_eq!(CommandLine::of(&[] as &[&str]).words, ["latlab"]);
    }
}
