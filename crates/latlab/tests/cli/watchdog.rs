//! The watchdog of an agent, against docs/agent-protocol.md: settings of an agent that is killed are restored.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agent::{Agent, PREAMBLE, framed};
use crate::fake_host::FakeHost;
use crate::harness::{command, contains, wait_until};
use crate::processes::{children, group, is_alive, signal};
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
fn a_watchdog_of_a_process_that_did_not_start_it_is_refused() {
    let host = three_knobs();
    let agent = SettingAgent::start(&host, Some(3_600_000_000_000));
    let typed = host.latlab("watchdog").arg(agent.pid().to_string());
    typed.stderr(contains("did not start this watchdog")).failure(2);
    assert!(is_set(&host) && is_alive(agent.pid()) && is_alive(agent.watchdog));
}
