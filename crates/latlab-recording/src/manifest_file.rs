//! Reads and replaces `manifest.json` on disk, each time as a whole. Space is reserved for its next version, so that it can
//! be written on a full disk.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::ops::Not;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::checksums::{check_seal, seal};
use super::error::RecordingError;
use super::manifest::{EndFacts, FormatVersion, Manifest};
use crate::platform::{Directory, input_file};

/// The manifest's name in a recording's directory.
pub(super) const MANIFEST: &str = "manifest.json";
/// The file of the next manifest. Before that is written, the file only reserves space.
pub(super) const NEXT: &str = "manifest.next";
/// The longest manifest: a server with a thousand CPUs and interrupts has a few megabytes.
const MAX_BYTES: u64 = 64 << 20;
/// The minimum of reserved space: the strays, caveats and conditions in the manifest may grow.
const RESERVE_BYTES: u64 = 64 * 1024;
/// Space to reserve, in multiples of the manifest. The facts of the hosts, which are most of a manifest, are read again
/// after the run; those of a server with hundreds of CPUs and interrupts have hundreds of kilobytes. The rest is for
/// counters that grow, and for checksums.
const RESERVE_MANIFESTS: u64 = 3;

/// The part of a manifest that every version can read, and whether its `peer` has to be filled in.
#[derive(Deserialize)]
struct Versioned {
    format: FormatVersion,
    #[serde(default)]
    peer_is_here: bool,
}

/// A manifest as it is stored: facts of the peer that are those of this end are stored once.
#[derive(Serialize)]
struct Stored<'a> {
    #[serde(flatten)]
    manifest: Cow<'a, Manifest>,
    /// Of the spec, for readers that do not know all its variants; not read.
    condition: Map<String, Value>,
    #[serde(skip_serializing_if = "Not::not")]
    peer_is_here: bool,
}

impl Stored<'_> {
    fn of(manifest: &Manifest) -> Stored<'_> {
        let peer_is_here = manifest.peer == manifest.here && manifest.peer != EndFacts::default();
        let manifest = if peer_is_here {
            Cow::Owned(Manifest { peer: EndFacts::default(), ..manifest.clone() })
        } else {
            Cow::Borrowed(manifest)
        };
        Stored { condition: manifest.spec.condition(), manifest, peer_is_here }
    }
}

/// Reads the manifest of the recording in `directory`.
pub(super) fn read(directory: &Directory) -> Result<Manifest, RecordingError> {
    let path = directory.path_of(MANIFEST);
    let bytes = match directory.file(MANIFEST).and_then(|file| input_file::read_open(file, MAX_BYTES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RecordingError::NotARecording { path: directory.path().to_owned() });
        }
        read => read.map_err(RecordingError::unreadable("read", &path))?,
    };
    if bytes.is_empty() {
        return Err(RecordingError::damaged(path, "0 bytes"));
    }
    let damaged = |what: String| RecordingError::damaged(&path, what);
    // A changed manifest of a newer version is damaged too.
    let sealed = check_seal(&bytes).transpose().map_err(damaged)?.is_some();
    let Versioned { format, peer_is_here } =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if format.major > FormatVersion::CURRENT.major {
        return Err(RecordingError::NewerVersion { path: directory.path().to_owned(), found: format });
    }
    if !sealed && format.has_checksums() {
        return Err(damaged("it does not end with its checksum, `crc32c`".into()));
    }
    let mut manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if peer_is_here {
        manifest.peer = manifest.here.clone();
    }
    // Declares those of numbers that a command printed, so that a request can name them.
    _ = manifest.spec.metrics();
    Ok(manifest)
}

/// Replaces the manifest in one step. Needs no new space after [`reserve`].
pub(super) fn write(directory: &Directory, manifest: &Manifest) -> io::Result<()> {
    let json = seal(serde_json::to_vec_pretty(&Stored::of(manifest))?);
    // Not truncated: that would free the reserved blocks before they are used.
    let mut file = directory.overwrite_file(NEXT)?;
    file.write_all(&json)?;
    file.set_len(json.len() as u64)?;
    file.sync_data()?;
    directory.rename(NEXT, MANIFEST)
}

/// Replaces the manifest of a finished recording, for which no space is reserved. An error leaves the old manifest and no
/// other file.
pub(super) fn rewrite(directory: &Directory, manifest: &Manifest) -> io::Result<()> {
    write(directory, manifest).inspect_err(|_| _ = directory.remove(NEXT))
}

/// Reserves space for the next [`write`], by the length of the present manifest.
pub(super) fn reserve(directory: &Directory) -> io::Result<()> {
    let bytes = RESERVE_BYTES.max(RESERVE_MANIFESTS * directory.file(MANIFEST)?.metadata()?.len());
    let mut zeros = io::repeat(0).take(bytes);
    // Written zeros: a hole would occupy no space.
    io::copy(&mut zeros, &mut directory.replace_file(NEXT)?).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::facts::HostFacts;
    use crate::plan::{RunSpec, Via, WakeupCpus, WakeupSpec, Work};
    use crate::units::Nanos;

    /// A manifest of format 1.`minor` with facts of two ends on one host, those after the run only if they are `known`.
    fn manifest(minor: u16, known: bool) -> Manifest {
        let (via, cpus) = (Via::ClockNanosleep, WakeupCpus::Anywhere);
        let spec = WakeupSpec { via, interval_ns: Nanos::from_millis(1), relative: false, cpus, break_ns: None };
        let run = RunSpec::here(Work::Wakeup(spec));
        let facts = |ticks: u64| HostFacts { steal_ticks: Some(ticks), ..HostFacts::default() };
        let end = EndFacts { before: Some(facts(7)), after: known.then(|| facts(9)), ..EndFacts::default() };
        let (format, here, peer) = (FormatVersion { major: 1, minor }, end.clone(), end);
        let new = Manifest::new(run, "0123456789abcdef".into(), "2026-11-22T00:00:00Z".into());
        Manifest { format, here, peer, ..new }
    }

    /// The file of `manifest`, from which it is read as it was.
    fn stored(manifest: &Manifest) -> Value {
        let folder = tempfile::tempdir().expect("temporary directory");
        let directory = Directory::open(folder.path()).expect("opens");
        write(&directory, manifest).expect("written");
        assert_eq!(&read(&directory).expect("reads"), manifest);
        serde_json::from_slice(&fs::read(folder.path().join(MANIFEST)).expect("a file")).expect("JSON")
    }

    #[test]
    fn manifests_keep_their_version_and_have_changes_and_facts_of_one_end() {
        for minor in [0, 8, 9, FormatVersion::CURRENT.minor] {
            let json = stored(&manifest(minor, true));
            assert_eq!(json["format"], json!({"major": 1, "minor": minor}));
            assert_eq!((&json["here"]["changes"], &json["peer_is_here"]), (&json!({"steal_ticks": 9}), &json!(true)));
            assert!(json["here"].get("after").is_none() && json["peer"]["before"].is_null(), "{json:#}");
        }
    }
}
