use super::*;
use crate::analysis::explain::explain;
use crate::analysis::in_memory::{CLOSED, InMemory, closed};
use crate::facts::{CpuReadings, HostReadings, HostSample, StampFacts};
use crate::plan::Side;
use crate::schemas;
use crate::text::{Style, render};
use crate::units::Stamp;

/// 1,000 probes with stamps of this kernel; of each fortieth the queue takes 300 µs or more.
fn source() -> InMemory {
    let row = |seq: u64| {
        let slow = if seq % 40 == 7 { 300 + (seq as i64 * 618) % 1_000 } else { 2 };
        let start = seq as i64 * 2_000 + (seq as i64 * 618) % 1_000;
        let mut row = closed(seq, start, 40 + slow);
        let at = |us: i64| Some(Stamp::from_nanos((start + us) * 1_000));
        (row.kernel.tx_sched, row.kernel.tx_software) = (at(1), at(1 + slow));
        row.kernel.rx_software = at(30 + slow);
        (row.sent_cpu, row.received_cpu, row.reflector_cpu) = (Some(0), Some(0), Some(1));
        row
    };
    let mut source = InMemory { batch: 500, ..InMemory::of(CLOSED, (0..1_000).map(row).collect()) };
    source.manifest.spec.target = crate::plan::Target::Host { host: "far".into(), port: 9862 };
    // From 1 to 1.1 s the hypervisor took 80 ms.
    source.hosts = (0..22).map(|at| (Side::Local, sample(at))).collect();
    source.manifest.run.stamps = Some(StampFacts { error_ns: 1_500, clock_steps: 0, cost_ns: 400 });
    source
}

fn sample(at: u64) -> HostSample {
    let steal_ns = Some(if at >= 11 { 80_000_000 } else { 0 });
    let cpus = vec![(0, CpuReadings { steal_ns, ..CpuReadings::default() })];
    let (start_ns, host) = (at as i64 * 100_000_000, HostReadings::default());
    HostSample { seq: at, start_ns, end_ns: start_ns + 60_000, sampler_cpu: None, host, cpus }
}

fn explained() -> Explanation {
    explain(&source(), 20).expect("rows in memory").expect("a ping")
}

#[test]
fn one_screen_says_where_the_time_went() {
    let text = render(&parts(&explained(), "ping far", false), Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "round trip of 1,000 answered probes: median 42 µs",
        "is in: queue",
        "send call < 1.5 µs 2.",
        "queue 2 µs 4.",
        "network and peer's kernel, both ways 27 µs",
        "stack and wake-up here 10 µs",
        "the worst of 25 slow episodes slow: 25 probes from ",
        "queue +",
        "in common ",
        "host then 1.0",
        "steal 80 %",
        "`tc -s qdisc show`",
    ] {
        assert!(words.contains(part), "{part}: {text}");
    }
    // Ten of the 25 episodes; in full the 20 that were asked for.
    let rows = |most| worst_table(&explained(), most).expect("slow ones").rows.len();
    assert_eq!((rows(EPISODES), rows(usize::MAX)), (10, 20));
}

#[test]
fn the_document_conforms_to_its_schema() {
    schemas::check("explain", &json(&[explained(), Explanation { kind: "wakeup", ..Explanation::default() }]));
}

#[test]
fn claims_have_counts_and_p_values() {
    let cause = CommonCause {
        test: CommonTest::SentCpu,
        what: "sent on CPU 1".into(),
        period_ns: None,
        episodes: 50,
        hits: Some(38),
        expected: Some(12.04),
        p_value: Some(0.0005),
        adjusted_p_value: Some(0.004),
        is_claimed: true,
        resultant: 0.0,
    };
    assert_eq!(cause_words(&cause), "38 of the 50 worst sent on CPU 1; 12.0 expected (p 0.004)");
    let (period_ns, what) =
        (Some(Nanos::from_millis(10)), "sent about 2.5 ms after each multiple of the period".into());
    let period = CommonCause { period_ns, what, hits: None, expected: None, adjusted_p_value: Some(1e-9), ..cause };
    let expected = "period of 10 ms: the 50 worst cluster, sent about 2.5 ms after each multiple of the period";
    assert_eq!(cause_words(&period), format!("{expected} (p < 0.001)"));
}
