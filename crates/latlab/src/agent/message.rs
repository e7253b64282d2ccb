//! What the two ends say in their frames (docs/agent-protocol.md).

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::error::RequestFailure;
use super::far_loads::{LoadsRequest, LoadsStatus};
use super::far_settings::SettingsRequest;
use super::frame;
use crate::facts::{ClockAnchor, HostFacts, HostSample, SettingFacts};
use crate::plan::{EndSpec, TransportKind};
use crate::units::Nanos;

/// What this end asks of an agent. A new request is a variant here, a row in the document, and a handler in
/// [`super::RequestHandler`]. No `Debug`: a key must not reach a log.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// This end lives. The only one without a reply.
    Heartbeat,
    /// Answer probes.
    StartReflector {
        /// On a free port of this address alone.
        bind: IpAddr,
        /// How its thread runs.
        end: EndSpec,
        /// The line of the session key; an agent refuses to go without.
        key: Option<String>,
        /// So many sessions, each run has one.
        sessions: u16,
        /// Bits a second that a down-stream may have; 0 and not written without one.
        #[serde(default, skip_serializing_if = "is_none_at_all")]
        down_bps: u64,
        /// How probes come; UDP is left out.
        #[serde(default, skip_serializing_if = "TransportKind::is_default")]
        transport: TransportKind,
    },
    /// What shall be set on the far host.
    Settings(SettingsRequest),
    /// Which loads shall be made there.
    Loads(LoadsRequest),
    /// A run begins: silence until [`Request::Disarm`].
    Arm {
        /// How long it takes at most.
        planned_ns: Nanos,
    },
    /// The run is over.
    Disarm,
    /// What this host is, and the interface that has this address; none: that of the default route.
    ReadFacts {
        /// Of the measured path.
        address: Option<IpAddr>,
    },
    /// Where the clocks stand.
    ReadClocks,
    /// Look at this host again and again, until its samples are collected.
    StartSampling {
        /// CPUs that measure, to be left alone.
        avoid_cpus: Vec<u16>,
    },
    /// No more samples; the next of those that were taken.
    CollectSamples,
    /// Undo everything.
    StopAll,
}

/// What the agent says. `Greeting` comes unasked and once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// Who it is.
    Greeting(Greeting),
    /// Done, without data.
    Done,
    /// A reflector answers.
    Reflector {
        /// Here.
        address: SocketAddr,
    },
    /// What is set there, or was.
    Settings(Vec<SettingFacts>),
    /// How its loads are.
    Loads(LoadsStatus),
    /// The run is over at the far end too.
    Disarmed {
        /// How its reflector process died meanwhile, if it did: `killed by SIGKILL`.
        reflector_died: Option<String>,
    },
    /// What its host is.
    Facts(Box<HostFacts>),
    /// Where its clocks stand.
    Clocks(ClockAnchor),
    /// Some of its samples, in their order.
    Samples(SamplePage),
    /// It cannot.
    Error(RequestFailure),
}

/// As many samples as go into a frame at ease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplePage {
    /// In the order in which they were taken, on the clock of the agent's host.
    pub samples: Vec<HostSample>,
    /// How many are left for further pages.
    pub left: u64,
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    /// The version of its latlab.
    pub software: String,
    /// The address at which ssh reached its host; `None` without ssh.
    pub reached: Option<IpAddr>,
}

/// A message as a frame; plain data always becomes JSON.
pub(super) fn frame_of(message: &impl Serialize) -> Vec<u8> {
    frame::framed(&serde_json::to_vec(message).unwrap_or_default())
}

// serde's skip_serializing_if hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_none_at_all(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LoadKind, LoadSpec, Setting, SettingSpec, Side, defaults};

    #[test]
    fn messages_are_as_documented() {
        let text = |request: &Request| serde_json::to_string(request).expect("plain data");
        assert_eq!(text(&Request::Heartbeat), r#""heartbeat""#);
        assert_eq!(text(&Request::Arm { planned_ns: Nanos(7) }), r#"{"arm":{"planned_ns":7}}"#);
        let start = |transport| Request::StartReflector {
            bind: "10.0.0.7".parse().expect("an address"),
            end: EndSpec::SYSTEM,
            key: Some("k".into()),
            sessions: 2,
            down_bps: 0,
            transport,
        };
        let end = r#"{"wait":"block","cpu":null,"fifo":null,"mlock":false}"#;
        assert_eq!(
            text(&start(TransportKind::Udp)),
            format!(r#"{{"start_reflector":{{"bind":"10.0.0.7","end":{end},"key":"k","sessions":2}}}}"#)
        );
        let with_tcp = format!(r#""end":{end},"key":"k","sessions":2,"transport":"tcp"}}}}"#);
        assert!(text(&start(TransportKind::Tcp)).ends_with(&with_tcp), "{}", text(&start(TransportKind::Tcp)));
        let setting = SettingSpec { setting: Setting::RtRuntime(-1), interface: None, side: None };
        let towards = "10.0.0.2".parse().expect("an address");
        let load = LoadSpec { kind: LoadKind::Heaters { workers: 2, cpus: vec![] }, at: Side::Peer };
        for (request, words) in [
            (
                Request::Settings(SettingsRequest::Find { settings: vec![setting], towards }),
                concat!(
                    r#"{"settings":{"find":{"settings":[{"setting":{"knob":"rt-runtime","value":-1},"#,
                    r#""interface":null,"side":null}],"towards":"10.0.0.2"}}}"#
                ),
            ),
            (Request::Settings(SettingsRequest::Turn), r#"{"settings":"turn"}"#),
            (
                Request::Loads(LoadsRequest::Start { loads: vec![load], path: None }),
                r#"{"loads":{"start":{"loads":[{"kind":"heaters","workers":2,"cpus":[],"at":"peer"}],"path":null}}}"#,
            ),
            (Request::Loads(LoadsRequest::End), r#"{"loads":"end"}"#),
        ] {
            assert_eq!(text(&request), words);
        }
        let ended = Reply::Loads(LoadsStatus::Ended { reports: vec![] });
        assert_eq!(serde_json::to_string(&ended).expect("plain data"), r#"{"loads":{"ended":{"reports":[]}}}"#);
        assert_eq!(text(&Request::ReadFacts { address: None }), r#"{"read_facts":{"address":null}}"#);
        let sampling = Request::StartSampling { avoid_cpus: vec![1, 3] };
        assert_eq!(text(&sampling), r#"{"start_sampling":{"avoid_cpus":[1,3]}}"#);
        assert_eq!(text(&Request::CollectSamples), r#""collect_samples""#);
        let page = serde_json::to_string(&Reply::Samples(SamplePage::default())).expect("plain data");
        assert_eq!(page, r#"{"samples":{"samples":[],"left":0}}"#);
        let refusal = RequestFailure::world("cannot", "why");
        let told = serde_json::to_string(&Reply::Error(refusal)).expect("plain data");
        assert_eq!(told, r#"{"error":{"message":"cannot","cause":"why","hint":null,"exit_code":3}}"#);
    }

    #[test]
    fn what_is_not_in_the_document_is_refused() {
        for text in ["", "null", "7", "\"arm\"", "\"reboot\"", r#"{"arm":{}}"#, r#"{"arm":{"planned_ns":1,"x":2}}"#] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(serde_json::from_str::<Request>(&deep).is_err());
    }

    #[test]
    fn heartbeats_stay_within_64_bytes_a_second() {
        let beat = frame_of(&Request::Heartbeat).len() as i64;
        assert!(beat * Nanos::from_secs(1).0 <= 64 * defaults::AGENT_BEAT.0, "{beat} bytes each");
        // One beat may be lost, and the host is still restored within 2 s.
        assert!(defaults::AGENT_BEAT.saturating_mul(2) < defaults::AGENT_SILENCE);
        assert!(defaults::AGENT_SILENCE < Nanos::from_secs(2));
    }
}
