//! Starting programs and ending them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The binary under test, built with the bench's own profile.
pub(crate) fn latlab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    command.stdin(Stdio::null()).env_remove("LATLAB_STORE");
    command
}

/// The target folder, which the binary lies two levels below.
pub(crate) fn target_folder() -> PathBuf {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_latlab"));
    binary.ancestors().nth(2).expect("target/PROFILE/latlab").to_path_buf()
}

/// What `command` prints; an error with everything it said if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    output_or(command, &[])
}

/// The same, where the exit codes in `tolerated` are answers too.
pub(crate) fn output_or(command: &mut Command, tolerated: &[i32]) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}; `just bench-setup` installs peers"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answered = output.status.success() || output.status.code().is_some_and(|code| tolerated.contains(&code));
    match answered {
        true => Ok(text),
        false => {
            Err(format!("{command:?} ended with {}:\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
        }
    }
}

/// Whether `program` lies on the search path.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A process that ends with this value.
pub(crate) struct Beside(Child);

impl Beside {
    pub(crate) fn start(command: &mut Command) -> Result<Beside, String> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().map(Beside).map_err(|error| format!("cannot start {command:?}: {error}; `just bench-setup`"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Already gone is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
