//! What a person sees while a run goes on: the progress line at every width of a terminal, and that nothing answers.

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::experiment::{directory_with, journal, only, runs};
use crate::harness::{Latlab, Running, command, contains, lacks};
use crate::scheduling::precedence;
use crate::store::{manifest, recordings};

/// A UDP socket that receives probes and answers none, and its address.
fn silent() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("bound").to_string();
    (socket, address)
}

/// Both ends of a new terminal of so many columns: the one of the test, and the one of a process.
pub(crate) fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&own).expect("our own terminal");
    unlockpt(&own).expect("our own terminal");
    let name = ptsname(&own, Vec::new()).expect("it has a name");
    let other = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).expect("opens");
    tcsetwinsize(&own, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
    (own, other)
}

/// What `line` writes to its stderr, which is a terminal of so many columns, and its exit code.
fn on_terminal(directory: &Path, line: &str, columns: u16) -> (String, Option<i32>) {
    let (own, stderr) = terminal(columns);
    let mut command = command();
    command.args(line.split_whitespace()).current_dir(directory).stdout(std::process::Stdio::null()).stderr(stderr);
    let mut child = command.spawn().expect("the binary was built by the test run");
    // Its end of the terminal is closed here, so that the read below ends with the process.
    drop(command);
    let mut written = Vec::new();
    // Linux ends it with EIO.
    let _ = File::from(own).read_to_end(&mut written);
    let ended = child.wait().expect("our own child");
    (String::from_utf8(written).expect("latlab writes UTF-8"), ended.code())
}

#[test]
fn the_progress_line_shows_counts_and_is_never_wider_than_the_terminal() {
    let _precedence = precedence();
    let home = tempfile::tempdir().expect("a temporary directory");
    let every = thread::scope(|scope| {
        let runs = [40, 140].into_iter().flat_map(|columns| {
            [
                ("ping -d 2s -i 5ms --no-record --tag note=long", &["sent ", " · lost 0"][..]),
                ("wakeup -d 2s -i 5ms --no-record", &[" wake-ups"][..]),
                ("stream -d 2500ms --rate 1Mbit/s --no-record", &["sent ", "bit/s · lost 0 %"][..]),
            ]
            .map(|(line, counts)| (line, counts, columns))
        });
        let begin = |(line, counts, columns)| {
            let home = home.path();
            (line, counts, columns, scope.spawn(move || on_terminal(home, line, columns)))
        };
        let begun: Vec<_> = runs.map(begin).collect();
        let join = |(line, counts, columns, ran): (_, _, _, thread::ScopedJoinHandle<'_, _>)| {
            (line, counts, columns, ran.join().expect("it does not panic"))
        };
        begun.into_iter().map(join).collect::<Vec<_>>()
    });
    for (line, counts, columns, (written, code)) in every {
        assert!(matches!(code, Some(0 | 4)), "{line}: {code:?} {written}");
        let drawn: Vec<&str> = written.split(['\r', '\n']).collect();
        let widest = drawn.iter().map(|drawn| drawn.chars().count()).max();
        let is_progress = |drawn: &&&str| counts.iter().all(|count| drawn.contains(count));
        assert!(drawn.iter().filter(is_progress).count() > 1, "{line} on {columns} columns: {drawn:#?}");
        assert!(widest < Some(usize::from(columns)), "{line} on {columns} columns: {drawn:#?}");
        // Gone at the end: the last thing written before the messages are spaces.
        let is_erased = drawn.iter().any(|drawn| !drawn.is_empty() && drawn.chars().all(|char| char == ' '));
        assert!(is_erased && !written.contains('\x1b'), "{line}: {written:?}");
    }
}

#[test]
fn progress_is_shown_on_a_terminal_only_and_not_when_quiet() {
    Latlab::new().line("ping -d 1s -i 10ms --warmup 0").stderr(lacks("sent ")).stderr(lacks("\r")).measured();
    let home = tempfile::tempdir().expect("a temporary directory");
    let (written, _) = on_terminal(home.path(), "ping -q -d 1s -i 10ms --warmup 0", 80);
    assert!(!written.contains("sent "), "{written:?}");
}

/// A ping of a minute to `address`, which runs in a temporary directory.
fn ping_a_minute(address: &str, options: &str) -> Running {
    let line = format!("ping {address} --protocol echo -d 60s {options}");
    Latlab::new().line(&line).deadline(Duration::from_secs(50)).start()
}

/// Each run ends by itself after its first 10 s; they run at the same time.
#[test]
fn a_run_without_an_answer_says_so_and_ends_early() {
    let (_silent, address) = silent();
    let port = address.rsplit_once(':').expect("ADDR:PORT").1;
    let file = format!(
        "kind = \"ping\"\ntarget = \"127.0.0.1:{port}\"\n[base]\nprotocol = \"echo\"\nduration = \"60s\"\n\
         warmup = \"0\"\n[design]\nruns = 1\nsettle = \"0s\"\n"
    );
    let (directory, begin) = (directory_with(&file), Instant::now());
    let experiment = Latlab::at(directory.path()).line("run x.toml").deadline(Duration::from_secs(50)).start();
    let closed = format!("127.0.0.1:{}", crate::serve::free_port());
    let pings = [(&address, ""), (&address, "-i 20ms"), (&address, "-s 64,128"), (&closed, "")];
    let pings = pings.map(|(to, options)| (to, options, ping_a_minute(to, options)));
    for (to, options, running) in pings {
        running.wait_for_stderr(&format!("warning: no answer from `{to}` in the first "));
        let ran = running.exits(3);
        assert!(begin.elapsed() >= Duration::from_secs(10), "{options}: it ended after {:?}", begin.elapsed());
        for words in [format!("error: no probe was answered by `{to}`"), "\n  cause: ".into(), "\n  hint: ".into()] {
            assert!(ran.stderr.contains(&words), "{options}: {words} is not in\n{}", ran.stderr);
        }
        assert_eq!(ran.stderr.matches("warning: no answer from").count(), 1, "{options}: said once\n{}", ran.stderr);
        assert!(ran.stderr.contains("the run ends after about 10 s"), "{options}: {}", ran.stderr);
        let tried = format!("probes were sent to {to} over udp in ");
        assert!(*to == closed || ran.stderr.contains(&tried), "{options}: {}", ran.stderr);
        for recording in recordings(ran.directory()) {
            let manifest = manifest(&recording);
            let reason = manifest["reason"].as_str().unwrap_or_default();
            assert!(manifest["ending"] == "completed" && reason.contains("was answered in the first "), "{manifest:#}");
        }
    }
    let ran = experiment.exits(3);
    let warned = format!("warning: no answer from `127.0.0.1:{port}` in the first ");
    assert_eq!(ran.stderr.matches(&warned).count(), 1, "said once\n{}", ran.stderr);
    let ended = runs(&journal(&only(directory.path())));
    let [(_, Some(ended))] = &ended[..] else { panic!("one run: {ended:?}") };
    assert!(ended["reason"].as_str().is_some_and(|why| why.contains("no probe was answered")), "{ended}");
    assert!(begin.elapsed() < Duration::from_secs(45), "the runs take a minute if they go on");
    // The run is complete: it is judged, with a loss ratio of 1.
    let reported = Latlab::at(directory.path()).arg("run").arg(only(directory.path()));
    reported.stderr(contains("1 run without an answer, judged as lost")).failure(3);
    let recording = fs::read_dir(only(directory.path()).join("runs")).expect("runs").next().expect("one").expect("one");
    let summary = Latlab::at(directory.path()).arg("summary").arg(recording.path()).arg("--json").success().json();
    assert_eq!((&summary["ratios"]["loss_ratio"], &summary["answered"]), (&1.0.into(), &0.into()), "{summary:#}");
}
