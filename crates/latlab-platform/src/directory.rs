//! A directory by its descriptor: its files are reached relative to it, and links are not followed. So a link that takes the
//! place of the directory, or of one of its files, is never written through.
//!
//! A nameless directory has files without names in the file system: nothing of them remains, however the process ends.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::input_file;

#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Named(OwnedFd),
    Nameless(Mutex<BTreeMap<String, File>>),
}

impl Directory {
    /// The directory at `path`; links on the way to it are followed, since the user named it.
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn open(path: &Path) -> io::Result<Directory> {
        Directory::open_with(path, OFlags::empty())
    }

    /// A new directory at `path`.
    ///
    /// # Errors
    /// Those of mkdirat(2) and openat(2); `EEXIST` if anything is there.
    pub fn create(path: &Path) -> io::Result<Directory> {
        mkdirat(CWD, path, Mode::from_raw_mode(0o777))?;
        Directory::open_with(path, OFlags::NOFOLLOW)
    }

    fn open_with(path: &Path, flags: OFlags) -> io::Result<Directory> {
        let flags = flags | OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let place = Place::Named(openat(CWD, path, flags, Mode::empty())?);
        Ok(Directory { path: path.to_owned(), place })
    }

    /// A new directory `name` in this one.
    ///
    /// # Errors
    /// Those of mkdirat(2) and openat(2); `EEXIST` if anything is there.
    pub fn create_directory(&self, name: &str) -> io::Result<Directory> {
        let Place::Named(descriptor) = &self.place else { return Directory::create(&self.path_of(name)) };
        mkdirat(descriptor, name, Mode::from_raw_mode(0o777))?;
        self.directory(name)
    }

    /// Its directory `name`, which is not a link.
    ///
    /// # Errors
    /// Those of openat(2); a nameless directory has none.
    pub fn directory(&self, name: &str) -> io::Result<Directory> {
        let Place::Named(descriptor) = &self.place else { return Err(ErrorKind::NotFound.into()) };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let place = Place::Named(openat(descriptor, name, flags, Mode::empty())?);
        Ok(Directory { path: self.path_of(name), place })
    }

    /// A nameless directory, whose files use space in the directory `path`, which exists.
    pub fn nameless(path: &Path) -> Directory {
        Directory { path: path.to_owned(), place: Place::Nameless(Mutex::default()) }
    }

    /// Whether its files have no names.
    pub const fn is_nameless(&self) -> bool {
        matches!(self.place, Place::Nameless(_))
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of its file `name`, for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether it was removed: files cannot be created in it.
    pub fn is_removed(&self) -> bool {
        matches!(&self.place, Place::Named(descriptor) if fstat(descriptor).is_ok_and(|stat| stat.st_nlink == 0))
    }

    /// Whether it has an entry `name`, of whatever type.
    pub fn has(&self, name: &str) -> bool {
        match &self.place {
            Place::Named(descriptor) => statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_ok(),
            Place::Nameless(files) => locked(files).contains_key(name),
        }
    }

    /// Opens its regular file `name` for reading, from its begin.
    ///
    /// # Errors
    /// Those of openat(2), or [`input_file::UnfitInput`].
    pub fn file(&self, name: &str) -> io::Result<File> {
        match &self.place {
            Place::Named(descriptor) => input_file::open_in(descriptor, name),
            Place::Nameless(files) => rewound(&locked(files), name),
        }
    }

    /// Creates the file `name`, for reading and writing.
    ///
    /// # Errors
    /// Those of openat(2); `EEXIST` if anything is there, a link too.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        match &self.place {
            Place::Named(descriptor) => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                Ok(File::from(openat(descriptor, name, flags, Mode::from_raw_mode(0o666))?))
            }
            Place::Nameless(files) => {
                let file = tempfile::tempfile_in(&self.path)?;
                locked(files).insert(name.to_owned(), file.try_clone()?);
                Ok(file)
            }
        }
    }

    /// Creates the file `name` in place of what is there.
    ///
    /// # Errors
    /// Those of unlinkat(2) and openat(2).
    pub fn replace_file(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        self.create_file(name)
    }

    /// Opens the file `name` for writing without truncating it, if it is a regular file without another name; else creates it
    /// anew.
    ///
    /// # Errors
    /// Those of openat(2) and unlinkat(2).
    pub fn overwrite_file(&self, name: &str) -> io::Result<File> {
        let opened = match &self.place {
            Place::Named(descriptor) => {
                let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let opened = openat(descriptor, name, flags, Mode::empty()).map(File::from).ok();
                opened.filter(|file| file.metadata().is_ok_and(|facts| is_own(&facts)))
            }
            Place::Nameless(files) => rewound(&locked(files), name).ok(),
        };
        opened.map_or_else(|| self.replace_file(name), Ok)
    }

    /// Renames its file `from` to `to`, which is replaced.
    ///
    /// # Errors
    /// Those of renameat(2).
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        match &self.place {
            Place::Named(descriptor) => Ok(renameat(descriptor, from, descriptor, to)?),
            Place::Nameless(files) => {
                let mut files = locked(files);
                let file = files.remove(from).ok_or(ErrorKind::NotFound)?;
                files.insert(to.to_owned(), file);
                Ok(())
            }
        }
    }

    /// Removes the file `name`, if there is one.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match &self.place {
            Place::Named(descriptor) => match unlinkat(descriptor, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(errno) => Err(errno.into()),
            },
            Place::Nameless(files) => {
                locked(files).remove(name);
                Ok(())
            }
        }
    }

    /// Removes the files `names` and the directory itself, if nothing else is in it.
    ///
    /// # Errors
    /// Those of unlinkat(2) and rmdir(2).
    pub fn remove_with(&self, names: &[&str]) -> io::Result<()> {
        names.iter().try_for_each(|name| self.remove(name))?;
        match self.place {
            Place::Named(_) => fs::remove_dir(&self.path),
            Place::Nameless(_) => Ok(()),
        }
    }
}

fn locked(files: &Mutex<BTreeMap<String, File>>) -> MutexGuard<'_, BTreeMap<String, File>> {
    // The map is whole after every step.
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file `name`, which shares its position with all of its descriptors.
fn rewound(files: &BTreeMap<String, File>, name: &str) -> io::Result<File> {
    let mut file = files.get(name).ok_or(ErrorKind::NotFound)?.try_clone()?;
    file.rewind()?;
    Ok(file)
}

fn is_own(facts: &Metadata) -> bool {
    facts.is_file() && facts.nlink() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    /// A directory with an open one in it, and a file beside that, which must not change.
    fn prepared() -> (tempfile::TempDir, Directory, PathBuf) {
        let above = tempfile::tempdir().expect("temporary directory");
        let directory = Directory::create(&above.path().join("entry")).expect("created");
        let other = above.path().join("other");
        fs::write(&other, "kept").expect("written");
        (above, directory, other)
    }

    #[test]
    fn a_link_in_place_of_a_file_is_replaced_and_not_written_through() {
        let (_above, directory, other) = prepared();
        for name in ["replaced", "overwritten"] {
            symlink(&other, directory.path_of(name)).expect("linked");
        }
        fs::hard_link(&other, directory.path_of("second-name")).expect("linked");
        assert!(directory.create_file("replaced").is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists));
        assert!(directory.file("replaced").is_err());
        let files = [directory.replace_file("replaced"), directory.overwrite_file("overwritten")];
        for file in files.into_iter().chain([directory.overwrite_file("second-name")]) {
            file.expect("opens").write_all(b"changed").expect("written");
        }
        assert_eq!(fs::read_to_string(other).expect("there"), "kept");
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_not_written_through() {
        let (above, directory, _) = prepared();
        let (moved, victim) = (above.path().join("moved"), above.path().join("victim"));
        fs::create_dir(&victim).expect("made");
        fs::rename(directory.path(), &moved).expect("moved");
        symlink(&victim, directory.path()).expect("linked");
        directory.create_file("file").expect("created");
        assert!(moved.join("file").exists() && !victim.join("file").exists());
    }

    #[test]
    fn a_link_is_not_opened_as_a_directory_of_it() {
        let (above, directory, _) = prepared();
        directory.create_directory("own").expect("made").create_file("file").expect("created");
        symlink(above.path(), directory.path_of("link")).expect("linked");
        assert!(directory.directory("own").is_ok_and(|own| own.has("file")));
        assert!(directory.directory("link").is_err() && directory.directory("none").is_err());
    }

    #[test]
    fn a_removed_directory_is_known_as_such() {
        let (_above, directory, _) = prepared();
        assert!(!directory.is_removed());
        fs::remove_dir(directory.path()).expect("removed");
        assert!(directory.is_removed() && directory.create_file("file").is_err());
    }

    #[test]
    fn files_of_a_nameless_directory_have_no_names() {
        let above = tempfile::tempdir().expect("temporary directory");
        let directory = Directory::nameless(above.path());
        directory.create_file("one").expect("created").write_all(b"first").expect("written");
        directory.rename("one", "two").expect("renamed");
        assert!(directory.has("two") && !directory.has("one") && directory.file("one").is_err());
        directory.overwrite_file("two").expect("opens").write_all(b"F").expect("written");
        let mut text = String::new();
        directory.file("two").expect("opens").read_to_string(&mut text).expect("read");
        assert_eq!((text.as_str(), fs::read_dir(above.path()).expect("listed").count()), ("First", 0));
        directory.remove("two").expect("removed");
        assert!(!directory.has("two"));
    }
}
