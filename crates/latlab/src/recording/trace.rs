//! What the kernel's tracer saw, as text beside the rows. It takes the room that rows and manifest have left over: it
//! comes last, once the spool is gone, and a disk without room for it costs it only.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use latlab_sys::errno::explain;

use super::manifest_file;
use super::writer::Finished;
use crate::diagnostics::{Caveat, Severity};

/// The file that holds a trace, and its name while it is written.
const TRACE: &str = "trace.txt";
const UNFINISHED: &str = "trace.txt.unfinished";
/// What a run says that has none.
const MISSING: &str = "trace-missing";

/// What a run says until its trace is kept: true also of one that dies before.
pub(crate) fn trace_awaited() -> Caveat {
    missing("latlab ended before it was kept", "measure again")
}

/// What a run says whose trace could not be had.
pub(crate) fn trace_missing(error: &io::Error) -> Caveat {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "as root, or with `cap_sys_admin`",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, or another place with `--store`",
        io::ErrorKind::InvalidInput => "without `--no-record`: it would be a part of the recording",
        io::ErrorKind::ReadOnlyFilesystem => "a place with `--store` that stays writable",
        _ => "a kernel with tracefs and its scheduler events",
    };
    missing(&explain(error), hint)
}

fn missing(reason: &str, hint: &str) -> Caveat {
    Caveat::new(
        Severity::Note,
        MISSING,
        format!("there is no trace around the late wake-up: {reason}"),
        "what ran on the CPU then is not known",
        hint,
    )
}

impl Finished {
    /// Keeps `text` beside the rows and names it in the manifest, in the place of [`trace_awaited`]. Where either cannot
    /// be written, no part of the file is left, and the manifest says why as well as it can be written.
    pub(crate) fn keep_trace(&mut self, text: &str) {
        let kept = write(&self.path, text).and_then(|()| self.tell(None));
        if let Err(error) = kept {
            _ = fs::remove_file(self.path.join(TRACE));
            // Where not even this can be told, the manifest says that latlab did not come to keep it.
            _ = self.tell(Some(&error));
        }
    }

    fn tell(&mut self, refusal: Option<&io::Error>) -> io::Result<()> {
        let mut manifest = self.manifest.clone();
        manifest.caveats.retain(|caveat| caveat.code != MISSING);
        manifest.caveats.extend(refusal.map(trace_missing));
        if let Some(facts) = &mut manifest.run.wakeup {
            facts.trace = refusal.is_none().then(|| TRACE.to_owned());
        }
        manifest_file::rewrite(&self.path, &manifest)?;
        self.manifest = manifest;
        Ok(())
    }
}

fn write(directory: &Path, text: &str) -> io::Result<()> {
    let unfinished = directory.join(UNFINISHED);
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&unfinished, directory.join(TRACE))
    });
    written.inspect_err(|_| _ = fs::remove_file(&unfinished))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::facts::WakeupFacts;
    use crate::plan::{RunSpec, Via, WakeupCpus, WakeupSpec, Work};
    use crate::recording::manifest::{Manifest, RunEnding};
    use crate::recording::{Recording, RecordingWriter, Store};
    use crate::units::Nanos;

    fn finished(directory: &Path) -> Finished {
        let interval_ns = Nanos::from_millis(1);
        let (via, cpus) = (Via::ClockNanosleep, WakeupCpus::Anywhere);
        let spec = WakeupSpec { via, interval_ns, relative: false, cpus, break_ns: Some(interval_ns) };
        let run = RunSpec::here(Work::Wakeup(spec));
        let mut manifest = Manifest::of(run, "0123456789abcdef".into(), "2026-11-22T00:00:00Z".into());
        manifest.run.wakeup = Some(WakeupFacts::default());
        manifest.caveats.push(trace_awaited());
        let store = Store::open(directory).expect("opens");
        let mut writer = RecordingWriter::create(&store, None, manifest).expect("created");
        let log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
        writer.finish(log, RunEnding::Completed, None).expect("finished")
    }

    /// What the recording says of its trace: its file, and why there is none.
    fn told(finished: &Finished) -> (Option<String>, Vec<String>) {
        let recording = Recording::open(&finished.path).expect("opens");
        assert_eq!(recording.manifest(), &finished.manifest);
        let manifest = recording.manifest();
        let caveats = manifest.caveats.iter().map(|caveat| format!("{}; {}", caveat.message, caveat.hint));
        (manifest.run.wakeup.clone().and_then(|facts| facts.trace), caveats.collect())
    }

    #[test]
    fn a_trace_stands_beside_the_rows_and_in_the_manifest() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let mut finished = finished(directory.path());
        assert!(told(&finished).1[0].contains("latlab ended before it was kept"));
        finished.keep_trace("who ran\n");
        assert_eq!(told(&finished), (Some(TRACE.into()), vec![]));
        assert_eq!(fs::read_to_string(finished.path.join(TRACE)).expect("kept"), "who ran\n");
        assert!(!finished.path.join(UNFINISHED).exists());
    }

    #[test]
    fn a_trace_that_cannot_be_kept_leaves_no_part_of_it_and_says_why() {
        for name in [UNFINISHED, TRACE] {
            let directory = tempfile::tempdir().expect("temporary directory");
            let mut finished = finished(directory.path());
            fs::create_dir(finished.path.join(name)).expect("made");
            finished.keep_trace("who ran\n");
            let (trace, why) = told(&finished);
            assert_eq!((trace, why.len()), (None, 1));
            assert!(why[0].contains("EISDIR") && !finished.path.join(name).is_file(), "{why:?}");
            assert!(!finished.path.join(UNFINISHED).is_file(), "half a trace stays");
        }
    }

    #[test]
    fn the_hint_goes_by_the_cause() {
        for (errno, word) in [(1, "cap_sys_admin"), (13, "cap_sys_admin"), (28, "--store"), (2, "tracefs")] {
            let caveat = trace_missing(&io::Error::from_raw_os_error(errno));
            assert!(caveat.hint.contains(word), "{caveat:?}");
        }
    }
}
