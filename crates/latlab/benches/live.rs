//! What showing a run costs the run: round trips of a ping with the progress line and with the full-screen view, each on a
//! pseudo-terminal, against pings that show nothing, in paired rounds. A display that costs nothing is equivalent.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[allow(dead_code)]
mod judge;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

use judge::options::Options;
use judge::programs;
use judge::race::{self, P50_TOLERANCE, P99_TOLERANCE, Rounds, p50, p99};
use judge::readings::{self, Reading};
use judge::results;

/// The largest permitted difference of the median and of the 99th percentile, as a ratio.
const P50_MARGIN: f64 = 0.03;
const P99_MARGIN: f64 = 0.10;
/// Long enough for several seconds in the display.
const DURATION: &str = "5s";
const QUICK_DURATION: &str = "2s";

/// How a ping is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Display {
    Line,
    FullScreen,
    Nothing,
    NothingAgain,
}

const DISPLAYS: [Display; 4] = [Display::Line, Display::FullScreen, Display::Nothing, Display::NothingAgain];

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let mut rng = race::seeded_rng();
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    let (mut table, mut raw) = (Vec::new(), Vec::new());
    for (title, on_other) in [("ping, blocking, one core", false), ("ping, blocking, across cores", true)] {
        if !options.wants(title) {
            continue;
        }
        let baseline = [Display::Nothing, Display::NothingAgain];
        let rounds = Rounds::run(title, (&DISPLAYS, baseline), options, &mut rng, |display| {
            let mut command = programs::latlab();
            let duration = if options.quick { QUICK_DURATION } else { DURATION };
            command.args(["ping", "local", "-d", duration, "--json", "--quantiles", "0.5,0.99", "--store"]);
            command.arg(store.path()).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
            let (cpu, other) = options.cpus;
            command.args(["--cpu", &cpu.to_string(), "--peer-cpu", &if on_other { other } else { cpu }.to_string()]);
            readings::latlab(&shown(command, display)?)
        })?;
        table.extend([Display::Line, Display::FullScreen].map(|display| judged(title, display, &rounds)));
        raw.push(json!({ "row": title, "rounds": rounds.raw() }));
    }
    let head = ["row", "shown", "p50 (±3 %)", "interval", "verdict", "p99 (±10 %)", "interval", "verdict", "rounds"];
    results::write("live", &head, &table, Value::from(raw), options.quick)
}

/// The standard output of `command` with this display.
fn shown(mut command: Command, display: Display) -> Result<String, String> {
    match display {
        Display::Nothing | Display::NothingAgain => return programs::output(command.arg("--quiet")),
        Display::FullScreen => _ = command.arg("--live"),
        Display::Line => {}
    }
    let message = |error: io::Error| format!("no pseudo-terminal: {error}");
    let (own, stderr) = terminal().map_err(|error| message(error.into()))?;
    let child = command.stdout(Stdio::piped()).stderr(stderr).spawn().map_err(message)?;
    // Its end of the terminal is closed here, so that the reader ends with the process.
    drop(command);
    let reader = thread::spawn(move || {
        let mut written = Vec::new();
        // Linux ends it with EIO.
        let _ = File::from(own).read_to_end(&mut written);
        String::from_utf8_lossy(&written).into_owned()
    });
    let output = child.wait_with_output().map_err(message)?;
    let written = reader.join().map_err(|_| "the reader of the terminal panicked")?;
    let is_shown = written.contains("\x1b[?1049h") == (display == Display::FullScreen) && written.contains("p50 ");
    if output.status.success() && is_shown {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{display:?} ended with {} and showed {written:?}", output.status))
    }
}

/// Both ends of a new terminal.
fn terminal() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&own)?;
    unlockpt(&own)?;
    let name = ptsname(&own, Vec::new())?;
    let other = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    tcsetwinsize(&own, Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((own, other))
}

fn judged(title: &str, display: Display, rounds: &Rounds<Display>) -> Vec<String> {
    let cells = [(p50 as fn(&Reading) -> f64, P50_MARGIN, P50_TOLERANCE), (p99, P99_MARGIN, P99_TOLERANCE)];
    let cells = cells.map(|(figure, margin, tolerance)| {
        let ratio = rounds.ratio(display, Display::Nothing, figure);
        let verdict = ratio.within(margin, rounds.self_ratio(figure).is_quiet(tolerance));
        [format!("{:.3}", ratio.median), ratio.interval(), verdict.word().into()]
    });
    let count = rounds.self_ratio(p50).rounds.to_string();
    let words = if display == Display::Line { "one line" } else { "full screen" };
    [title.to_owned(), words.to_owned()].into_iter().chain(cells.into_iter().flatten()).chain([count]).collect()
}
