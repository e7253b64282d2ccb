//! Reads and replaces `manifest.json` on disk, each time as a whole. Space is reserved for its next version, so that it can
//! be written on a full disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Deserialize;

use super::error::RecordingError;
use super::manifest::{FormatVersion, Manifest};

/// The manifest's name in a recording's directory.
pub(super) const MANIFEST: &str = "manifest.json";
/// The file of the next manifest. Before that is written, the file only reserves space.
const NEXT: &str = "manifest.next";
/// The minimum of reserved space: the strays, caveats and conditions in the manifest may grow.
const RESERVE_BYTES: u64 = 64 * 1024;
/// Space to reserve, in multiples of the manifest. The facts of the hosts, which are most of a manifest, are read again
/// after the run; those of a server with hundreds of CPUs and interrupts have hundreds of kilobytes. The rest is for
/// counters that grow.
const RESERVE_MANIFESTS: u64 = 3;

/// The part of a manifest that every version can read.
#[derive(Deserialize)]
struct Versioned {
    format: FormatVersion,
}

/// Reads the manifest of the recording in `directory`.
pub(super) fn read(directory: &Path) -> Result<Manifest, RecordingError> {
    let path = directory.join(MANIFEST);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RecordingError::NotARecording { path: directory.to_owned() });
        }
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            return Err(RecordingError::damaged(path, "a directory stands in its place"));
        }
        read => read.map_err(RecordingError::refused("read", &path))?,
    };
    if bytes.is_empty() {
        return Err(RecordingError::damaged(path, "0 bytes"));
    }
    let Versioned { format } = serde_json::from_slice(&bytes).map_err(|error| RecordingError::damaged(&path, error))?;
    if format.major > FormatVersion::CURRENT.major {
        return Err(RecordingError::NewerVersion { path: directory.to_owned(), found: format });
    }
    let mut manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|error| RecordingError::damaged(&path, error))?;
    // Older recordings of pings and streams have the priority in the spec only.
    manifest.condition.fifo = manifest.condition.fifo.or(manifest.spec.here.fifo);
    Ok(manifest)
}

/// Replaces the manifest in one step. Needs no new space after [`reserve`].
pub(super) fn write(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut json = serde_json::to_vec_pretty(manifest)?;
    json.push(b'\n');
    let next = directory.join(NEXT);
    // Not truncated: that would free the reserved blocks before they are used.
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&next)?;
    file.write_all(&json)?;
    file.set_len(json.len() as u64)?;
    file.sync_data()?;
    fs::rename(next, directory.join(MANIFEST))
}

/// Replaces the manifest of a finished recording, for which no space is reserved. An error leaves the old manifest and no
/// other file.
pub(super) fn rewrite(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    write(directory, manifest).inspect_err(|_| _ = fs::remove_file(directory.join(NEXT)))
}

/// Reserves space for the next [`write`], by the length of the present manifest.
pub(super) fn reserve(directory: &Path) -> io::Result<()> {
    let bytes = RESERVE_BYTES.max(RESERVE_MANIFESTS * fs::metadata(directory.join(MANIFEST))?.len());
    let mut zeros = io::repeat(0).take(bytes);
    // Written zeros: a hole would occupy no space.
    io::copy(&mut zeros, &mut File::create(directory.join(NEXT))?).map(drop)
}
