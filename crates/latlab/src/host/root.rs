//! Where a host tells about itself: files under a root, so that tests can build a host of their own.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The root of `/proc` and `/sys`.
#[derive(Clone, Debug)]
pub struct HostRoot {
    path: PathBuf,
}

impl HostRoot {
    /// The host under `path`.
    pub fn new(path: impl Into<PathBuf>) -> HostRoot {
        HostRoot { path: path.into() }
    }

    /// This host.
    pub fn live() -> HostRoot {
        HostRoot::new("/")
    }

    /// Whether this is the host that system calls and programs speak of, and not a picture of one.
    pub fn is_live(&self) -> bool {
        self.path.as_os_str() == "/"
    }

    /// Where it is, unless it is this host.
    pub fn elsewhere(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|_| !self.is_live())
    }

    /// The host whose knobs are turned: this one, or the tests' own under `LATLAB_HOST_ROOT`, unless this process
    /// has rights that whoever set the environment lacks.
    pub fn of_knobs() -> HostRoot {
        let named = std::env::var_os("LATLAB_HOST_ROOT").filter(|root| !root.is_empty());
        match named.filter(|_| !latlab_sys::process::started_with_more_rights()) {
            Some(root) => HostRoot::new(Path::new(&root)),
            None => HostRoot::live(),
        }
    }

    /// Where `file` is.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// All of `file`, as it is.
    pub(super) fn bytes(&self, file: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(file))
    }

    /// The trimmed text of `file`.
    pub(super) fn line(&self, file: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(file)?).trim().to_owned())
    }

    /// Writes `text` into `file`, which must exist.
    pub(super) fn put(&self, file: &str, text: &str) -> io::Result<()> {
        fs::OpenOptions::new().write(true).truncate(true).open(self.path(file))?.write_all(text.as_bytes())
    }

    /// The trimmed text of `file`, given without the leading slash; or why it cannot be had.
    pub fn text(&self, file: &str) -> Result<String, String> {
        match fs::read(self.path.join(file)) {
            // Device tree strings end in NUL.
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_matches(['\0', '\n', ' ']).to_owned()),
            Err(error) => Err(format!("/{file}: {}", latlab_sys::errno::explain(&error))),
        }
    }

    /// Opens `file` to be read, given without the leading slash.
    pub fn open(&self, file: &str) -> io::Result<File> {
        File::open(self.path.join(file))
    }

    /// The number that is all of `file`; or why it cannot be had.
    pub fn number<T: std::str::FromStr>(&self, file: &str) -> Result<T, String> {
        let text = self.text(file)?;
        text.parse().map_err(|_| format!("/{file}: `{text}` is no number"))
    }

    /// The names in `directory`, sorted; none where there is no such directory.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path.join(directory)).into_iter().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A host made of the files that a test writes.
    pub(crate) struct FakeHost {
        pub(crate) root: HostRoot,
        directory: tempfile::TempDir,
    }

    impl FakeHost {
        pub(crate) fn new() -> FakeHost {
            let directory = tempfile::tempdir().expect("a temporary directory");
            FakeHost { root: HostRoot::new(directory.path()), directory }
        }

        pub(crate) fn with(self, file: &str, text: &str) -> FakeHost {
            let path = self.directory.path().join(file);
            fs::create_dir_all(path.parent().expect("inside the root")).expect("a directory");
            fs::write(path, text).expect("a file");
            self
        }
    }

    #[test]
    fn a_file_without_a_number_says_what_it_holds() {
        let host = FakeHost::new().with("proc/x", "many\n");
        assert_eq!(host.root.number::<u64>("proc/x"), Err("/proc/x: `many` is no number".into()));
    }
}
