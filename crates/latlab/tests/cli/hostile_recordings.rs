//! Recordings in places that another process changes: files that are not regular, links, full disks; and nothing that remains
//! where nothing is recorded.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;

use crate::crash_safety::{in_own_mounts, measuring};
use crate::harness::{Latlab, contains, empty, wait_until};
use crate::store::{manifest, only_recording, open};

#[test]
fn a_file_of_a_recording_that_is_not_regular_is_refused_at_once() {
    let measured = Latlab::new().line("ping -n 50 -o sound --with-wakeup 1ms").success();
    let home = measured.directory();
    let place = |path: &Path, kind: &str| match kind {
        "a FIFO" => mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).expect("made"),
        "a directory" => fs::create_dir(path).expect("made"),
        "a link to a device" => symlink("/dev/zero", path).expect("linked"),
        _ => symlink(home.join("sound/manifest.json"), path).expect("linked"),
    };
    for kind in ["a FIFO", "a directory", "a link to a device", "a link"] {
        for name in ["manifest.json", "probes.parquet", "wakeups.parquet", "host.parquet", "events.spool"] {
            let copy = home.join("copy");
            _ = fs::remove_dir_all(&copy);
            fs::create_dir(&copy).expect("made");
            for file in fs::read_dir(home.join("sound")).expect("listed") {
                let file = file.expect("a file");
                fs::copy(file.path(), copy.join(file.file_name())).expect("copied");
            }
            _ = fs::remove_file(copy.join(name));
            place(&copy.join(name), kind);
            let shown = if kind.starts_with("a link") { "symbolic link" } else { kind };
            let ran = Latlab::at(home).line("summary copy").stdout(empty()).stderr(contains(name));
            ran.stderr(contains(shown)).stderr(contains("hint: ")).failure(2);
            Latlab::at(home).line("list --store .").success();
        }
    }
}

#[test]
fn a_recording_that_is_swapped_for_a_link_is_not_written_through() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (moved, victim) = (home.path().join("moved"), home.path().join("victim"));
    let running = measuring(home.path(), "-d 50s -i 2ms");
    let recording = only_recording(home.path());
    fs::create_dir(&victim).expect("made");
    fs::rename(&recording, &moved).expect("moved");
    symlink(&victim, &recording).expect("linked");
    running.signal(Signal::INT);
    running.exits(130);
    assert_eq!(fs::read_dir(&victim).expect("listed").count(), 0, "it was written through");
    assert_eq!(manifest(&moved)["ending"], "interrupted");
    assert!(open(&moved).1.len() > 10);
}

#[test]
fn a_file_of_a_recording_that_is_swapped_for_a_link_is_not_written_through() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let victim = home.path().join("victim");
    fs::write(&victim, "kept").expect("written");
    let running = measuring(home.path(), "-d 50s -i 2ms");
    let recording = only_recording(home.path());
    for name in ["manifest.next", "manifest.json", "probes.parquet.unfinished", "probes.parquet", "host.parquet"] {
        _ = fs::remove_file(recording.join(name));
        symlink(&victim, recording.join(name)).expect("linked");
    }
    running.signal(Signal::INT);
    running.exits(130);
    assert_eq!(fs::read_to_string(&victim).expect("there"), "kept");
    assert_eq!(manifest(&recording)["ending"], "interrupted");
    assert!(open(&recording).1.len() > 10);
}

#[test]
fn an_experiment_that_is_swapped_for_a_link_is_not_written_through() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (store, moved, victim) = (home.path().join("store"), home.path().join("moved"), home.path().join("victim"));
    let file = "kind = \"ping\"\n[base]\nduration = \"400ms\"\nwarmup = 0\n[factors]\nsize = [64, 256]\n\
                [design]\nruns = 4\nsettle = \"0s\"\n";
    fs::write(home.path().join("x.toml"), file).expect("written");
    let running = Latlab::at(home.path()).line("run x.toml --store store").start();
    let experiment = || fs::read_dir(&store).ok()?.flatten().map(|entry| entry.path()).find(|path| path.is_dir());
    let ended = |directory: &Path| {
        let journal = fs::read_to_string(directory.join("journal.jsonl")).unwrap_or_default();
        journal.matches("run_ended").count()
    };
    wait_until("two runs have ended", || experiment().is_some_and(|directory| ended(&directory) >= 2));
    let directory = experiment().expect("it began");
    fs::create_dir_all(victim.join("runs")).expect("made");
    fs::rename(&directory, &moved).expect("moved");
    symlink(&victim, &directory).expect("linked");
    // The report finds no recordings at the path.
    running.exits_with_one_of(&[0, 1, 2, 3, 4]);
    assert_eq!(fs::read_dir(victim.join("runs")).expect("listed").count(), 0, "it was written through");
    assert_eq!(fs::read_dir(&victim).expect("listed").count(), 1, "it was written through");
    assert!(ended(&moved) > 2, "the runs go on where they began");
}

#[test]
fn a_run_that_a_full_disk_ended_is_taken_again_when_there_is_space() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = "name = \"x\"\nkind = \"ping\"\n[base]\ncount = 40_000\nwarmup = 0\n\
                [factors]\nsize = [64, 256]\n[design]\nruns = 1\n";
    fs::write(home.path().join("x.toml"), file).expect("written");
    // Keeps going, and still does not go through all runs on the full disk.
    let script = "mkdir disk && mount -t tmpfs -o size=1m tmpfs disk && \
                  \"$0\" run x.toml --store disk --keep-going; echo \"run ended with $?\"; \
                  grep -h run_ended disk/*/journal.jsonl; mount -o remount,size=200m disk && \
                  \"$0\" run x.toml --store disk >report; echo \"second run ended with $?\"; \
                  grep -h run_ended disk/*/journal.jsonl | grep -c completed";
    let Some((_, printed)) = in_own_mounts(home.path(), script, &[]) else { return };
    assert!(printed.contains("run ended with 3\n") && printed.contains("(ENOSPC)"), "{printed}");
    assert!(!printed.contains("\"outcome\":\"failed\""), "{printed}");
    assert!(printed.contains("second run ended with 0\n") && printed.contains("\n2\n"), "{printed}");
}

#[test]
fn nothing_remains_of_a_run_without_recording() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let temporary = home.path().join("tmp");
    fs::create_dir(&temporary).expect("made");
    let begun = |line: &str| {
        let lab = Latlab::at(home.path()).line("ping --no-record --warmup 0").line(line);
        let running = lab.environment("TMPDIR", &temporary).start();
        let descriptors = format!("/proc/{}/fd", running.pid().as_raw_nonzero());
        let is_there = |link: &Path| {
            fs::read_link(link)
                .is_ok_and(|to| to.starts_with(&temporary) && fs::metadata(link).is_ok_and(|file| file.len() > 1_000))
        };
        wait_until("it recorded without a name", || {
            let links = fs::read_dir(&descriptors).into_iter().flatten();
            links.flatten().any(|link| is_there(&link.path()))
        });
        running
    };
    let remaining = || fs::read_dir(&temporary).expect("listed").count();
    let running = begun("-d 50s -i 1ms");
    assert_eq!(remaining(), 0, "while it runs");
    running.signal(Signal::INT);
    assert!(running.exits(130).stdout.contains("round trip delay"));
    let running = begun("-d 50s -i 1ms");
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    assert_eq!(remaining(), 0, "after kill -9");
    assert_eq!(fs::read_dir(home.path()).expect("listed").count(), 1, "no store either");
}
