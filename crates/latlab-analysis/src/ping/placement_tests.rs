//! Caveats of placement and of contended spinning, from rows in memory.

use super::*;
use crate::diagnostics::{Caveat, Severity};
use crate::in_memory::{CLOSED, InMemory, closed};
use crate::plan::Target;
use crate::probe::ProbeRecord;
use crate::{SummaryOptions, summarise};

fn caveats(source: &InMemory, code: &str) -> Vec<Caveat> {
    let all = summarise(source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for").caveats;
    all.into_iter().filter(|caveat| caveat.code == code).collect()
}

fn placement(source: &InMemory) -> Option<Caveat> {
    caveats(source, "unpinned-placement").pop()
}

/// A probe whose sender was on one CPU, and whose reflector was on another.
fn on_cpus(seq: u64, sender: u16, reflector: u16, round_trip_us: i64) -> ProbeRecord {
    let (sent_cpu, reflector_cpu) = (Some(sender), Some(reflector));
    ProbeRecord { sent_cpu, received_cpu: sent_cpu, reflector_cpu, ..closed(seq, seq as i64 * 100, round_trip_us) }
}

/// A run whose ends are not pinned, on a host without topology.
fn unpinned(rows: Vec<ProbeRecord>) -> InMemory {
    let mut source = InMemory::of(CLOSED, rows);
    source.manifest.spec.here.cpu = None;
    source.manifest.spec.peer.as_mut().expect("a local run has it").cpu = None;
    source
}

/// Of 100 probes 75 on CPU 1, with a median of 9 µs, and the others on CPUs 0 and 1 with 48 µs.
fn mixed() -> Vec<ProbeRecord> {
    let row = |seq| if seq % 4 == 0 { on_cpus(seq, 0, 1, 48) } else { on_cpus(seq, 1, 1, 9) };
    (0..100).map(row).collect()
}

#[test]
fn placements_that_varied_have_shares_medians_and_pins() {
    let found = placement(&unpinned(mixed())).expect("they varied");
    assert_eq!(found.severity, Severity::Warning);
    for part in ["75 % on one CPU, median 9 µs", "25 % on two CPUs, median 48 µs"] {
        assert!(found.message.contains(part), "{}", found.message);
    }
    let pins = "`--cpu 1 --peer-cpu 1` (on one CPU), or `--cpu 0 --peer-cpu 1` (on two CPUs)";
    assert_eq!(found.hint, pins);
}

#[test]
fn placements_with_about_the_same_median_are_a_note() {
    let row = |seq| if seq % 2 == 0 { on_cpus(seq, 0, 1, 50) } else { on_cpus(seq, 1, 1, 48) };
    let found = placement(&unpinned((0..100).map(row).collect())).expect("they varied");
    assert_eq!(found.severity, Severity::Note);
}

#[test]
fn one_placement_is_a_note_that_the_next_run_may_have_another() {
    let mut rows: Vec<ProbeRecord> = (0..300).map(|seq| on_cpus(seq, 0, 1, 48)).collect();
    rows[7] = on_cpus(7, 1, 1, 9);
    let found = placement(&unpinned(rows)).expect("it was not pinned");
    assert_eq!((found.severity, found.hint.as_str()), (Severity::Note, "`--cpu 0 --peer-cpu 1` (on two CPUs)"));
    assert!(found.message.ends_with("99.7 % on two CPUs, median 48 µs"), "{}", found.message);
    assert!(found.effect.starts_with("in another run they may be on other CPUs"), "{}", found.effect);
}

#[test]
fn two_cpus_of_one_core_are_distinguished_from_two_cores_if_the_topology_is_known() {
    let mut rows: Vec<ProbeRecord> = (0..60).map(|seq| on_cpus(seq, 0, 2, 20)).collect();
    rows.extend((60..90).map(|seq| on_cpus(seq, 0, 1, 50)));
    rows.extend((90..100).map(|seq| ProbeRecord { received_cpu: Some(3), ..on_cpus(seq, 0, 1, 60) }));
    let mut source = unpinned(rows);
    let siblings = |list: &str| CpuTopology { siblings: Some(list.into()), ..CpuTopology::default() };
    let topology = [(0, siblings("0,2")), (1, siblings("1,3")), (2, siblings("0,2")), (3, siblings("1,3"))];
    let facts = source.manifest.here.before.as_mut().expect("facts");
    facts.processor.topology = Some(topology.into_iter().collect());
    let message = placement(&source).expect("they varied").message;
    for part in ["60 % on two CPUs of one core, median 20", "30 % on two cores, median 50", "10 % on CPUs that changed"]
    {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn pinned_ends_a_single_cpu_and_other_hosts_have_no_caveat_of_placement() {
    assert_eq!(placement(&InMemory::of(CLOSED, mixed())), None, "both ends are pinned");
    let mut one_end = unpinned(mixed());
    one_end.manifest.spec.here.cpu = Some(0);
    assert!(placement(&one_end).is_some(), "the reflector is not pinned");
    let mut one_cpu = unpinned(mixed());
    one_cpu.manifest.here.before.as_mut().expect("facts").cpus_online = Some("0".into());
    assert_eq!(placement(&one_cpu), None);
    let mut far = unpinned(mixed());
    far.manifest.spec.target = Target::Ssh { host: "pi@pi3".into() };
    assert!(placement(&far).is_some(), "an agent in the same boot is on this machine");
    far.manifest.peer.before.as_mut().expect("facts").boot_id = Some("another".into());
    assert_eq!(placement(&far), None);
}

#[test]
fn unknown_cpus_are_said_to_be_unknown() {
    let source = unpinned((0..100).map(|seq| closed(seq, seq as i64 * 100, 48)).collect());
    let found = placement(&source).expect("it was not pinned");
    assert!(found.severity == Severity::Note && found.message.contains("not known"), "{found:?}");
    assert_eq!(placement(&unpinned(Vec::new())), None, "nothing was measured");
}

#[test]
fn a_median_of_an_even_number_lies_between_the_middle_ones() {
    for (round_trips_ns, median) in
        [(vec![], 0), (vec![7], 7), (vec![9, 1], 5), (vec![30, 10, 20], 20), (vec![40, 10, 30, 20], 25)]
    {
        assert_eq!(PlacedProbes { round_trips_ns, first: None }.median(), Nanos(median));
    }
}

/// A run of 100 probes without pins, whose ends wait in these ways; the sender of each `nth` is on the reflector's CPU,
/// where each round trip contains time slices.
fn sharing(here: WaitMode, there: WaitMode, nth: u64) -> InMemory {
    let slices_us = |seq: u64| 1_150 + (seq as i64 * 7_919) % 14_000;
    let row =
        |seq: u64| if seq.is_multiple_of(nth) { on_cpus(seq, 1, 1, slices_us(seq)) } else { on_cpus(seq, 0, 1, 17) };
    let mut source = unpinned((0..100).map(row).collect());
    source.manifest.spec.here.wait = here;
    source.manifest.spec.peer.as_mut().expect("a local run has it").wait = there;
    source
}

#[test]
fn spinning_on_one_cpu_without_pins_is_a_warning_even_if_no_round_trip_is_fast() {
    for (here, there) in
        [(WaitMode::Spin, WaitMode::Spin), (WaitMode::Spin, WaitMode::Block), (WaitMode::Block, WaitMode::Spin)]
    {
        let source = sharing(here, there, 1);
        let found = caveats(&source, "spin-on-one-cpu").pop().expect("all probes shared a CPU");
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.message.starts_with("both ends shared one CPU for 100 % of the probes"), "{found:?}");
        assert_eq!(placement(&source).expect("no pins").hint, "`--cpu` and `--peer-cpu`");
    }
    let some = caveats(&sharing(WaitMode::Spin, WaitMode::Spin, 4), "spin-on-one-cpu").pop().expect("a quarter did");
    assert!(some.message.contains(" for 25 % of the probes"), "{some:?}");
    assert_eq!(caveats(&sharing(WaitMode::Spin, WaitMode::Spin, 1_000), "spin-on-one-cpu").len(), 1, "one in 100");
    let mut rare = sharing(WaitMode::Spin, WaitMode::Spin, 1_000);
    rare.rows.extend((100..300).map(|seq| on_cpus(seq, 0, 1, 17)));
    assert_eq!(caveats(&rare, "spin-on-one-cpu"), [], "one in 300");
    let blocking = sharing(WaitMode::Block, WaitMode::Block, 1);
    assert_eq!(caveats(&blocking, "spin-on-one-cpu"), []);
    assert_eq!(placement(&blocking).expect("no pins").hint, "`--cpu 1 --peer-cpu 1` (on one CPU)");
}

#[test]
fn no_hint_pins_ends_of_which_one_spins_to_one_cpu() {
    let mixed = placement(&sharing(WaitMode::Spin, WaitMode::Spin, 4)).expect("they varied");
    assert_eq!(mixed.hint, "`--cpu 0 --peer-cpu 1` (on two CPUs)");
    let mut pinned = sharing(WaitMode::Spin, WaitMode::Spin, 1);
    pinned.manifest.spec.here.cpu = Some(1);
    pinned.manifest.spec.peer.as_mut().expect("a local run has it").cpu = Some(1);
    assert_eq!(caveats(&pinned, "spin-on-one-cpu").len(), 1, "the caveat of the pins");
    assert_eq!(placement(&pinned), None);
}

/// A run with both ends spinning on CPUs of their own, of which every `nth` probe waits for a time slice.
fn spinning(nth: u64, slice_us: i64) -> InMemory {
    let round_trip = |seq: u64| if seq.is_multiple_of(nth) { slice_us } else { 17 };
    let mut source = InMemory::of(CLOSED, (0..100).map(|seq| on_cpus(seq, 0, 1, round_trip(seq))).collect());
    source.manifest.spec.here.wait = WaitMode::Spin;
    source.manifest.spec.peer.as_mut().expect("a local run has it").wait = WaitMode::Spin;
    source
}

#[test]
fn a_spinning_end_that_shares_its_cpu_is_a_warning() {
    let found = caveats(&spinning(2, 7_980), "spin-on-one-cpu").pop().expect("half of the probes waited");
    assert_eq!(found.severity, Severity::Warning);
    assert!(found.message.starts_with("50 % of the round trips took 1 ms or longer, the fastest 17 µs"), "{found:?}");
    assert!(!found.hint.contains("--wait spin"), "{}", found.hint);
    for quiet in [spinning(20, 7_980), spinning(2, 900)] {
        assert_eq!(caveats(&quiet, "spin-on-one-cpu"), []);
    }
    let mut blocking = spinning(2, 7_980);
    blocking.manifest.spec.here.wait = WaitMode::Block;
    blocking.manifest.spec.peer.as_mut().expect("a local run has it").wait = WaitMode::Block;
    assert_eq!(caveats(&blocking, "spin-on-one-cpu"), [], "who blocks is woken when an answer comes");
    let mut slow = spinning(2, 7_980);
    slow.rows.iter_mut().for_each(|row| row.received = row.received.map(|at| at + Nanos::from_millis(20)));
    assert_eq!(caveats(&slow, "spin-on-one-cpu"), [], "a slow path");
}
