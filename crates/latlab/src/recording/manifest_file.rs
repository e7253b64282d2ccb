//! `manifest.json` on disk: read whole, replaced whole, and writable even on a full disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Deserialize;

use super::error::RecordingError;
use super::manifest::{FormatVersion, Manifest};

/// The manifest's name in a recording's directory.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The next manifest: room that was taken while there was some.
const NEXT: &str = "manifest.next";
/// The least room: strays, caveats and conditions may grow.
const RESERVE_BYTES: u64 = 64 * 1024;
/// The facts of a host, most of a manifest, come again after the run; a server with hundreds of CPUs and
/// interrupts has hundreds of kilobytes of them. The rest is for counters that grow meanwhile.
const RESERVE_MANIFESTS: u64 = 3;

/// All that must be readable before the format is known to be readable.
#[derive(Deserialize)]
struct Versioned {
    format: FormatVersion,
}

/// The manifest of the recording in `directory`.
pub(crate) fn read(directory: &Path) -> Result<Manifest, RecordingError> {
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
    serde_json::from_slice(&bytes).map_err(|error| RecordingError::damaged(&path, error))
}

/// Replaces the manifest in one step. Takes no new room where [`reserve`] took some.
pub(crate) fn write(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut json = serde_json::to_vec_pretty(manifest)?;
    json.push(b'\n');
    let next = directory.join(NEXT);
    // Not truncated: that would give the reserved blocks back before they are used.
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&next)?;
    file.write_all(&json)?;
    file.set_len(json.len() as u64)?;
    file.sync_data()?;
    fs::rename(next, directory.join(MANIFEST))
}

/// The same of a recording that is finished, which nobody took room for: a disk that refuses leaves the manifest that is
/// there, and nothing beside it.
pub(crate) fn rewrite(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    write(directory, manifest).inspect_err(|_| _ = fs::remove_file(directory.join(NEXT)))
}

/// Takes room for the next [`write`], measured by the manifest that is there.
pub(crate) fn reserve(directory: &Path) -> io::Result<()> {
    let bytes = RESERVE_BYTES.max(RESERVE_MANIFESTS * fs::metadata(directory.join(MANIFEST))?.len());
    let mut zeros = io::repeat(0).take(bytes);
    // Zeros that are written, and not a hole: a hole takes no room.
    io::copy(&mut zeros, &mut File::create(directory.join(NEXT))?).map(drop)
}
