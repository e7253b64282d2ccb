//! Whose a file is: one that another user owns or can write, or whose directory lets others exchange it, is not trusted with
//! keys, with values that are written to the kernel, or with commands.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::geteuid;

use crate::units::human::shell_word;

/// Write permission of the group and of others.
const OTHERS_WRITE: u32 = 0o022;
/// In a directory with this bit only owners rename and remove files (inode(7)).
const STICKY: u32 = 0o1000;

/// Why a file is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// The file, or the directory that holds it.
    pub path: PathBuf,
    owner: u32,
    fault: OwnershipFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnershipFault {
    /// It belongs to a user who is neither the user of this process, nor the one who called sudo, nor root.
    Owner,
    /// Others may write it: its mode.
    Mode(u32),
}

impl Untrusted {
    pub fn cause(&self) -> String {
        let path = self.path.display();
        match self.fault {
            OwnershipFault::Owner => format!("`{path}` belongs to the user {}", self.owner),
            OwnershipFault::Mode(mode) => format!("others than its owner may write `{path}`: its mode is `{mode:04o}`"),
        }
    }

    /// The command that mends it.
    pub fn remedy(&self) -> String {
        let path = quoted(&self.path);
        match (self.fault, geteuid()) {
            (OwnershipFault::Owner, uid) if uid.is_root() => format!("chown root {path}"),
            (OwnershipFault::Owner, uid) => format!("sudo chown {} {path}", uid.as_raw()),
            (OwnershipFault::Mode(_), uid) if uid.is_root() || self.owner == uid.as_raw() => {
                format!("chmod go-w {path}")
            }
            (OwnershipFault::Mode(_), _) => format!("sudo chmod go-w {path}"),
        }
    }
}

impl std::fmt::Display for Untrusted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cause())
    }
}

impl std::error::Error for Untrusted {}

impl From<Untrusted> for io::Error {
    fn from(untrusted: Untrusted) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, untrusted)
    }
}

/// The [`Untrusted`] in `error`, if it is one.
pub fn untrusted(error: &io::Error) -> Option<&Untrusted> {
    error.get_ref()?.downcast_ref()
}

/// Expects that only root and the user of this process can write the open `file`, or put another in its place at `path`.
///
/// # Errors
/// [`Untrusted`], or that of the system.
pub fn expect_own(path: &Path, file: &File) -> io::Result<()> {
    expect(path, &file.metadata()?, false)?;
    let parent = |path: &Path| path.parent().map(Path::to_owned);
    let named = parent(path).filter(|directory| !directory.as_os_str().is_empty());
    // A link may lead to a file elsewhere.
    let real = path.canonicalize().ok().and_then(|path| parent(&path));
    let directories = [Some(named.unwrap_or_else(|| ".".into())), real];
    directories.into_iter().flatten().try_for_each(|directory| expect(&directory, &fs::metadata(&directory)?, true))
}

fn expect(path: &Path, facts: &Metadata, is_directory: bool) -> io::Result<()> {
    let (uid, mode) = (facts.uid(), facts.mode() & 0o7777);
    let fault = if uid != 0 && uid != geteuid().as_raw() && Some(uid) != sudo_user() {
        OwnershipFault::Owner
    } else if mode & OTHERS_WRITE != 0 && !(is_directory && mode & STICKY != 0) {
        OwnershipFault::Mode(mode)
    } else {
        return Ok(());
    };
    Err(Untrusted { path: path.to_owned(), owner: uid, fault }.into())
}

/// The deepest directory above `path` that this process can look at, if `error` is a refusal of access and the directory
/// belongs to another user.
pub fn of_another_user<'a>(path: &'a Path, error: &io::Error) -> Option<&'a Path> {
    if Errno::from_io_error(error) != Some(Errno::ACCESS) {
        return None;
    }
    let (directory, facts) = path.ancestors().find_map(|above| Some((above, fs::metadata(above).ok()?)))?;
    (facts.uid() != geteuid().as_raw()).then_some(directory)
}

/// The user who called sudo(8), if this process is root: files of this user are as trusted as the command line.
fn sudo_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok().filter(|_| geteuid().is_root())?.parse().ok()
}

/// `path` as one word of a shell.
pub fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input_file::open_own;
    use std::os::unix::fs::{PermissionsExt, chown};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("own");
    }

    #[test]
    fn files_that_others_can_write_or_exchange_are_not_trusted() {
        let temporary = tempfile::tempdir().expect("temporary directory");
        let directory = temporary.path().join("a b");
        fs::create_dir(&directory).expect("created");
        let path = directory.join("file");
        fs::write(&path, "text").expect("written");
        for (directory_mode, mode, remedy) in [
            (0o755, 0o644, None),
            (0o700, 0o600, None),
            (0o1777, 0o644, None),
            (0o755, 0o664, Some(format!("chmod go-w '{}'", path.display()))),
            (0o755, 0o646, Some(format!("chmod go-w '{}'", path.display()))),
            (0o775, 0o644, Some(format!("chmod go-w '{}'", directory.display()))),
            (0o757, 0o644, Some(format!("chmod go-w '{}'", directory.display()))),
        ] {
            set_mode(&directory, directory_mode);
            set_mode(&path, mode);
            let error = open_own(&path).err();
            let found = error.as_ref().map(|error| untrusted(error).expect("an ownership fault").remedy());
            assert_eq!(found, remedy, "{directory_mode:o} {mode:o}");
        }
    }

    #[test]
    fn files_and_directories_of_other_users_are_not_trusted() {
        if !geteuid().is_root() {
            return; // Only root can give files away.
        }
        let temporary = tempfile::tempdir().expect("temporary directory");
        let (directory, path) = (temporary.path().join("d"), temporary.path().join("d/file"));
        fs::create_dir(&directory).expect("created");
        fs::write(&path, "text").expect("written");
        for given in [&directory, &path] {
            chown(given, Some(1_234), None).expect("root");
            let error = open_own(&path).expect_err("another's");
            let found = untrusted(&error).expect("an ownership fault");
            assert_eq!((&found.path, found.remedy()), (given, format!("chown root {}", given.display())));
            assert!(found.cause().contains("1234"), "{found}");
            chown(given, Some(0), None).expect("root");
        }
        open_own(&path).expect("own again");
        chown(&directory, Some(1_234), None).expect("root");
        let inside = directory.join("latlab/journal");
        assert_eq!(of_another_user(&inside, &Errno::ACCESS.into()), Some(directory.as_path()));
        assert_eq!(of_another_user(&inside, &Errno::NOTDIR.into()), None);
        chown(&directory, Some(0), None).expect("root");
        assert_eq!(of_another_user(&inside, &Errno::ACCESS.into()), None);
    }
}
