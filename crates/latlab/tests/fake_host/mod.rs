//! A fake host: knobs are files below a temporary root, and inotify(7) reports each write to them. Used by the tests of
//! the guard and by those of the binary.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;
use tempfile::TempDir;

/// A temporary directory with the root of a host in `host/`; its journal is in `state/journal/`.
pub(crate) struct FakeHost {
    directory: TempDir,
    inotify: OwnedFd,
    watched: Vec<(i32, &'static str)>,
}

impl FakeHost {
    /// A host with these files and contents, which are watched.
    pub(crate) fn with(files: &[(&'static str, &str)]) -> FakeHost {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for name in ["host", "state"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let inotify = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
        let mut host = FakeHost { directory, inotify, watched: Vec::new() };
        for (file, text) in files {
            host.write(file, text);
            let watch = inotify::add_watch(&host.inotify, host.path(file), inotify::WatchFlags::MODIFY);
            host.watched.push((watch.expect("a file"), file));
        }
        host
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The root of the host.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory().join("host")
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root().join(file)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("a file").trim().to_owned()
    }

    /// The watched files that were written since the last call, in order. Successive events of one file are merged by
    /// inotify(7): a file that is set last and restored first is listed once.
    pub(crate) fn written(&self) -> Vec<&'static str> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut files = Vec::new();
        while let Ok(event) = events.next() {
            files.extend(self.watched.iter().find(|(watch, _)| *watch == event.wd()).map(|(_, file)| *file));
        }
        files
    }

    /// Environment variables that make a process use this host.
    #[allow(dead_code, reason = "tests of the guard start no process")]
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LATLAB_HOST_ROOT", self.root()), ("LATLAB_STATE_DIR", self.directory().join("state"))]
    }

    /// The directory of its journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.directory().join("state/journal")
    }

    /// The number of pages in its journal: one file for each process that changed settings.
    pub(crate) fn pages(&self) -> usize {
        fs::read_dir(self.journal()).map_or(0, Iterator::count)
    }
}
