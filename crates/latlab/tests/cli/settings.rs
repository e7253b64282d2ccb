//! `--set` on a fake host: changes during a run, and restoration after every end of latlab.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::fake_host::FakeHost;
use crate::harness::{BINARY, Latlab, Running, check_schema, contains, empty, lacks, wait_until, warnings_at_most};
use crate::lab::{ip, privileged};
use crate::processes::children;
use crate::skip::programs;
use crate::store::{manifest, only_recording, recordings};

const RT: &str = "proc/sys/kernel/sched_rt_runtime_us";
const GOVERNOR: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
const STATE: &str = "sys/devices/system/cpu/cpu0/cpuidle/state2/disable";
const THREE_SETTINGS: &str = "--set governor=performance --set idle-states=max-us:10 --set rt-runtime=-1";

/// A fake host with three knobs.
pub(crate) fn three_knobs() -> FakeHost {
    let host = FakeHost::with(&[(GOVERNOR, "ondemand\n"), (STATE, "0\n"), (RT, "950000\n")]);
    host.write("sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors", "ondemand performance");
    host.write("sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C2\n");
    host.write("sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "120\n");
    host
}

/// A fake host with `policies` policies of cpufreq, all with the same governors.
pub(crate) fn with_governors(policies: usize, offered: &str, now: &str) -> FakeHost {
    let host = FakeHost::with(&[]);
    for number in 0..policies {
        let policy = format!("sys/devices/system/cpu/cpufreq/policy{number}");
        host.write(&format!("{policy}/scaling_governor"), now);
        host.write(&format!("{policy}/scaling_available_governors"), offered);
    }
    host
}

impl FakeHost {
    /// The governor of policy `number`.
    pub(crate) fn governor(&self, number: usize) -> String {
        self.read(&format!("sys/devices/system/cpu/cpufreq/policy{number}/scaling_governor"))
    }

    pub(crate) fn values(&self) -> [String; 3] {
        [GOVERNOR, STATE, RT].map(|file| self.read(file))
    }

    /// A latlab command line on this host.
    pub(crate) fn latlab(&self, line: &str) -> Latlab {
        Latlab::at(self.directory()).line(line).on(self)
    }

    /// A long run that has set all three knobs and has begun to record.
    fn measuring(&self) -> Running {
        let running = self.latlab(&format!("ping -d 50s --warmup 0 {THREE_SETTINGS}")).start();
        wait_until("everything was set", || self.values() == ["performance", "1", "-1"]);
        wait_until("the run was under way", || !recordings(self.directory()).is_empty());
        running
    }

    /// Expects that all three knobs were set once, and restored in reverse order.
    #[track_caller]
    pub(crate) fn expect_restored(&self) {
        assert_eq!(self.values(), ["ondemand", "0", "950000"]);
        assert_eq!(self.written(), [GOVERNOR, STATE, RT, STATE, GOVERNOR]);
        assert_eq!(self.pages(), 0);
    }
}

/// Each setting in the only recording, and its outcome.
fn outcomes(home: &Path) -> Vec<(String, String)> {
    let manifest = manifest(&only_recording(home));
    let settings = manifest["settings"].as_array().expect("a list").clone();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    settings.iter().map(|one| (word(&one["setting"]), word(&one["ended"]["outcome"]))).collect()
}

#[test]
fn settings_hold_during_a_run_are_recorded_and_restored() {
    let host = three_knobs();
    let ran =
        host.latlab(&format!("ping -n 20 --warmup 0 --json {THREE_SETTINGS}")).stderr(warnings_at_most()).success();
    check_schema(&ran.json(), "summary/1");
    host.expect_restored();
    let settings = ran.json()["condition"]["settings"].to_string();
    assert_eq!(settings, r#"{"governor":"performance","idle-states":"max-us:10","rt-runtime":"-1"}"#);
    let manifest = manifest(&only_recording(host.directory()));
    let first = &manifest["settings"][0];
    let printed = ran.stderr.replace('\n', " ");
    assert!(printed.contains("`LATLAB_HOST_ROOT` is set") && first["root"].as_str() == host.root().to_str(), "{first}");
    let facts = ["at", "before", "set", "read_back", "place"].map(|key| first[key].as_str().expect("a word"));
    assert_eq!(facts, ["local", "ondemand", "performance", "performance", &format!("/{GOVERNOR}")]);
    assert_eq!(manifest["spec"]["settings"].as_array().map(Vec::len), Some(3));
    assert!(outcomes(host.directory()).iter().all(|(_, outcome)| outcome == "restored"));
    let recording = only_recording(host.directory());
    let summary = host.latlab("summary").arg(recording).stdout(contains("governor=performance"));
    summary.stderr(empty()).success();
}

#[test]
fn settings_are_restored_if_the_session_fails() {
    let host = three_knobs();
    // The port does not answer: no session opens.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port();
    host.latlab(&format!("ping 127.0.0.1:{port} -n 5 {THREE_SETTINGS}")).stdout(empty()).failure(3);
    host.expect_restored();
}

#[test]
fn settings_are_restored_after_one_signal_and_after_several() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let host = three_knobs();
        let running = host.measuring();
        running.signal(signal);
        running.exits(code);
        host.expect_restored();
        assert!(outcomes(host.directory()).iter().all(|(_, outcome)| outcome == "restored"));
    }
    let host = three_knobs();
    // The first signal ends the run after the time-out of its probes, the second ends it at once.
    let running = host.measuring();
    running.signal_until_it_ends(Signal::INT);
    running.exits(130);
    assert_eq!((host.values(), host.pages()), (["ondemand", "0", "950000"].map(str::to_owned), 0));
}

#[test]
fn an_ignored_sighup_stays_ignored() {
    let home = tempfile::tempdir().expect("a directory");
    let script = r#"trap '' HUP; exec "$0" ping -d 1s --warmup 0 --no-record -q"#;
    let mut shell = Command::new("sh");
    let mut running = shell
        .args(["-c", script, BINARY])
        .current_dir(home.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("a shell");
    let pid = rustix::process::Pid::from_child(&running);
    let words = || crate::processes::arguments(pid.as_raw_nonzero().get());
    wait_until("latlab took the shell's place", || words().first().is_some_and(|word| word.ends_with("latlab")));
    wait_until("it ended", || {
        let _ = rustix::process::kill_process(pid, Signal::HUP);
        running.try_wait().expect("our own child").is_some()
    });
    assert_eq!(running.wait().expect("our own child").code(), Some(0), "as under nohup(1)");
}

#[test]
fn settings_left_by_sigkill_are_restored_by_the_next_command() {
    // Those with `cmd:false` fail for another reason after they have restored.
    let next_commands = ["doctor --restore", "ping -n 5 --warmup 0", "load --load cpu=1%@peer cmd:false"];
    let serving = format!("serve --bind 127.0.0.1:{}", crate::serve::free_port());
    for next in next_commands.into_iter().chain([serving.as_str()]) {
        let host = three_knobs();
        let running = host.measuring();
        // Settings of a running latlab are not restored.
        host.latlab("doctor --restore").stdout(contains("no settings to restore")).stderr(empty()).success();
        assert_eq!(host.values(), ["performance", "1", "-1"]);
        running.signal(Signal::KILL);
        running.killed_by(Signal::KILL);
        assert_eq!((host.values()[0].as_str(), host.pages()), ("performance", 1));
        let after = host.latlab(next).start();
        if next.starts_with("serve") {
            after.wait_for_stderr("answering");
            after.signal(Signal::TERM);
        }
        let ran = after.exits_with_one_of(if next.ends_with("cmd:false") { &[3] } else { &[0, 1] });
        let printed = if next.ends_with("--restore") { &ran.stdout } else { &ran.stderr };
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains("`governor=performance`") && printed.contains("to `ondemand`"), "{next}: {printed}");
        host.expect_restored();
        host.latlab("list").stderr(empty()).success();
    }
}

#[test]
fn a_setting_that_cannot_be_restored_is_reported_until_it_is_restored() {
    let host = three_knobs();
    let running = host.measuring();
    fs::remove_file(host.path(RT)).expect("a file");
    running.signal(Signal::INT);
    let ran = running.exits(130);
    assert!(ran.stderr.contains("doctor --restore"), "{}\n{}", ran.stdout, ran.stderr);
    let printed = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("cannot restore "), "{printed}");
    assert_eq!(outcomes(host.directory())[2], ("rt-runtime=-1".into(), "failed".into()));
    let ran = host.latlab("doctor --restore --json").stderr(empty()).failure(1);
    check_schema(&ran.json(), "doctor/1");
    assert_eq!(ran.json()["findings"][0]["code"], "setting-not-restored");
    host.latlab("list").stderr(contains("cannot be restored to `950000`")).stderr(contains("hint: ")).success();
    host.write(RT, "-1");
    host.latlab("doctor --restore").stdout(contains("restored")).success();
    assert_eq!(host.values(), ["ondemand", "0", "950000"]);
}

#[test]
fn a_setting_changed_by_others_during_the_run_is_left_and_reported() {
    let host = three_knobs();
    let running = host.measuring();
    host.write(GOVERNOR, "schedutil");
    running.signal(Signal::INT);
    let ran = running.exits(130);
    let printed = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("was changed during the run"), "{printed}");
    assert_eq!(host.values(), ["schedutil", "0", "950000"]);
    assert_eq!(host.pages(), 0);
}

#[test]
fn invalid_settings_change_nothing() {
    let host = three_knobs();
    for (sets, code, printed) in [
        ("--set govenor=performance", 2, "did you mean `governor`?"),
        ("--set busy-poll=50us", 3, "does not have `/proc/sys/net/core/busy_poll`"),
        ("--set rt-runtime=-1 --set busy-poll=50us", 3, "cannot set `busy-poll=50us`"),
        ("--set rt-runtime=-1 --set governor=powersave", 3, "offers `ondemand performance`"),
        ("--set mtu:no-such-dev=1400", 3, "no such device"),
    ] {
        host.latlab(&format!("ping -n 5 {sets}")).stdout(empty()).stderr(contains(printed)).failure(code);
        assert_eq!((host.written().len(), host.pages()), (0, 0), "{sets}");
    }
    assert!(recordings(host.directory()).is_empty());
}

#[test]
fn a_knob_held_by_another_run_is_refused() {
    let host = three_knobs();
    let running = host.measuring();
    let line = "ping -n 5 --warmup 0 --set rt-runtime=1000";
    host.latlab(line).stderr(contains("holds `/proc/sys/kernel/sched_rt_runtime_us`")).failure(3);
    running.signal(Signal::INT);
    running.exits(130);
    host.expect_restored();
    host.latlab(line).stderr(lacks("error")).success();
}

/// Name and timer slack of each thread of `pid`.
fn slacks(pid: i32) -> Vec<(String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    let of = |task: &str| {
        let name = fs::read_to_string(format!("/proc/{pid}/task/{task}/comm")).ok()?;
        let slack = fs::read_to_string(format!("/proc/{task}/timerslack_ns")).ok()?;
        Some((name.trim().to_owned(), slack.trim().to_owned()))
    };
    tasks.filter_map(|task| of(&task.file_name().to_string_lossy())).collect()
}

#[test]
fn timer_slack_is_set_for_the_threads_of_the_named_ends() {
    for (place, here, there) in [("", "4321", true), ("@local", "4321", false), ("@peer", "1", true)] {
        let home = tempfile::tempdir().expect("a directory");
        let line = format!("ping -d 50s --warmup 0 --set timer-slack{place}=4321ns");
        let running = Latlab::at(home.path()).line(&line).environment("LATLAB_STATE_DIR", home.path()).start();
        let pid = running.pid().as_raw_nonzero().get();
        let measuring_thread = || slacks(pid).into_iter().find(|(name, _)| name == "measure");
        wait_until("the sender has it", || measuring_thread().is_some_and(|(_, slack)| slack == here));
        let reflector = format!("/proc/{}/timerslack_ns", children(pid)[0]);
        let has_slack = || fs::read_to_string(&reflector).expect("our own").trim() == "4321";
        wait_until("the reflector has it", || has_slack() == there);
        running.signal(Signal::INT);
        running.exits(130);
        assert!(!home.path().join("journal").exists(), "timer slack is not journalled");
    }
}

#[test]
fn the_slack_of_the_thread_that_sends_is_recorded_and_that_of_threads_that_measure_wake_ups_is_left_alone() {
    let usual =
        fs::read_to_string("/proc/self/timerslack_ns").expect("our own").trim().parse::<i64>().expect("a number");
    for (line, sent, slept) in [
        ("ping -n 5 --warmup 0", Some(1), None),
        ("ping -n 5 --warmup 0 --set timer-slack=4321ns", Some(4_321), None),
        ("ping -n 5 --warmup 0 -i 1ms --with-wakeup 1ms", Some(usual), Some(usual)),
        ("stream -d 50ms --warmup 0", Some(1), None),
        ("wakeup -n 5 --warmup 0", None, Some(usual)),
    ] {
        let home = tempfile::tempdir().expect("a directory");
        let recording = home.path().join("r");
        let line = format!("{line} -o {}", recording.display());
        Latlab::at(home.path()).line(&line).environment("LATLAB_STATE_DIR", home.path()).measured();
        let text = fs::read_to_string(recording.join("manifest.json")).expect("a manifest");
        let run = serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["run"].clone();
        assert_eq!(run["timer_slack_ns"].as_i64(), sent, "{line}");
        assert_eq!(run["wakeup"]["timer_slack_ns"].as_i64(), slept, "{line}");
    }
}

#[test]
fn interface_settings_are_restored_from_another_namespace() {
    if !privileged() || !programs(&["ip"]) {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let lab =
        |line: &str| Latlab::at(home.path()).line(line).environment("LATLAB_STATE_DIR", home.path().join("state"));
    std::thread::scope(|scope| {
        // From here on this thread has a network namespace of its own, which is removed when the thread ends.
        let inside = || {
            latlab_sys::process::enter_fresh_network().expect("root can create a namespace");
            ip("link set lo up");
            ip("link add near type veth peer name far");
            // A tap device is the only virtual device that supports coalescing.
            ip("tuntap add dev tap0 mode tap");
            let socket = latlab_sys::socket::udp(latlab_sys::address::AddressFamily::Ipv4).expect("a socket");
            let now = || {
                let fd = std::os::fd::AsFd::as_fd(&socket);
                let features = latlab_sys::ethtool::features(fd, "near").expect("a veth");
                let requested =
                    |feature: &&latlab_sys::ethtool::Feature| feature.requested && feature.name.starts_with("tx-tcp");
                let tso: Vec<String> = features.iter().filter(requested).map(|feature| feature.name.clone()).collect();
                let rx_frames = latlab_sys::ethtool::coalesce(fd, "tap0").expect("a tap").rx_frames;
                (tso, rx_frames, latlab_sys::ethtool::mtu_bytes(fd, "near").expect("a veth"))
            };
            let before = now();
            assert!(!before.0.is_empty(), "a veth supports TSO");
            let line = "ping -d 50s --warmup 0 --set offload:near=tso:off --set mtu:near=1400 --set coalesce:tap0=rx-frames:16";
            for signal in [Signal::INT, Signal::KILL] {
                let running = lab(line).start();
                wait_until("everything was set", || now() == (Vec::new(), 16, 1_400));
                wait_until("the run was under way", || !children(running.pid().as_raw_nonzero().get()).is_empty());
                running.signal(signal);
                match signal {
                    Signal::KILL => {
                        running.killed_by(signal);
                        let restore = || lab("doctor --restore").stdout(contains("mtu:near=1400")).success();
                        let outside = || {
                            latlab_sys::process::enter_fresh_network().expect("root can create a namespace");
                            restore();
                        };
                        std::thread::scope(|scope| scope.spawn(outside).join().expect("no panic"));
                    }
                    _ => drop(running.exits_with_one_of(&[130, 3])),
                }
                assert_eq!(now(), before, "each feature as it was, after {signal:?}");
            }
        };
        scope.spawn(inside).join().expect("no panic");
    });
}

#[test]
fn settings_apply_to_the_interfaces_of_lab() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let lab =
        |line: &str| Latlab::at(home.path()).line(line).environment("LATLAB_STATE_DIR", home.path().join("state"));
    let line = "ping lab -n 20 --warmup 0 --json --set offload=tx-checksum:off,gro:off --set mtu=1400";
    let ran = lab(line).stderr(warnings_at_most()).success();
    check_schema(&ran.json(), "summary/1");
    let manifest = manifest(&only_recording(home.path()));
    let conditions = &manifest["run"]["conditions"];
    for end in ["sender", "reflector"] {
        assert_eq!(conditions[format!("lab.{end}.offload.tx-checksum")], "off", "{conditions}");
    }
    assert_eq!(conditions["path.unfragmented-bytes"], "1372", "{conditions}");
    assert!(outcomes(home.path()).iter().all(|(_, outcome)| outcome == "restored"), "{:#}", manifest["settings"]);
    assert_eq!(outcomes(home.path()).len(), 6, "three knobs at two ends");
    assert!(!home.path().join("state/journal").exists(), "private namespaces are not journalled");

    lab("ping lab -n 5 --set coalesce=rx-usecs:0").stderr(contains("`lab0 coalesce`")).failure(3);
    lab("ping lab -n 5 --set mtu@peer=1300 --set mtu@local=70000").stderr(contains("EINVAL")).failure(3);
}
