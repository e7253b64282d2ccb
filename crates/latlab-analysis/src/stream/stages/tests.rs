//! Figures and caveats of given trials, stages and rows.

use super::*;
use crate::facts::{RateSearchFacts, TrialFacts};
use crate::in_memory::{CLOSED, InMemory, but, closed, scheduled};
use crate::plan::{Pace, PacketSize, PingSpec, RateSearchSpec, RunSpec, StreamRunSpec, TransportKind, Work};
use crate::probe::ProbeRecord;
use crate::{StreamFigures, SummaryOptions, summarise};

fn trial(pps: f64, sent: u64, delivered: u64) -> TrialFacts {
    TrialFacts {
        asked_pps: Some(pps),
        lasting_ns: Nanos::from_millis(500),
        sending_ns: Nanos::from_millis(500),
        counting_ns: Nanos::from_millis(500),
        sent_packets: sent,
        delivered_packets: delivered,
        answered: true,
    }
}

fn stage(share: Option<f64>, begin_us: i64, stream: Option<TrialFacts>) -> StageFacts {
    StageFacts { share, begin_ns: begin_us * 1_000, end_ns: begin_us * 1_000 + 1, stream }
}

/// A stream of 1,000 bytes with these facts, whose bounds are not confirmed; the rows are its probes.
fn searched(trials: Vec<TrialFacts>, stages: Vec<StageFacts>, rows: Vec<ProbeRecord>) -> InMemory {
    let mut search = RateSearchSpec::within(&[0.0, 0.05], Nanos::from_secs(60));
    search.goals.iter_mut().for_each(|goal| goal.confirming_ns = Nanos::ZERO);
    let spec = StreamRunSpec {
        size: PacketSize::Bytes(1_000),
        search: Some(search),
        probes: Some(PingSpec::on(CLOSED)),
        ..StreamRunSpec::at(Pace::Max)
    };
    let mut source = InMemory::of(CLOSED, rows);
    source.manifest.spec = RunSpec::here(Work::Stream(spec));
    source.manifest.kind = source.manifest.spec.kind();
    source.manifest.run.search = Some(RateSearchFacts {
        floor_pps: 20.0,
        ceiling_pps: 4_000.0,
        trials,
        ending: SearchEnding::Settled,
        took_ns: Nanos::from_secs(7),
    });
    source.manifest.run.stages = stages;
    source
}

fn figures(source: &InMemory) -> StreamFigures {
    let summary = summarise(source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory");
    summary.stream.expect("a stream")
}

fn thrice(trial: TrialFacts) -> [TrialFacts; 3] {
    [trial; 3]
}

#[test]
fn goals_are_judged_by_the_recorded_trials() {
    let trials = [
        // As fast as possible: it sets the highest rate, and is not judged by the goals.
        vec![TrialFacts { asked_pps: None, ..trial(0.0, 2_000, 1_000) }],
        thrice(trial(2_000.0, 1_000, 1_000)).into(),
        thrice(trial(2_030.0, 1_015, 1_000)).into(),
        thrice(trial(3_000.0, 1_500, 1_000)).into(),
    ];
    let found = figures(&searched(trials.concat(), Vec::new(), Vec::new())).search.expect("there was one");
    assert_eq!((found.found_pps, found.trials, found.min_pps, found.max_pps), (Some(2_000.0), 10, 20.0, 4_000.0));
    let [strict, lax] = found.goals.as_slice() else { panic!("{found:?}") };
    assert_eq!((strict.bounds.lower_pps, strict.bounds.upper_pps), (Some(2_000.0), Some(2_030.0)));
    assert_eq!((strict.end, strict.bounds.conditional_pps), (GoalEnd::Reached, Some(2_000.0)));
    // 1.5 % of 1,015 packets were lost, which is within 5 %; the next rate that was tried is much higher.
    assert_eq!(
        (lax.end, lax.bounds.lower_pps, lax.bounds.upper_pps),
        (GoalEnd::Undecided, Some(2_030.0), Some(3_000.0))
    );
    assert!(lax.bounds.conditional_pps.is_some_and(|pps| (pps - 2_000.0).abs() < 1e-6), "{lax:?}");
}

#[test]
fn a_bound_is_found_once_it_is_confirmed() {
    let five_seconds = |pps: f64, lost: u64| TrialFacts {
        lasting_ns: Nanos::from_secs(5),
        sending_ns: Nanos::from_secs(5),
        counting_ns: Nanos::from_secs(5),
        ..trial(pps, (pps * 5.0) as u64, (pps * 5.0) as u64 - lost)
    };
    let figures_of = |confirming: &[TrialFacts]| {
        let trials = [&thrice(trial(2_000.0, 1_000, 1_000)), &thrice(trial(2_030.0, 1_015, 900)), confirming].concat();
        let mut source = searched(trials, Vec::new(), Vec::new());
        let Work::Stream(stream) = &mut source.manifest.spec.work else { panic!("it is a stream") };
        stream.search = Some(RateSearchSpec::within(&[0.0], Nanos::from_secs(60)));
        figures(&source).search.expect("there was one")
    };
    let first = |figures: &SearchFigures| (figures.goals[0].end, figures.goals[0].bounds.upper_pps, figures.found_pps);
    assert_eq!(first(&figures_of(&[])), (GoalEnd::Undecided, Some(2_030.0), None));
    let lossy = five_seconds(2_000.0, 1);
    assert_eq!(first(&figures_of(&[lossy])), (GoalEnd::Undecided, Some(2_000.0), None));
    // Half a per cent lower.
    let confirmed = figures_of(&[lossy, five_seconds(1_980.0, 0)]);
    assert_eq!(first(&confirmed), (GoalEnd::Reached, Some(2_000.0), Some(1_970.1)));
    assert_eq!(first(&figures_of(&[lossy, five_seconds(1_500.0, 0)])).0, GoalEnd::Undecided, "far below");
    // Without a rate that was too high nothing is deducted.
    let mut fastest = searched([five_seconds(4_000.0, 0)].into(), Vec::new(), Vec::new());
    let Work::Stream(stream) = &mut fastest.manifest.spec.work else { panic!("it is a stream") };
    stream.search = Some(RateSearchSpec::within(&[0.0], Nanos::from_secs(60)));
    let fastest = figures(&fastest).search.expect("there was one");
    assert_eq!(first(&fastest), (GoalEnd::AtCeiling, None, Some(4_000.0)));
}

#[test]
fn a_search_ends_at_the_highest_or_the_lowest_rate() {
    let end = |trials: Vec<TrialFacts>| {
        let found = figures(&searched(trials, Vec::new(), Vec::new())).search.expect("there was one");
        (found.goals[0].end, found.found_pps)
    };
    assert_eq!(end(thrice(trial(4_000.0, 2_000, 2_000)).into()), (GoalEnd::AtCeiling, Some(4_000.0)));
    assert_eq!(end(thrice(trial(20.0, 10, 1)).into()), (GoalEnd::AtFloor, None));
    assert_eq!(end(Vec::new()), (GoalEnd::Undecided, None));
    // The found rate is that of the first goal that has one.
    assert_eq!(end(thrice(trial(2_000.0, 1_000, 990)).into()), (GoalEnd::Undecided, Some(2_000.0)));
}

#[test]
fn probes_belong_to_the_stage_in_which_they_left() {
    let streamed = trial(1_000.0, 500, 490);
    let stages = vec![stage(Some(0.0), 1_000, None), stage(Some(0.5), 2_000, Some(streamed))];
    let mut rows = vec![closed(0, 900, 1)]; // before the first
    rows.extend((1..=40).map(|seq| closed(seq, 1_000 + seq as i64, 50)));
    rows.extend((41..=80).map(|seq| closed(seq, 2_000 + seq as i64, 900)));
    rows.push(but(closed(81, 2_100, 50), Fate::Lost));
    rows.push(but(scheduled(82, 2_101, 0, 50), Fate::NotSent));
    let found = figures(&searched(Vec::new(), stages, rows)).stages;
    let [idle, half] = found.as_slice() else { panic!("{found:?}") };
    let delay = |stage: &StageFigures| stage.round_trip.clone().expect("it had probes");
    assert_eq!((delay(idle).n, delay(idle).max, idle.delivered_pps, idle.loss_ratio), (40, Some(50_000.0), None, None));
    assert_eq!((delay(half).n, delay(half).lost, delay(half).max), (41, 1, Some(900_000.0)));
    assert_eq!((half.offered_pps, half.delivered_pps, half.loss_ratio), (Some(1_000.0), Some(980.0), Some(0.02)));
    assert_eq!((idle.unsent_probes, half.unsent_probes), (0, 1));
}

/// The codes and messages of the caveats of `source`.
fn caveats(source: &InMemory) -> Vec<(String, String)> {
    let summary = summarise(source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory");
    summary.caveats.into_iter().map(|caveat| (caveat.code, caveat.message)).collect()
}

#[test]
fn stages_are_judged_as_trials_are() {
    let trials: Vec<TrialFacts> = thrice(trial(2_000.0, 1_000, 1_000)).into();
    // All packets that were sent arrived, but fewer than requested, or in more time.
    let starved = trial(1_000.0, 300, 300);
    let queued = TrialFacts { counting_ns: Nanos::from_millis(1_000), ..trial(2_000.0, 1_000, 1_000) };
    let stages = vec![stage(Some(0.5), 1_000, Some(starved)), stage(Some(1.0), 2_000, Some(queued))];
    let source = searched(trials.clone(), stages, Vec::new());
    let figures = figures(&source).stages;
    let [half, whole] = figures.as_slice() else { panic!("{figures:?}") };
    let missing = |stage: &StageFigures| stage.not_carried_ratio.expect("it was searched for");
    assert!((missing(half) - 0.4).abs() < 1e-9 && half.is_short && half.loss_ratio == Some(0.0), "{half:?}");
    assert!((missing(whole) - 0.495).abs() < 1e-9 && !whole.is_short, "{whole:?}");
    assert!((half.not_sent_ratio.expect("it was searched for") - 0.4).abs() < 1e-9, "{half:?}");
    assert_eq!((whole.offered_pps, whole.delivered_pps), (Some(2_000.0), Some(1_000.0)));
    let found = caveats(&source);
    for (code, words) in [
        ("search-undecided", "49.5 % was not delivered in time: 0 % lost, 49.5 % late, 0 % not sent"),
        ("rate-unreached", "600 of 1,000 packets/s at 50 %"),
        ("search-undecided", "no time was left for the stages at 0 %, 90 %"),
    ] {
        assert!(found.iter().any(|(other, message)| other == code && message.contains(words)), "{code}: {found:?}");
    }
    let held = RateSearchSpec::SHARES.map(|share| stage(Some(share), 1, Some(trial(1_000.0, 500, 500))));
    let found = caveats(&searched(trials, held.into(), Vec::new()));
    assert!(found.iter().all(|(_, words)| !words.contains("stages") && !words.contains("did not hold")), "{found:?}");
}

#[test]
fn a_search_without_a_rate_gives_the_reason() {
    for (ending, trials, words) in [
        (SearchEnding::Silent, 2, "the target stopped answering after 2 trials"),
        (SearchEnding::CutShort, 2, "ended after 2 trials"),
        (SearchEnding::CutShort, 0, "ended after 0 trials"),
        (SearchEnding::TimeUp, 2, "no rate kept the loss within 0 % and 5 % for long enough, in 2 trials"),
    ] {
        let mut source = searched(vec![trial(2_000.0, 1_000, 1); trials], Vec::new(), Vec::new());
        if let Some(facts) = &mut source.manifest.run.search {
            facts.ending = ending;
        }
        let found = caveats(&source);
        let none: Vec<_> = found.iter().filter(|(code, _)| code == "no-rate-found").collect();
        assert!(none.len() == 1 && none[0].1.contains(words), "{ending:?}: {found:?}");
        let undecided = found.iter().any(|(code, _)| code == "search-undecided");
        assert_eq!(undecided, ending == SearchEnding::TimeUp, "{found:?}");
        assert!(found.iter().all(|(code, _)| code != "nothing-measured"), "{found:?}");
    }
}

#[test]
fn a_search_over_dds_is_about_samples_and_its_modes() {
    let over_dds = |trials, stages| {
        let mut source = searched(trials, stages, Vec::new());
        if let Work::Stream(stream) = &mut source.manifest.spec.work {
            stream.transport = TransportKind::Dds;
        }
        summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory").caveats
    };
    let starved = stage(Some(0.5), 1_000, Some(trial(1_000.0, 300, 300)));
    let short = over_dds(thrice(trial(2_000.0, 1_000, 1_000)).into(), vec![starved]);
    assert!(short.iter().any(|caveat| caveat.message.contains("600 of 1,000 samples/s at 50 %")), "{short:?}");
    let lossy = over_dds(thrice(trial(20.0, 10, 1)).into(), Vec::new());
    assert!(lossy.iter().any(|caveat| caveat.hint.contains("look for drops on the path")), "{lossy:?}");
    let fastest = over_dds(thrice(trial(4_000.0, 2_000, 2_000)).into(), Vec::new());
    assert!(fastest.iter().any(|caveat| caveat.hint.starts_with("`--mode batch`")), "{fastest:?}");
}

#[test]
fn probes_that_load_the_path_are_a_warning() {
    // A probe of 64 bytes takes 130 bytes on the wire, a packet of 1,000 bytes 1,066.
    for (pps, interval_us, is_load) in
        [(2_000.0, 1_000, true), (2_000.0, 10_000, false), (20_000.0, 500, true), (20_000.0, 1_000, false)]
    {
        let interval_ns = Nanos::from_micros(interval_us);
        let held = trial(pps, (pps / 2.0) as u64, (pps / 2.0) as u64);
        let stages = vec![stage(Some(1.0), 1_000, Some(held))];
        let mut source = searched(thrice(held).into(), stages, Vec::new());
        let Work::Stream(stream) = &mut source.manifest.spec.work else { panic!("it is a stream") };
        stream.probes = Some(PingSpec::on(crate::plan::Schedule::Periodic { interval_ns }));
        source.manifest.run.peer_address = Some("127.0.0.1:1".into());
        let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory");
        let found = summary.caveats.iter().find(|caveat| caveat.code == "probes-load");
        assert_eq!(found.is_some(), is_load, "{pps} {interval_us}: {found:?}");
        let named = found.map(|found| format!("{found:?}")).unwrap_or_default();
        if (pps, interval_us) == (2_000.0, 1_000) {
            assert!(
                named.contains("1.04 Mbit/s") && named.contains("6.1 % of the found rate (17.1 Mbit/s)"),
                "{named}"
            );
        }
    }
}

#[test]
fn a_search_stopped_before_its_last_stage_has_sent_packets() {
    let trials: Vec<TrialFacts> = thrice(trial(2_000.0, 1_000, 1_000)).into();
    for ending in [SearchEnding::Settled, SearchEnding::CutShort, SearchEnding::Silent] {
        let mut source = searched(trials.clone(), vec![stage(Some(0.0), 1_000, None)], Vec::new());
        if let Some(facts) = &mut source.manifest.run.search {
            facts.ending = ending;
        }
        let found = caveats(&source);
        assert!(found.iter().all(|(code, _)| code != "nothing-measured"), "{ending:?}: {found:?}");
        if let Work::Stream(stream) = &mut source.manifest.spec.work {
            stream.search = None;
        }
        let found = caveats(&source);
        assert!(found.iter().any(|(code, _)| code == "nothing-measured"), "{ending:?}: {found:?}");
    }
}

#[test]
fn a_path_that_only_delays_is_not_called_lossy() {
    // The path carries less than ten packets in half a second, and queues them.
    let late = TrialFacts { counting_ns: Nanos::from_millis(618), ..trial(20.0, 10, 10) };
    let found = caveats(&searched(vec![late; 9], Vec::new(), Vec::new()));
    let none: Vec<_> = found.iter().filter(|(code, _)| code == "no-rate-found").map(|(_, message)| message).collect();
    let [message] = none.as_slice() else { panic!("{found:?}") };
    for words in ["arrived too late", "none was lost", "sent in 500 ms took 618 ms to arrive"] {
        assert!(message.contains(words), "{message}");
    }
    // With a lost packet the message is about losses.
    let found = caveats(&searched(vec![trial(20.0, 10, 9); 9], Vec::new(), Vec::new()));
    assert!(found.iter().any(|(_, message)| message.contains("kept the loss within")), "{found:?}");
}

#[test]
fn slices_of_one_stage_are_added() {
    let slice = trial(1_000.0, 500, 500);
    let stages = vec![stage(None, 1_000, Some(slice)), stage(None, 5_000, Some(slice))];
    let rows = vec![closed(0, 1_001, 50), closed(1, 5_001, 60)];
    let found = figures(&searched(Vec::new(), stages, rows)).stages;
    let [whole] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((whole.offered_pps, whole.round_trip.as_ref().map(|delay| delay.n)), (Some(1_000.0), Some(2)));
}
