//! What the host did while a real run went on.

use std::fs;

use latlab::facts::HostSample;
use latlab::plan::Side;
use latlab::recording::Recording;
use rustix::process::Signal;

use crate::harness::{Latlab, wait_until};
use crate::store::{only_recording, recordings};

fn samples(recording: &Recording) -> Vec<HostSample> {
    let samples = recording.host_samples().expect("opens").map(|sample| sample.expect("reads"));
    samples
        .map(|(side, sample)| {
            assert_eq!(side, Side::Local);
            sample
        })
        .collect()
}

#[test]
fn every_run_is_framed_by_samples_of_its_host() {
    let ran = Latlab::new().line("ping -n 50 -i 1ms --warmup 0 -s 64,128 --json").measured();
    assert_eq!(ran.json()["schema"], "latlab.summaries/1");
    let recordings = recordings(ran.directory());
    assert_eq!(recordings.len(), 2);
    let mut seen = Vec::new();
    for path in recordings {
        let recording = Recording::open(&path).expect("opens");
        let samples = samples(&recording);
        let batch = recording
            .probes(&latlab::recording::ProbeColumn::ALL)
            .expect("opens")
            .next()
            .expect("rows")
            .expect("reads");
        let sent: Vec<i64> = batch.sent_ns.values.clone();
        let (first, last) = (samples.first().expect("before"), samples.last().expect("after"));
        // The last one is asked for when the measuring thread has ended; the first one may just have begun.
        assert!(samples.len() >= 2 && last.end_ns > *sent.last().expect("probes"), "{samples:?}");
        assert!(first.start_ns < last.start_ns && last.host.own_ns > first.host.own_ns);
        assert!(first.cpus.iter().all(|(_, cpu)| cpu.busy_ns.is_some()));
        seen.push(samples);
    }
    assert_eq!(seen[0], seen[1], "each of several recordings has all samples");
}

#[test]
fn samples_survive_the_death_of_the_process() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("ping --warmup 0 -d 50s").start();
    // The host's row and a CPU's are 384 bytes; of three samples at least.
    wait_until("samples were taken", || {
        let spools = recordings(home.path()).into_iter().map(|recording| recording.join("host.spool"));
        spools.filter_map(|spool| fs::metadata(spool).ok()).any(|spool| spool.len() > 64 + 3 * 384)
    });
    running.signal(Signal::KILL);
    running.is_killed_by(Signal::KILL);
    Latlab::at(home.path()).line("summary").arg(only_recording(home.path())).success();
    let recording = Recording::open(&only_recording(home.path())).expect("opens");
    let samples = samples(&recording);
    assert!(samples.len() >= 2 && samples.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
    assert!(!recording.path().join("host.spool").exists() && recording.manifest().host_rows.is_some());
}
