//! The watchdog of an agent, against docs/agent-protocol.md: settings of an agent that is killed or stopped are restored.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agent::{Agent, PREAMBLE, framed};
use crate::fake_host::FakeHost;
use crate::harness::{command, contains, wait_until};
use crate::processes::{children, group, is_alive, signal, state};
use crate::settings::three_knobs;

const RT: &str = "proc/sys/kernel/sched_rt_runtime_us";

/// An agent that has set `rt-runtime=-1`, with its watchdog.
struct SettingAgent {
    agent: Agent,
    watchdog: i32,
}

impl SettingAgent {
    /// An agent on `host`, with a run that is armed for `planned_ns` if there is one.
    fn start(host: &FakeHost, planned_ns: Option<i64>) -> SettingAgent {
        let (mut agent, _) = Agent::of(command().envs(host.environment()));
        let setting = json!({"setting": {"knob": "rt-runtime", "value": -1}, "interface": null, "side": null});
        let find = json!({"settings": {"find": {"settings": [setting], "towards": "127.0.0.1"}}});
        let arm = planned_ns.map(|planned_ns| json!({"arm": {"planned_ns": planned_ns}}));
        let requests: Vec<Value> = [Some(find), Some(json!({"settings": "turn"})), arm].into_iter().flatten().collect();
        // In one write, so that no heartbeat is missed in between, however slow the test is.
        let frames: Vec<u8> = requests.iter().flat_map(framed).collect();
        agent.write(&[&PREAMBLE[..], &frames].concat());
        for request in &requests {
            let reply = agent.reply();
            assert!(reply["error"].is_null(), "{request}: {reply}");
        }
        let of_agent = children(agent.pid().as_raw_nonzero().get());
        let [watchdog] = of_agent[..] else { panic!("{of_agent:?}") };
        SettingAgent { agent, watchdog }
    }

    fn pid(&self) -> i32 {
        self.agent.pid().as_raw_nonzero().get()
    }
}

fn is_set(host: &FakeHost) -> bool {
    host.read(RT) == "-1"
}

#[track_caller]
fn is_restored(host: &FakeHost) {
    wait_until("the host was restored", || host.read(RT) == "950000" && host.pages() == 0);
}

#[test]
fn a_killed_agent_leaves_its_host_restored() {
    for planned_ns in [None, Some(3_600_000_000_000)] {
        let host = three_knobs();
        let agent = SettingAgent::start(&host, planned_ns);
        assert!(
            is_set(&host) && group(agent.watchdog) != group(agent.pid()),
            "signals to its group spare the watchdog"
        );
        signal(agent.pid(), Signal::KILL);
        agent.agent.end();
        is_restored(&host);
        wait_until("the watchdog ended", || !is_alive(agent.watchdog));
    }
}

#[test]
fn a_stopped_agent_is_killed_and_leaves_its_host_restored() {
    // With and without an armed run; a run of no length is over 5 s later at the latest.
    for (planned_ns, at_least_ms) in [(None, 1_500), (Some(0), 5_000)] {
        let host = three_knobs();
        let agent = SettingAgent::start(&host, planned_ns);
        let start = Instant::now();
        signal(agent.pid(), Signal::STOP);
        wait_until("it is stopped", || state(agent.pid()).as_deref() == Some("T"));
        assert!(is_set(&host));
        is_restored(&host);
        assert!(start.elapsed() > Duration::from_millis(at_least_ms), "{planned_ns:?}: {:?}", start.elapsed());
        wait_until("the agent ended", || state(agent.pid()).is_none_or(|state| state == "Z"));
        wait_until("the watchdog ended", || state(agent.watchdog).is_none_or(|state| state == "Z"));
        agent.agent.end();
    }
}

#[test]
fn loads_of_a_stopped_agent_end_with_it() {
    let (mut agent, _) = Agent::of(&mut command());
    let load = json!({"kind": "heaters", "workers": 1, "cpus": [], "at": "peer"});
    let start = json!({"loads": {"start": {"loads": [load], "path": null}}});
    agent.write(&[&PREAMBLE[..], &framed(&start)].concat());
    assert!(agent.reply()["error"].is_null());
    let pid = agent.pid().as_raw_nonzero().get();
    wait_until("the load ran", || children(pid).len() == 2);
    let started = children(pid);
    signal(pid, Signal::STOP);
    wait_until("the load and the watchdog ended", || started.iter().all(|one| !is_alive(*one)));
}

#[test]
fn a_healthy_armed_run_keeps_its_settings_and_the_end_restores_them() {
    let host = three_knobs();
    let mut agent = SettingAgent::start(&host, Some(1_000_000_000));
    let start = Instant::now();
    // The agent may be silent for 6 s.
    while start.elapsed() < Duration::from_secs(4) {
        assert!(is_set(&host) && is_alive(agent.watchdog));
        thread::sleep(Duration::from_millis(100));
    }
    agent.agent.hang_up();
    assert_eq!(agent.agent.end().0, 0);
    assert!(host.read(RT) == "950000" && host.pages() == 0 && !is_alive(agent.watchdog));
}

#[test]
fn a_watchdog_of_a_process_that_did_not_start_it_is_refused() {
    let host = three_knobs();
    let agent = SettingAgent::start(&host, Some(3_600_000_000_000));
    let typed = host.latlab("watchdog").arg(agent.pid().to_string());
    typed.stderr(contains("did not start this watchdog")).failure(2);
    assert!(is_set(&host) && is_alive(agent.pid()) && is_alive(agent.watchdog));
}

#[test]
fn a_watchdog_that_cannot_read_its_input_kills_the_process_that_started_it() {
    let host = three_knobs();
    let script = "\"$0\" watchdog $$ < /; true";
    let binary = command().get_program().to_owned();
    // Returns when the watchdog has ended too: it holds the standard output.
    let ended = Command::new("sh").args(["-c", script]).arg(binary).envs(host.environment()).output().expect("sh runs");
    assert_eq!(ended.status.signal(), Some(Signal::KILL.as_raw()));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("cannot watch standard input"), "{ended:?}");
}

#[test]
fn an_agent_whose_watchdog_died_restores_its_host_and_ends() {
    let host = three_knobs();
    let mut agent = SettingAgent::start(&host, Some(3_600_000_000_000));
    signal(agent.watchdog, Signal::KILL);
    wait_until("the watchdog ended", || state(agent.watchdog).is_none_or(|state| state == "Z"));
    assert!(is_set(&host));
    agent.agent.write(&framed(&json!("disarm")));
    let (code, printed) = agent.agent.end();
    assert!(code == 3 && printed.contains("cannot continue without a watchdog"), "{code}: {printed}");
    is_restored(&host);
}
