//! The messages of the agent protocol (docs/agent-protocol.md).

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::frame;
use crate::diagnostics::Failure;
use crate::facts::{ClockAnchor, HostFacts, HostSample, LoadReport, SettingFacts, XdpFacts};
use crate::plan::{DdsSpec, EndSpec, LoadSpec, PathSpec, SettingSpec, TransportKind};
use crate::units::Nanos;

/// A request to an agent. A new one is a variant here, a row in the document and a handler in [`super::RequestHandler`].
/// No `Debug`: a key must not reach a log.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The controller is alive. The only request without a reply.
    Heartbeat,
    StartReflector {
        /// The address to bind, on a free port.
        bind: IpAddr,
        end: EndSpec,
        /// The line of the pre-shared key; an agent refuses `None`.
        key: Option<String>,
        /// The number of sessions: one for each run.
        sessions: u16,
        /// The permitted rate of a down-stream, in bits a second; 0, which is not written: no down-stream.
        #[serde(default, skip_serializing_if = "is_zero")]
        down_bps: u64,
        /// How probes travel; UDP is not written.
        #[serde(default, skip_serializing_if = "TransportKind::is_default")]
        transport: TransportKind,
        /// Domain and policies over DDS; not written over another transport.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dds: Option<DdsSpec>,
        /// The queue of an AF_XDP socket; not written over another transport.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<u32>,
        /// A program in the network driver answers, in front of the socket; not written if not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_driver: bool,
    },
    /// Find, change or restore settings of the agent's host.
    Settings(SettingsRequest),
    /// Start, query or end loads on the agent's host.
    Loads(LoadsRequest),
    /// A run begins: neither end sends until [`Request::Disarm`].
    Arm {
        /// The longest duration of the run.
        planned_ns: Nanos,
    },
    Disarm,
    /// Read the facts of the agent's host.
    ReadFacts {
        /// An address of the interface to describe; `None`: that of the default route.
        address: Option<IpAddr>,
    },
    /// Read the clocks of the agent's host.
    ReadClocks,
    /// Sample the agent's host until the samples are collected.
    StartSampling {
        /// CPUs that measure: the sampler avoids them.
        avoid_cpus: Vec<u16>,
    },
    /// End the sampling and return the next page of samples.
    CollectSamples,
    /// Trace what the CPUs of the agent's host run.
    StartTracing,
    /// End the trace and return its text between two instants.
    ReadTrace {
        from_ns: Nanos,
        to_ns: Nanos,
    },
    /// Undo every change to the host.
    StopAll,
}

/// A request about the settings of the agent's host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SettingsRequest {
    /// Find and read these knobs without changing them: the controller reads its own before either host is changed.
    Find {
        /// Settings of the agent's host, without a side.
        settings: Vec<SettingSpec>,
        /// The other end of the measured path: network knobs without an interface are those of the interface that leads
        /// there.
        towards: IpAddr,
    },
    /// Set the knobs that were found.
    Turn,
    /// Restore all settings, the last one first.
    Restore,
}

/// A request about the loads of the agent's host. No `Debug`: a key must not reach a log.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadsRequest {
    /// Begin to start these loads. Their figures count from the moment a run is armed.
    Start {
        loads: Vec<LoadSpec>,
        /// The path of network loads; `None` without network loads.
        path: Option<NetLoadPath>,
    },
    /// Report the state of the loads.
    Look,
    /// Begin to end the loads.
    End,
}

/// The path of the agent's network loads: to a reflector on the controller's host.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetLoadPath {
    pub sink: SocketAddr,
    /// Local end and socket options.
    pub path: PathSpec,
    /// The line of the pre-shared key.
    pub key: String,
    /// The longest duration of the loads; `None` if unknown.
    pub lasting_ns: Option<Nanos>,
}

/// The state of the loads of the agent's host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadsStatus {
    None,
    /// Some of them have not started yet.
    Starting,
    Running,
    Ending,
    Ended {
        /// A report for each load, in the requested order.
        reports: Vec<LoadReport>,
    },
}

/// A reply of the agent. `Greeting` is its first message, without a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    Greeting(Greeting),
    Done,
    Reflector {
        /// Address and port of the reflector.
        address: SocketAddr,
        /// Its AF_XDP socket or its program; not written without either.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        xdp: Option<XdpFacts>,
    },
    /// The settings after the request.
    Settings(Vec<SettingFacts>),
    Loads(LoadsStatus),
    Disarmed {
        /// How a reflector process died during the run, such as `killed by SIGKILL`; `None` if it runs.
        reflector_died: Option<String>,
    },
    Facts(Box<HostFacts>),
    Clocks(ClockAnchor),
    Samples(SamplePage),
    Tracing {
        /// What tracing adds to one wake-up of a thread.
        cost_ns: i64,
    },
    Trace {
        /// `None` if it is not complete there, or too long for a frame.
        text: Option<String>,
    },
    Error(Failure),
}

/// Host samples, limited to the size of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplePage {
    /// In order of time, on the clock of the agent's host.
    pub samples: Vec<HostSample>,
    /// The number of samples for further pages.
    pub left: u64,
}

/// The first message of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    /// The agent's version of latlab.
    pub software: String,
    /// The address at which ssh reached the agent's host; `None` without ssh.
    pub reached: Option<IpAddr>,
}

/// `message` as a frame. Serialisation of these types cannot fail.
pub(super) fn frame_of(message: &impl Serialize) -> Vec<u8> {
    frame::framed(&serde_json::to_vec(message).unwrap_or_default())
}

// `skip_serializing_if` of serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LoadKind, LoadSpec, Setting, SettingSpec, Side, defaults};

    #[test]
    fn messages_have_the_documented_json() {
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
            dds: (transport == TransportKind::Dds).then(DdsSpec::default),
            queue: (transport == TransportKind::Xdp).then_some(3),
            in_driver: false,
        };
        let end = r#"{"wait":"block","cpu":null,"fifo":null,"mlock":false}"#;
        assert_eq!(
            text(&start(TransportKind::Udp)),
            format!(r#"{{"start_reflector":{{"bind":"10.0.0.7","end":{end},"key":"k","sessions":2}}}}"#)
        );
        let with_tcp = format!(r#""end":{end},"key":"k","sessions":2,"transport":"tcp"}}}}"#);
        assert!(text(&start(TransportKind::Tcp)).ends_with(&with_tcp), "{}", text(&start(TransportKind::Tcp)));
        let policies =
            r#""domain":0,"reliability":"best_effort","history":{"keep_last":16},"keyed":false,"multicast":false"#;
        let with_dds = format!(r#""sessions":2,"transport":"dds","dds":{{{policies}}}}}}}"#);
        assert!(text(&start(TransportKind::Dds)).ends_with(&with_dds), "{}", text(&start(TransportKind::Dds)));
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
        assert_eq!(text(&Request::StartTracing), r#""start_tracing""#);
        let read = text(&Request::ReadTrace { from_ns: Nanos(1), to_ns: Nanos(2) });
        assert_eq!(read, r#"{"read_trace":{"from_ns":1,"to_ns":2}}"#);
        let trace = serde_json::to_string(&Reply::Trace { text: None }).expect("plain data");
        assert_eq!(trace, r#"{"trace":{"text":null}}"#);
        let refusal = Failure::world("cannot").because("why");
        let error = serde_json::to_string(&Reply::Error(refusal)).expect("plain data");
        assert_eq!(error, r#"{"error":{"message":"cannot","cause":"why","hint":null,"exit_code":3}}"#);
    }

    #[test]
    fn messages_that_are_not_documented_are_refused() {
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
        // After the loss of one heartbeat the host is still restored within 2 s.
        assert!(defaults::AGENT_BEAT.saturating_mul(2) < defaults::AGENT_SILENCE);
        assert!(defaults::AGENT_SILENCE < Nanos::from_secs(2));
    }
}
