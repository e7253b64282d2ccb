//! The files of a host under a root directory, so that tests can provide the files of another host.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The root of `/proc` and `/sys`.
#[derive(Clone, Debug)]
pub struct HostRoot {
    path: PathBuf,
}

impl HostRoot {
    pub fn new(path: impl Into<PathBuf>) -> HostRoot {
        HostRoot { path: path.into() }
    }

    pub fn live() -> HostRoot {
        HostRoot::new("/")
    }

    /// Whether it is this host, which system calls and programs describe too.
    pub fn is_live(&self) -> bool {
        self.path.as_os_str() == "/"
    }

    /// The root, `None` if it is this host.
    pub fn elsewhere(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|_| !self.is_live())
    }

    /// The host whose knobs are set: this one, or that of a test under `LATLAB_HOST_ROOT`, unless this process has rights
    /// that the user who set the environment lacks.
    pub fn for_knobs() -> HostRoot {
        let named = std::env::var_os("LATLAB_HOST_ROOT").filter(|root| !root.is_empty());
        match named.filter(|_| !latlab_sys::process::started_with_more_rights()) {
            Some(root) => HostRoot::new(Path::new(&root)),
            None => HostRoot::live(),
        }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    pub(super) fn bytes(&self, file: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(file))
    }

    /// The trimmed text of `file`.
    pub(super) fn line(&self, file: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(file)?).trim().to_owned())
    }

    /// Writes `text` into `file`, which must exist.
    pub(super) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::OpenOptions::new().write(true).truncate(true).open(self.path(file))?.write_all(text.as_bytes())
    }

    /// The trimmed text of `file`, given without the leading slash, or why it cannot be read.
    pub fn text(&self, file: &str) -> Result<String, String> {
        match fs::read(self.path.join(file)) {
            // Device tree strings end in NUL.
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_matches(['\0', '\n', ' ']).to_owned()),
            Err(error) => Err(format!("/{file}: {}", latlab_sys::errno::explain(&error))),
        }
    }

    /// Opens `file`, given without the leading slash, for reading.
    pub fn open(&self, file: &str) -> io::Result<File> {
        File::open(self.path.join(file))
    }

    /// The number in `file`, or why it cannot be read.
    pub fn number<T: std::str::FromStr>(&self, file: &str) -> Result<T, String> {
        let text = self.text(file)?;
        text.parse().map_err(|_| format!("/{file}: `{text}` is not a number"))
    }

    /// The names in `directory`, sorted; none without such a directory.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path.join(directory)).into_iter().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

/// The CPUs of a list of the kernel (`0-3,6`), in its order, which is ascending; `None` if it is not such a list.
pub(super) fn parse_cpu_list(list: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A fake host: files that a test writes.
    pub(crate) struct FakeHost {
        pub root: HostRoot,
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
    fn lists_of_cpus_have_ranges_and_single_cpus() {
        assert_eq!(parse_cpu_list("0-2,6\n"), Some(vec![0, 1, 2, 6]));
        assert_eq!(parse_cpu_list("3"), Some(vec![3]));
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
        assert_eq!(parse_cpu_list("0-x"), None);
    }
}
