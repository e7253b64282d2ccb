//! `--live`: the full-screen view on a terminal, which is left as it was however the command ends.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::harness::{Latlab, command, contains, lacks, wait_until};
use crate::processes::below;
use crate::progress::terminal;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A command whose stderr is a terminal of 100 columns.
struct OnTerminal {
    child: Child,
    written: Receiver<Vec<u8>>,
    text: String,
    _home: tempfile::TempDir,
}

impl OnTerminal {
    fn start(line: &str) -> OnTerminal {
        OnTerminal::run(&line.split_whitespace().collect::<Vec<_>>())
    }

    fn run(words: &[&str]) -> OnTerminal {
        let home = tempfile::tempdir().expect("a temporary directory");
        let (own, stderr) = terminal(100);
        let mut command = command();
        command.args(words).current_dir(home.path()).stdout(Stdio::null()).stderr(stderr);
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        let child = command.spawn().expect("the binary was built by the test run");
        // Its end of the terminal is closed here, so that the reader ends with the process.
        drop(command);
        let (sender, written) = channel();
        thread::spawn(move || {
            let (mut own, mut bytes) = (File::from(own), [0; 1 << 16]);
            // Linux ends it with EIO.
            while let Ok(count) = own.read(&mut bytes) {
                if count == 0 || sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        OnTerminal { child, written, text: String::new(), _home: home }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("our own child");
    }

    /// Waits until what was written in all holds `part` so many times.
    fn wait_for(&mut self, part: &str, times: usize) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.text.matches(part).count() < times {
            assert!(Instant::now() < end, "`{part}` is not {times} times in {:?}", self.text);
            match self.written.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without `{part}`: {:?}", self.text),
            }
        }
    }

    /// All that was written, and the exit code.
    fn ends(mut self) -> (String, Option<i32>) {
        let code = self.child.wait().expect("our own child").code();
        self.written.iter().for_each(|bytes| self.text += &String::from_utf8_lossy(&bytes));
        (self.text, code)
    }
}

/// What `written` leaves on the usual screen: everything but what is drawn on the alternate one.
fn usual_screen(written: &str) -> String {
    let mut parts = written.split(ENTER);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (drawn, behind) = part.split_once(LEAVE).unwrap_or_else(|| panic!("never left: {part:?}"));
        assert!(!drawn.contains("\x1b[?") && drawn.contains("\x1b[H"), "{drawn:?}");
        text + behind
    })
}

#[test]
fn the_view_shows_the_run_and_is_gone_behind_it() {
    for (line, parts) in [
        ("ping -d 3s -i 2ms --no-record --live", &["round trip delay, the last minute", "p50 ", "answered "][..]),
        ("wakeup -d 3s -i 2ms --no-record --live --load cpu=10%", &["wake-up latency", "loads    cpu=10%"]),
        ("stream -d 3s --rate 1Mbit/s --no-record --live", &["delivered ", "Mbit/s"]),
    ] {
        let (written, code) = OnTerminal::start(line).ends();
        assert!(matches!(code, Some(0 | 4)), "{line}: {code:?} {written}");
        for part in parts.iter().chain(&["measuring for ", "CPU busy", "this view: "]) {
            assert!(written.contains(part), "{line}: `{part}` is not in {written:?}");
        }
        assert!(!usual_screen(&written).contains("this view"), "{line}: {written:?}");
        assert!(
            !usual_screen(&written).contains("\x1b[?") && !usual_screen(&written).contains("\x1b[H"),
            "{written:?}"
        );
    }
}

#[test]
fn the_screen_is_left_after_signals_too() {
    let mut once = OnTerminal::start("ping -d 60s -i 5ms --no-record --live");
    once.wait_for("measuring for ", 1);
    once.signal(Signal::INT);
    let (written, code) = once.ends();
    assert_eq!((written.matches(ENTER).count(), written.matches(LEAVE).count(), code), (1, 1, Some(130)));
    usual_screen(&written);

    // Closed by a stop of its reflector, the second signal does not wait.
    let mut twice = OnTerminal::start("ping 127.0.0.1:9 --protocol echo -d 60s -i 5ms --no-record --live");
    twice.wait_for("this view: ", 1);
    while twice.child.try_wait().expect("our own child").is_none() {
        let _ = kill_process(twice.pid(), Signal::TERM);
        thread::sleep(Duration::from_millis(50));
    }
    let (written, code) = twice.ends();
    assert_eq!((written.matches(ENTER).count(), written.matches(LEAVE).count(), code), (1, 1, Some(143)));
    usual_screen(&written);
}

#[test]
fn a_stopped_process_is_on_the_usual_screen() {
    let mut stopped = OnTerminal::start("ping -d 60s -i 5ms --no-record --live");
    stopped.wait_for("measuring for ", 1);
    stopped.signal(Signal::TSTP);
    let status = waitpid(Some(stopped.pid()), WaitOptions::UNTRACED).expect("our own child").expect("its state");
    assert!(status.1.stopped(), "{status:?}");
    stopped.wait_for(LEAVE, 1);
    usual_screen(&stopped.text);
    stopped.signal(Signal::CONT);
    stopped.wait_for(ENTER, 2);
    stopped.wait_for("measuring for ", 2);
    stopped.signal(Signal::INT);
    let (written, code) = stopped.ends();
    assert_eq!((written.matches(LEAVE).count(), code), (2, Some(130)));
    usual_screen(&written);
}

/// An agent that does not greet, as one behind an `ssh` that asks for a password.
#[test]
fn until_the_session_is_open_the_screen_is_the_usual_one_and_ctrl_z_stops() {
    let opening = OnTerminal::run(&["ping", "cmd:sleep 40", "--peer-addr", "127.0.0.1", "-n", "5", "--live"]);
    let pid = opening.pid().as_raw_nonzero().get();
    wait_until("the command ran", || below(pid, &["sleep"]).is_some());
    // Longer than between two drawings.
    thread::sleep(Duration::from_secs(1));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("our own child");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("signals with a handler");
    let caught = u64::from_str_radix(caught.trim(), 16).expect("a mask");
    let has_handler = |signal: Signal| caught & (1 << (signal.as_raw() - 1)) != 0;
    assert!(has_handler(Signal::INT) && !has_handler(Signal::TSTP), "{status}");
    opening.signal(Signal::INT);
    let (written, code) = opening.ends();
    assert_eq!(code, Some(130), "{written}");
    assert!(!written.contains("\x1b[?"), "{written:?}");
}

#[test]
fn without_a_terminal_nothing_is_drawn() {
    let run = |line: &str| Latlab::new().line(line);
    let note = "`--live` needs a terminal";
    run("ping -n 20 --no-record --live").stderr(contains(note)).stderr(lacks("\x1b")).measured();
}
