//! Round trips of the bare loop on this host, as `latlab doctor --calibrate` measured them: the lower limit that every
//! summary of a run in the same conditions states. A figure holds for one boot.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::facts::{BareConditions, BareLoop};
use crate::platform::input_file;

/// The longest file that is read; one of ten thousand conditions is shorter.
const FILE_MAX_BYTES: u64 = 4 << 20;

/// The calibrations of this host, in the user's state directory.
#[derive(Clone, Debug)]
pub struct Calibrations {
    path: PathBuf,
}

impl Calibrations {
    /// `$XDG_STATE_HOME/latlab/calibrations.json`, else below `~/.local/state`; `None` without a home directory.
    pub fn for_user() -> Option<Calibrations> {
        let state = match env::var_os("XDG_STATE_HOME").filter(|value| !value.is_empty()) {
            Some(directory) => PathBuf::from(directory),
            None => Path::new(&env::var_os("HOME")?).join(".local/state"),
        };
        Some(Calibrations { path: state.join("latlab/calibrations.json") })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All that are kept; none without a readable file.
    fn all(&self) -> Vec<BareLoop> {
        input_file::read(&self.path, FILE_MAX_BYTES)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// The one that was measured in that boot and in these conditions.
    pub fn find(&self, boot_id: Option<&str>, wanted: &BareConditions) -> Option<BareLoop> {
        self.all().into_iter().find(|known| known.boot_id.as_deref() == boot_id && known.conditions == *wanted)
    }

    /// Keeps `new` in place of an older one of the same conditions; removes those of other boots.
    pub fn keep(&self, new: &BareLoop) -> io::Result<()> {
        let mut all = self.all();
        all.retain(|known| known.boot_id == new.boot_id && known.conditions != new.conditions);
        all.push(new.clone());
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        // Written and renamed, so that a reader finds the old file or the new one.
        let unfinished = self.path.with_extension(format!("{}.unfinished", std::process::id()));
        fs::write(&unfinished, serde_json::to_vec_pretty(&all)?)?;
        fs::rename(&unfinished, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(wait: &str) -> BareConditions {
        BareConditions { size_bytes: 64, wait: wait.into(), cpu: Some(0), peer_cpu: Some(1), fifo: None }
    }

    fn measured(boot: &str, wait: &str, p50_ns: f64) -> BareLoop {
        BareLoop {
            p50_ns,
            p99_ns: p50_ns * 2.0,
            n: 1_000,
            conditions: conditions(wait),
            measured_at: "2026-11-21T00:00:00Z".into(),
            boot_id: Some(boot.into()),
        }
    }

    #[test]
    fn the_newest_of_the_same_conditions_and_boot_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Calibrations { path: directory.path().join("state/calibrations.json") };
        assert_eq!(kept.find(Some("a"), &conditions("block")), None);
        for calibration in [
            measured("old", "block", 1.0),
            measured("a", "block", 2.0),
            measured("a", "spin", 3.0),
            measured("a", "block", 4.0),
        ] {
            kept.keep(&calibration).unwrap();
        }
        assert_eq!(kept.find(Some("a"), &conditions("block")).unwrap().p50_ns, 4.0);
        assert_eq!(kept.find(Some("a"), &conditions("spin")).unwrap().p50_ns, 3.0);
        assert_eq!(kept.find(Some("old"), &conditions("block")), None);
        let fifo = BareConditions { fifo: Some(50), ..conditions("block") };
        assert_eq!(kept.find(Some("a"), &fifo), None, "the priority differs");
    }

    #[test]
    fn a_damaged_file_holds_no_calibration() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Calibrations { path: directory.path().join("calibrations.json") };
        fs::write(&kept.path, "{").unwrap();
        assert_eq!(kept.find(Some("a"), &conditions("block")), None);
    }
}
