//! A host of files, with the kernel as witness of every write: inotify. For tests of the guard and of the binary alike.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;

/// Files below a root, some of them watched.
pub(crate) struct WatchedHost {
    root: PathBuf,
    witness: OwnedFd,
    watched: Vec<(i32, &'static str)>,
}

impl WatchedHost {
    /// Files and what they hold, watched from now on.
    pub(crate) fn at(root: PathBuf, files: &[(&'static str, &str)]) -> WatchedHost {
        let witness = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
        let mut host = WatchedHost { root, witness, watched: Vec::new() };
        for (file, text) in files {
            host.write(file, text);
            let watch = inotify::add_watch(&host.witness, host.path(file), inotify::WatchFlags::CLOSE_WRITE);
            host.watched.push((watch.expect("a file"), file));
        }
        host
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("a file").trim().to_owned()
    }

    /// The files that were written since it was last asked, in order. inotify(7) tells of two events of one file
    /// with none between them only once: the last that is set is the first that is put back.
    pub(crate) fn written(&self) -> Vec<&'static str> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.witness, &mut room);
        let mut files = Vec::new();
        while let Ok(event) = events.next() {
            files.extend(self.watched.iter().find(|(watch, _)| *watch == event.wd()).map(|(_, file)| *file));
        }
        files
    }
}
