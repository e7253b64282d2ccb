//! Loads over simulated paths, counted by the real reflector.

use rustix::io::Errno;

use super::*;
use crate::diagnostics::Explain;
use crate::plan::Schedule;
use crate::session::{self, ReceiverState, ReflectorAction, ReflectorLimits, SessionParams, SessionReflector};
use crate::transport::sim::{Fault, Network, SimClock, SimTransport, SimulatedReflector};
use crate::wire::MessageType;

/// A path of `capacity` packets a second and a queue of 5 ms to a real reflector; the command to end is given at `until`.
fn narrow(capacity: f64, until: Nanos, commands: &NetLoadCommands) -> SimulatedReflector<'_> {
    let mut reflector = SessionReflector::new(ReflectorLimits::MAX, None, [1; 32]);
    reflector.set_receiver_state(ReceiverState { socket_drops: Some(3), ..ReceiverState::default() });
    let from = SocketAddr::from(([127, 0, 0, 1], 40_000));
    let cost = Nanos((1e9 / capacity) as i64);
    let mut free_at = Stamp::<SenderClock>::from_nanos(0);
    Box::new(move |datagram, at| {
        if at.as_nanos() >= until.0 {
            commands.set_end();
        }
        let begin = at.max(free_at);
        if begin - at > Nanos::from_millis(5) {
            return None;
        }
        free_at = begin + cost;
        let mut reply = datagram.to_vec();
        let bytes = match reflector.handle(&mut reply, from, Stamp::from_nanos(free_at.as_nanos())) {
            ReflectorAction::Reply(bytes) => bytes,
            ReflectorAction::Drop(_) | ReflectorAction::Counted | ReflectorAction::Reflect(_) => return None,
        };
        reply.truncate(bytes);
        Some(reply)
    })
}

fn quiet() -> Network {
    Network {
        delay: Nanos::from_micros(100),
        jitter: Nanos::ZERO,
        loss: 0.0,
        duplication: 0.0,
        clock_read: Nanos(20),
        send_cost: Nanos(1_000),
        seed: 1,
        faults: Vec::new(),
    }
}

fn load<'a>(
    network: Network,
    pace: Pace,
    reflector: SimulatedReflector<'a>,
) -> NetLoadSender<SimTransport<'a>, SimClock> {
    let spec = StreamSpec::at(pace);
    let mut transport = SimTransport::new(network, Stamp::from_nanos(0), reflector);
    let clock = transport.clock();
    let params = SessionParams::new("sim", [7; 16], 1_000, Schedule::Closed, None, Nanos::from_secs(1));
    let never = AtomicBool::new(false);
    let up = UpStream::new(session::open(&mut transport, &clock, None, &params, &never).expect("a session"));
    NetLoadSender {
        stream: StreamSender::new(transport, clock, up),
        packet_bits: spec.packet_bits(1_000, false),
        spec,
        peer: SocketAddr::from(([127, 0, 0, 1], 9_862)),
        size_bytes: 1_000,
        offered_bps: None,
        searched_bps: None,
        search_trials: 0,
    }
}

fn outcome_of(network: Network, pace: Pace, capacity: f64, until: Nanos) -> NetLoadOutcome {
    let commands = NetLoadCommands::default();
    let mut load = load(network, pace, narrow(capacity, until, &commands));
    let pace = load.settle_pace(&commands.end).expect("the reflector counts").expect("no command to end");
    load.run(pace, &commands, |_| Ok(())).expect("it begins").expect("and has begun")
}

fn within(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

#[test]
fn a_rate_is_kept_and_counted_at_both_ends() {
    let pace = Pace::Rate { bps: 80_000_000 };
    let NetLoadOutcome { report, failure } = outcome_of(quiet(), pace, 1e6, Nanos::from_secs(3));
    assert!(failure.is_none());
    let (sent, delivered) = report.sent.zip(report.delivered).expect("windows");
    assert!(within(delivered.mean_bps, 80e6, 0.001) && within(sent.mean_bps, 80e6, 0.001), "{report:?}");
    assert!(within(delivered.min_bps, 80e6, 0.01) && within(delivered.max_bps, 80e6, 0.01), "{report:?}");
    assert_eq!((report.lost_packets, report.skipped_packets, report.refused_packets), (0, 0, 0));
    assert_eq!(report.sent_packets, report.delivered_packets);
    assert!((25..=30).contains(&report.windows), "{report:?}");
    assert_eq!((report.offered_bps, report.searched_bps, report.socket_drops), (Some(80e6), None, Some(0)));
}

#[test]
fn packets_beyond_the_capacity_of_the_path_are_reported_lost() {
    let pace = Pace::Packets { pps: 20_000 };
    let NetLoadOutcome { report, .. } = outcome_of(quiet(), pace, 10_000.0, Nanos::from_secs(3));
    let (sent, delivered) = report.sent.zip(report.delivered).expect("windows");
    assert!(within(sent.mean_bps, 160e6, 0.01), "{report:?}");
    assert!(within(delivered.mean_bps, 80e6, 0.02), "{report:?}");
    assert!(within(report.lost_packets as f64, report.sent_packets as f64 / 2.0, 0.02), "{report:?}");
}

#[test]
fn losses_on_the_path_are_counted_to_the_packet() {
    let pace = Pace::Packets { pps: 5_000 };
    let network = Network { loss: 0.02, ..quiet() };
    let NetLoadOutcome { report, .. } = outcome_of(network, pace, 1e6, Nanos::from_secs(4));
    assert_eq!(report.lost_packets, report.sent_packets - report.delivered_packets);
    assert!(within(report.lost_packets as f64, report.sent_packets as f64 * 0.02, 0.2), "{report:?}");
}

#[test]
fn without_a_pace_the_rate_is_limited_by_the_cost_of_sends() {
    let NetLoadOutcome { report, .. } = outcome_of(quiet(), Pace::Max, 1e7, Nanos::from_secs(2));
    let sent = report.sent.expect("windows");
    assert!(within(sent.mean_bps, 8e9, 0.05), "a send takes 1 µs: {report:?}");
    assert_eq!(report.offered_bps, None);
}

#[test]
fn a_share_refers_to_the_rate_without_loss() {
    let NetLoadOutcome { report, .. } = outcome_of(quiet(), Pace::Share { share: 0.5 }, 10_000.0, Nanos::from_secs(14));
    let searched = report.searched_bps.expect("searched");
    assert!((74e6..=86e6).contains(&searched), "{report:?}");
    assert_eq!((report.offered_bps, report.lost_packets), (Some(searched / 2.0), 0));
    assert!(report.search_trials > 2 && within(report.delivered.expect("windows").mean_bps, searched / 2.0, 0.01));
}

#[test]
fn a_refused_send_is_repeated_and_a_short_stall_is_made_up() {
    let enobufs = Errno::NOBUFS.raw_os_error();
    let faults = vec![
        Fault::Refuse { send: 2_000, errno: enobufs },
        Fault::Stall { send: 3_000, span: Nanos::from_millis(20) },
        Fault::Stall { send: 4_000, span: Nanos::from_millis(500) },
    ];
    let pace = Pace::Packets { pps: 5_000 };
    let NetLoadOutcome { report, failure } = outcome_of(Network { faults, ..quiet() }, pace, 1e6, Nanos::from_secs(3));
    assert!(failure.is_none());
    assert_eq!((report.refused_packets, report.lost_packets), (1, 0));
    assert!((2_400..=2_500).contains(&report.skipped_packets), "the second stall was too long: {report:?}");
}

#[test]
fn the_reported_interval_begins_at_the_command() {
    let commands = NetLoadCommands::default();
    let mut reflecting = narrow(1e6, Nanos::from_secs(4), &commands);
    let reflector: SimulatedReflector<'_> = Box::new(|datagram, at| {
        if at.as_nanos() > 3_000_000_000 {
            commands.set_begin();
        }
        reflecting(datagram, at)
    });
    let mut load = load(quiet(), Pace::Packets { pps: 1_000 }, reflector);
    let pace = load.settle_pace(&commands.end).expect("the reflector counts").expect("no command to end");
    let outcome = load.run(pace, &commands, |_| Ok(())).expect("it begins").expect("and has begun");
    assert!((900..=1_000).contains(&outcome.report.sent_packets), "one second of four: {:?}", outcome.report);
    assert!((8..=10).contains(&outcome.report.windows), "{:?}", outcome.report);
}

#[test]
fn a_reflector_that_does_not_answer_polls_is_an_error_also_if_it_stops_later() {
    let commands = NetLoadCommands::default();
    let mut reflector = SessionReflector::new(ReflectorLimits::MAX, None, [1; 32]);
    let from = SocketAddr::from(([127, 0, 0, 1], 40_000));
    // An older reflector, which does not know POLL, and ignores the flag of a confirmation in OPEN.
    let older: SimulatedReflector<'_> = Box::new(move |datagram, at| {
        let mut reply = datagram.to_vec();
        if datagram[0] == MessageType::Open as u8 {
            reply[44] &= !8;
        }
        match reflector.handle(&mut reply, from, Stamp::from_nanos(at.as_nanos())) {
            ReflectorAction::Reply(bytes) if datagram[0] != MessageType::Poll as u8 => Some(reply[..bytes].to_vec()),
            _ => None,
        }
    });
    let error = load(quiet(), Pace::Max, older).settle_pace(&commands.end).expect_err("no tally");
    assert!(matches!(error, MeasureError::StreamUncounted { .. }), "{error:?}");
    let failure = error.explain();
    assert!(failure.exit_code == 3 && failure.cause.is_some() && failure.hint.is_some());

    let mut reflecting = narrow(1e6, Nanos::MAX, &commands);
    let gone: SimulatedReflector<'_> =
        Box::new(|datagram, at| if at.as_nanos() > 1_000_000_000 { None } else { reflecting(datagram, at) });
    let mut load = load(quiet(), Pace::Packets { pps: 1_000 }, gone);
    let pace = load.settle_pace(&commands.end).expect("the reflector counts").expect("no command to end");
    let outcome = load.run(pace, &commands, |_| Ok(())).expect("it begins").expect("and has begun");
    assert!(matches!(outcome.failure, Some(MeasureError::StreamSilent { span, .. }) if span < Nanos::from_secs(6)));
    assert!(outcome.report.delivered_packets > 500, "what was counted is kept: {:?}", outcome.report);
    assert!(outcome.report.sent_packets < 1_100, "{:?}", outcome.report);
}
