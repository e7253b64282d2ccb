//! Armed threads make no system call but send, receive, clock and the chosen wait: both processes run under strace.

#[allow(dead_code, reason = "no test here has precedence")]
mod scheduling;
mod skip;
#[path = "strace/trace.rs"]
mod trace;

use std::collections::BTreeSet;
use std::process::Command;

use trace::{Call, Trace, between};

/// The length of probes and answers, which no other message has.
const SIZE_BYTES: i64 = 777;
/// Calls of both ends; the clock only if the vDSO has none.
const ALWAYS: [&str; 3] = ["sendto", "recvfrom", "clock_gettime"];

/// Whether processes can be traced here; if not, the test is skipped.
fn can_trace() -> bool {
    let Some(strace) = skip::program("strace") else { return false };
    let traced = Command::new(strace).args(["-f", "-o", "/dev/null", "true"]).output().expect("it is there");
    if !traced.status.success() {
        skip::skip(format_args!("cannot trace: {}", String::from_utf8_lossy(&traced.stderr).trim()));
    }
    traced.status.success()
}

/// Runs `latlab` with `arguments` under strace in a directory with a pre-shared key in the file `key`. Its calls and its
/// stdout.
fn traced(arguments: &str) -> (Trace, String) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("trace");
    let keygen = Command::new(env!("CARGO_BIN_EXE_latlab")).args(["keygen", "key"]).current_dir(folder.path()).output();
    assert!(keygen.expect("the binary was built").status.success(), "no key");
    let output = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&file)
        .arg(env!("CARGO_BIN_EXE_latlab"))
        .args(arguments.split_whitespace())
        .current_dir(folder.path())
        .output()
        .expect("strace starts");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    // On a busy host probes of a schedule may leave late.
    let is_late = output.status.code() == Some(4) && scheduling::only_late(&stdout, &stderr);
    assert!(output.status.success() || is_late, "{}: {stdout}{stderr}", output.status);
    (Trace::parse(&std::fs::read_to_string(&file).expect("a trace")), stdout)
}

/// The calls of the measuring thread from its first probe to its last answer. Another thread opens the session, so that it
/// sends and receives nothing else.
fn armed_sender(trace: &Trace) -> &[Call] {
    let measuring = trace.thread_that(|call| call.name == "prctl" && call.text.contains("PR_SET_NAME, \"measure\""));
    between(measuring, |call| call.sends() || call.receives())
}

/// The calls of the reflecting thread from its first answer to its last.
fn armed_reflector(trace: &Trace) -> &[Call] {
    let reflecting = trace.thread_that(|call| call.name == "execve" && call.text.contains("\"reflector\"]"));
    between(reflecting, |call| call.sends() && call.returned() == Some(SIZE_BYTES))
}

fn names(calls: &[Call]) -> BTreeSet<&str> {
    calls.iter().map(|call| call.name.as_str()).collect()
}

/// Expects that `calls` send `probes` datagrams, receive `answers`, and are otherwise only reads of the clock and `waits`,
/// which all occur.
fn assert_armed(calls: &[Call], probes: usize, answers: usize, waits: &[&'static str], what: &str) {
    let allowed: BTreeSet<_> = ALWAYS.iter().chain(waits).copied().collect();
    let made = names(calls);
    assert!(made.is_subset(&allowed), "{what}: {:?}", made.difference(&allowed).collect::<Vec<_>>());
    assert!(waits.iter().all(|wait| made.contains(wait)), "{what}: {made:?}");
    assert_eq!(calls.iter().filter(|call| call.sends()).count(), probes, "{what}: send calls");
    let received = calls.iter().filter(|call| call.receives() && call.returned() == Some(SIZE_BYTES)).count();
    assert_eq!(received, answers, "{what}: receive calls with an answer");
    let empty: Vec<_> = calls.iter().filter(|call| call.receives() && call.returned() != Some(SIZE_BYTES)).collect();
    assert!(empty.iter().all(|call| call.text.contains("EAGAIN")), "{what}: {empty:?}");
}

/// Expects that every receive call may sleep, or none.
fn assert_sleeps(calls: &[Call], sleeps: bool, what: &str) {
    let mut receives = calls.iter().filter(|call| call.receives());
    assert!(receives.all(|call| call.text.contains("MSG_DONTWAIT") != sleeps), "{what}");
}

/// The number of probes that a run sent, from its summary. Expects all of `probes`, but those that the summary counts as not
/// sent: on a busy host a schedule gives up late ones. At least half were sent.
fn sent(summary: &str, probes: usize) -> usize {
    let summary: serde_json::Value = serde_json::from_str(summary).expect("a summary");
    let [sent, not_sent] = ["sent", "not_sent"].map(|key| summary[key].as_u64().expect("a count") as usize);
    assert!(sent + not_sent == probes && sent >= probes / 2, "{sent} and {not_sent} of {probes}");
    sent
}

/// Traces both ends for `probes` probes. `waits`: what the sender calls to wait; `sleeps`: whether it sleeps in
/// its receive call, and the reflector in its own.
fn check(probes: usize, options: &str, waits: &[&'static str], sleeps: (bool, bool)) {
    if !can_trace() {
        return;
    }
    // Over a connection two bytes of length precede each message.
    let size_bytes = if options.contains("tcp") { SIZE_BYTES - 2 } else { SIZE_BYTES };
    let (trace, summary) = traced(&format!(
        "ping local --warmup 0 --timeout 20s -d 60s --no-record --json -n {probes} -s {size_bytes} {options}"
    ));
    let sender = armed_sender(&trace);
    let sent = sent(&summary, probes);
    assert!(options.contains("-i ") || sent == probes, "a closed loop sent {sent} of {probes}");
    assert_armed(sender, sent, sent, waits, "sender");
    assert_sleeps(sender, sleeps.0, "sender");
    let reflector = armed_reflector(&trace);
    // The calls begin with the first answer, after the first probe was received.
    assert_armed(reflector, sent, sent - 1, &[], "reflector");
    assert_sleeps(reflector, sleeps.1, "reflector");
}

#[test]
fn a_closed_loop_that_blocks_sends_and_receives_once_per_round_trip() {
    // A sleeping receive call returns with an answer or at its time-out: one with an answer for each probe.
    check(2_000, "--wait block", &[], (true, true));
}

#[test]
fn a_closed_loop_that_spins_only_sends_and_receives() {
    check(500, "--wait spin", &[], (false, false));
}

#[test]
fn a_schedule_that_blocks_sleeps_in_ppoll() {
    check(500, "-i 2ms --wait block", &["ppoll"], (false, true));
}

#[test]
fn a_schedule_that_spins_only_sends_and_receives() {
    check(500, "-i 2ms --wait spin", &[], (false, false));
}

#[test]
fn concurrent_wakeups_cost_the_sender_no_system_call() {
    check(500, "--wait block --with-wakeup 2ms", &[], (true, true));
    check(500, "-i 2ms --wait block --with-wakeup 2ms", &["ppoll"], (false, true));
}

/// The error queue counts as receive.
#[test]
fn with_stamps_both_ends_only_send_and_receive() {
    if !can_trace() {
        return;
    }
    for (options, waits) in [("--wait block", &[][..]), ("--wait spin", &[]), ("-i 2ms", &["ppoll"])] {
        let options = format!("{options} -n 300 --timeout 20s -s {SIZE_BYTES} --stamps kernel");
        let (trace, summary) = traced(&format!("ping local --warmup 0 --no-record --json {options}"));
        let allowed: BTreeSet<_> = ALWAYS.iter().chain(waits).chain(&["recvmsg"]).copied().collect();
        for calls in [armed_sender(&trace), armed_reflector(&trace)] {
            let made = names(calls);
            assert!(made.is_subset(&allowed), "{options}: {:?}", made.difference(&allowed).collect::<Vec<_>>());
        }
        let probes = armed_sender(&trace).iter().filter(|call| call.sends()).count();
        assert_eq!(probes, sent(&summary, 300), "{options}");
    }
}

#[test]
fn a_key_costs_no_system_call() {
    check(500, "--wait block --psk-file key", &[], (true, true));
    check(500, "-i 2ms --wait spin --psk-file key", &[], (false, false));
}

#[test]
fn over_tcp_a_closed_loop_makes_the_calls_that_it_makes_over_udp() {
    check(1_000, "--transport tcp --wait block", &[], (true, true));
    check(500, "--transport tcp --wait block --psk-file key", &[], (true, true));
    check(500, "--transport tcp --wait spin", &[], (false, false));
}

#[test]
fn over_tcp_a_schedule_makes_no_other_call() {
    if !can_trace() {
        return;
    }
    for (wait, waits) in [("block", &["ppoll"][..]), ("spin", &[])] {
        let options = format!("-i 2ms -n 500 --timeout 20s -s {} --transport tcp --wait {wait}", SIZE_BYTES - 2);
        let (trace, summary) = traced(&format!("ping local --warmup 0 --no-record --json {options}"));
        let allowed: BTreeSet<_> = ALWAYS.iter().chain(waits).copied().collect();
        // If an end is late, one call may receive several messages, so that receive calls are not counted.
        for calls in [armed_sender(&trace), armed_reflector(&trace)] {
            let made = names(calls);
            assert!(made.is_subset(&allowed), "{wait}: {:?}", made.difference(&allowed).collect::<Vec<_>>());
        }
        assert_eq!(armed_sender(&trace).iter().filter(|call| call.sends()).count(), sent(&summary, 500), "{wait}");
    }
}

/// Traces `latlab` with `arguments` and returns what its sleeping thread called from the first `wait` to the last.
fn slept(arguments: &str, wait: &str) -> Vec<String> {
    let (trace, _) = traced(arguments);
    let thread = trace.thread_that(|call| call.name == "prctl" && call.text.contains("PR_SET_NAME, \"sleep\""));
    // Before its first slot the thread waits for the start, at another futex.
    let futex = |call: &Call| call.text.split(',').next().map(str::to_owned);
    let slot = thread.iter().rfind(|call| call.name == wait).expect("a wait");
    let armed = between(thread, |call| call.name == wait && (wait != "futex" || futex(call) == futex(slot)));
    armed.iter().map(|call| call.name.clone()).collect()
}

#[test]
fn each_way_of_sleeping_makes_its_own_system_call_and_no_other() {
    if !can_trace() {
        return;
    }
    for (via, wait, other) in [
        ("clock_nanosleep", "clock_nanosleep", None),
        ("nanosleep", "clock_nanosleep", None),
        ("select", "pselect6", None),
        ("poll", "poll", None),
        ("futex", "futex", None),
        ("epoll", "epoll_wait", None),
        ("timerfd", "timerfd_settime", Some("read")),
        ("signal", "timer_settime", Some("rt_sigtimedwait")),
    ] {
        let calls = slept(&format!("wakeup --warmup 0 -i 2ms -n 100 --no-record --via {via}"), wait);
        let others: Vec<_> = calls
            .iter()
            .filter(|call| *call != wait && Some(call.as_str()) != other && *call != "clock_gettime")
            .collect();
        assert!(others.is_empty(), "{via}: {others:?}");
        // On a busy host slots are overrun.
        let waits = calls.iter().filter(|call| *call == wait).count();
        assert!((50..=100).contains(&waits), "{via}: {waits}");
    }
}

#[test]
fn a_wake_up_by_spinning_makes_no_system_call() {
    if !can_trace() {
        return;
    }
    let calls = |wakeups: u32| {
        let (trace, _) = traced(&format!("wakeup --warmup 0 -i 2ms -n {wakeups} --no-record --via spin"));
        let thread = trace.thread_that(|call| call.name == "prctl" && call.text.contains("PR_SET_NAME, \"sleep\""));
        thread.iter().map(|call| call.name.clone()).filter(|name| name != "clock_gettime").collect::<Vec<_>>()
    };
    // At its start and its end the thread may wait for another once more or less.
    let (few, many) = (calls(100), calls(300));
    assert!(many.len() <= few.len() + 5, "{few:?}\n{many:?}");
}

/// The length of a POLL, which no packet of these streams has.
const POLL_BYTES: i64 = 160;

struct Streamed {
    /// The calls of the sending thread from the first packet to the last.
    sender: Vec<String>,
    /// The names of the calls of the receiving thread from the first packet to the last.
    receiver: BTreeSet<String>,
    packets: u64,
}

/// Traces `latlab stream local --mode MODE`, which sends packets with the call `send`.
fn streamed(mode: &str, send: &str) -> Streamed {
    let (trace, said) = traced(&format!("stream local --warmup 0 -d 400ms -s 777 --no-record --json --mode {mode}"));
    let document: serde_json::Value = serde_json::from_str(&said).expect("a summary");
    let sending = trace.thread_that(|call| call.name == "prctl" && call.text.contains("PR_SET_NAME, \"flow\""));
    let armed = between(sending, |call| call.name == send && call.returned() != Some(POLL_BYTES));
    let receiving = trace.thread_that(|call| call.name == "execve" && call.text.contains("\"reflector\"]"));
    let counting = between(receiving, |call| call.name == "recvmmsg" && call.returned().is_some_and(|came| came > 0));
    Streamed {
        sender: armed.iter().map(|call| call.name.clone()).collect(),
        receiver: counting.iter().map(|call| call.name.clone()).collect(),
        packets: document["sent"].as_u64().expect("packets"),
    }
}

#[test]
fn a_stream_only_sends_receives_and_reads_clocks() {
    if !can_trace() {
        return;
    }
    // The mode, its call, and the packets that one call takes.
    for (mode, send, per_call) in [("send", "sendto", 1), ("sendmmsg", "sendmmsg", 64), ("gso", "sendmsg", 64)] {
        let Streamed { sender: calls, receiver, packets } = streamed(mode, send);
        let allowed = BTreeSet::from([send, "sendto", "recvfrom", "ppoll", "clock_gettime"]);
        let made: BTreeSet<&str> = calls.iter().map(String::as_str).collect();
        assert!(made.is_subset(&allowed), "{mode}: {:?}", made.difference(&allowed).collect::<Vec<_>>());
        let of = |name: &str| calls.iter().filter(|call| *call == name).count() as u64;
        // Besides full calls there are POLLs and the rest of the last burst.
        assert!(packets >= 64 && of(send) <= packets / per_call + 40, "{mode}: {} calls for {packets}", of(send));
        // One receive call every 250 µs, not one for each packet, and those after the last packet.
        assert!(of("recvfrom") <= 4_000, "{mode}: {} receive calls", of("recvfrom"));
        // The drops of the socket are read for each TALLY.
        let allowed = ["recvmmsg", "clock_nanosleep", "getsockopt", "sendto", "clock_gettime"];
        assert!(receiver.iter().all(|call| allowed.contains(&call.as_str())), "{mode}: {receiver:?}");
    }
}

/// Packets are received from memory, without a call.
#[test]
fn past_the_network_stack_both_ends_only_send_and_wait() {
    if !can_trace() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip::skip("namespaces need root");
    }
    let sends = |call: &Call| call.name == "sendto" && call.text.contains(", 0, MSG_DONTWAIT");
    // The kernel takes up to 32 packets of a batch by one call.
    for (mode, per_call) in [("send", 1), ("batch", 16)] {
        let line = format!("stream lab --transport xdp --warmup 0 -d 200ms --no-record --json --mode {mode}");
        let (trace, said) = traced(&line);
        let document: serde_json::Value = serde_json::from_str(&said).expect("a summary");
        let packets = document["sent"].as_u64().expect("packets");
        let sending = trace.thread_that(|call| call.name == "prctl" && call.text.contains("PR_SET_NAME, \"flow\""));
        let reflecting = trace.thread_that(|call| call.name == "execve" && call.text.contains("\"reflector\"]"));
        for (thread, least, most) in [(sending, packets / 32, packets / per_call + 60), (reflecting, 1, 60)] {
            // A sender sets its timer slack after the set-up.
            let calls = between(thread, sends).rsplit(|call| call.name == "prctl").next().expect("a part");
            let allowed = ["sendto", "clock_gettime", "getsockopt", "ppoll", "clock_nanosleep"].into();
            let made = names(calls);
            assert!(made.is_subset(&allowed), "{mode}: {:?}", made.difference(&allowed).collect::<Vec<_>>());
            let sent = calls.iter().filter(|call| sends(call)).count() as u64;
            // Besides packets there are POLLs and their answers, and the end.
            assert!(packets > 100, "{mode}: {packets}");
            assert!((least..=most).contains(&sent), "{mode}: {sent} calls for {packets} packets");
        }
    }
    for (wait, waits) in [("spin", &[][..]), ("block", &["ppoll"][..])] {
        let line = format!("ping lab --transport xdp -n 40 --warmup 10 --wait {wait} --timeout 9s --json");
        let (trace, _) = traced(&line);
        let measuring =
            trace.thread_that(|call| call.name == "prctl" && call.text.contains("PR_SET_NAME, \"measure\""));
        let reflecting = trace.thread_that(|call| call.name == "execve" && call.text.contains("\"reflector\"]"));
        for (thread, least) in [(measuring, 50), (reflecting, 50)] {
            let calls = between(thread, sends);
            // After a million calls without a packet, and after a wait without a packet, the socket is asked for an error.
            let usual = ["sendto", "clock_gettime", "getsockopt"].into_iter();
            let allowed: BTreeSet<_> = usual.chain(waits.iter().copied()).collect();
            let made = names(calls);
            assert!(made.is_subset(&allowed), "{wait}: {:?}", made.difference(&allowed).collect::<Vec<_>>());
            let sent = calls.iter().filter(|call| sends(call)).count();
            assert!(sent >= least, "{wait}: {sent} of {least} send calls");
        }
    }
}
