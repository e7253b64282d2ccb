//! Starts and ends programs.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The binary under test, built with the bench's own profile.
pub(crate) fn latlab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    command.stdin(Stdio::null()).env_remove("LATLAB_STORE");
    command
}

/// The target folder; the binary is two levels below it.
pub(crate) fn target_folder() -> PathBuf {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_latlab"));
    binary.ancestors().nth(2).expect("target/PROFILE/latlab").to_path_buf()
}

/// The standard output of `command`. If it fails, the error has its standard output and standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    output_tolerating(command, &[])
}

/// Like [`output`], but the exit codes in `tolerated` are no failures.
pub(crate) fn output_tolerating(command: &mut Command, tolerated: &[i32]) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}; `just bench-setup` installs peers"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let has_succeeded = output.status.success() || output.status.code().is_some_and(|code| tolerated.contains(&code));
    match has_succeeded {
        true => Ok(text),
        false => {
            Err(format!("{command:?} ended with {}:\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
        }
    }
}

/// Whether `program` is in `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A process that is killed when this value is dropped.
pub(crate) struct BackgroundProcess(Child);

impl BackgroundProcess {
    pub(crate) fn start(command: &mut Command) -> Result<BackgroundProcess, String> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet
            .spawn()
            .map(BackgroundProcess)
            .map_err(|error| format!("cannot start {command:?}: {error}; `just bench-setup`"))
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
