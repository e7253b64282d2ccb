//! Far ends: an OpenSSH server on a loopback port, and an agent in another network namespace.

use std::ffi::OsString;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use latlab::host::Lab;
use tempfile::TempDir;

use crate::harness::{BINARY, Latlab, Running, wait_until};
use crate::processes::{below, is_alive};
use crate::scheduling::{Precedence, precedence};
use crate::skip::program;
use crate::store::spool_bytes;

/// An OpenSSH server that ends with the value. `ssh far` logs in; the key of `ssh stranger` is not authorized. It has
/// precedence: both ends count as silent if they wait for a CPU for 1.5 s, and a reflector if it waits for 3 s.
pub(crate) struct Sshd {
    child: Child,
    directory: TempDir,
    precedence: Option<Precedence>,
}

impl Sshd {
    /// A server whose logins have `path` as PATH; more `NAME=VALUE` may follow it. `None` if the test is skipped, for lack of OpenSSH.
    pub(crate) fn start(path: &str) -> Option<Sshd> {
        let precedence = precedence();
        let (server, client) = (program("sshd")?, program("ssh")?);
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").expect("root may");
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        for key in ["host", "mine", "unknown"] {
            make_key(&directory.path().join(key));
        }
        fs::copy(directory.path().join("mine.pub"), directory.path().join("authorized")).expect("a file");
        // Nothing else in this test binds a port by number.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let child = run(&server, directory.path(), port, path);
        let sshd = Sshd { child, directory, precedence: Some(precedence) };
        sshd.write_ssh(&client, port);
        wait_until("sshd listened", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(sshd)
    }

    /// The server's process, the ancestor of the agents.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// A PATH whose `ssh` is OpenSSH's with the configuration for this server.
    pub(crate) fn path(&self) -> OsString {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let programs = [self.directory.path().join("bin")].into_iter().chain(std::env::split_paths(&old));
        std::env::join_paths(programs).expect("a path without colons")
    }

    /// Writes the script `ssh`, which names the configuration: ssh itself would look into the home of the password file.
    fn write_ssh(&self, client: &Path, port: u16) {
        let directory = self.directory.path();
        let place = directory.display();
        let mut text = String::new();
        for (host, key) in [("far", "mine"), ("stranger", "unknown")] {
            text += &format!(
                "Host {host}\n HostName 127.0.0.1\n Port {port}\n IdentityFile {place}/{key}\n IdentitiesOnly yes\n \
                 IdentityAgent none\n UserKnownHostsFile {place}/known\n StrictHostKeyChecking accept-new\n \
                 GlobalKnownHostsFile /dev/null\n LogLevel ERROR\n"
            );
        }
        fs::write(directory.join("ssh_config"), text).expect("a file");
        let bin = directory.join("bin");
        fs::create_dir(&bin).expect("a directory");
        let program = bin.join("ssh");
        fs::write(&program, format!("#!/bin/sh\nexec {} -F {place}/ssh_config \"$@\"\n", client.display()))
            .expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // Each connection has a process of its own, which ends with the client.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_key(path: &PathBuf) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
    assert!(made.expect("OpenSSH brings it").success());
}

/// Starts `server`, an absolute path, since sshd starts itself again for each connection.
fn run(server: &Path, directory: &Path, port: u16, path: &str) -> Child {
    let place = directory.display();
    let config = directory.join("sshd_config");
    let text = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {place}/host\nAuthorizedKeysFile {place}/authorized\n\
         StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nSetEnv PATH={path}\n"
    );
    fs::write(&config, text).expect("a file");
    let log = fs::File::create(directory.join("log")).expect("a file");
    Command::new(server)
        .args(["-D", "-e", "-f"])
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("sshd starts")
}

/// A process in the reflector's namespace of a lab: the namespace exists as long as this value or the lab does.
pub(crate) struct NamespacedAgent {
    keeper: Child,
}

impl NamespacedAgent {
    pub(crate) fn of(lab: &Lab) -> NamespacedAgent {
        let _there = lab.enter_reflector().expect("the namespace is there");
        let keeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep(1) is everywhere");
        NamespacedAgent { keeper }
    }

    /// The target of an agent in that namespace.
    pub(crate) fn target(&self) -> String {
        let latlab = env!("CARGO_BIN_EXE_latlab");
        format!("cmd:nsenter --net=/proc/{}/ns/net {latlab} agent --stdio", self.keeper.id())
    }
}

impl Drop for NamespacedAgent {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// The target of an agent on this host.
pub(crate) fn local_agent() -> String {
    format!("cmd:{BINARY} agent --stdio")
}

/// A PATH with latlab, for logins.
pub(crate) fn with_latlab() -> String {
    let folder = Path::new(BINARY).parent().expect("the binary lies in a folder");
    format!("{}:/usr/bin:/bin", folder.display())
}

/// A ping of `target` in `directory` with the ssh of `sshd`.
pub(crate) fn over_ssh(sshd: &Sshd, directory: &Path, target: &str) -> Latlab {
    Latlab::at(directory).environment("PATH", sshd.path()).args(["ping", target])
}

/// A run over ssh that has begun to record, and the processes of both ends.
pub(crate) struct SshRun {
    pub(crate) sshd: Sshd,
    pub(crate) home: tempfile::TempDir,
    pub(crate) running: Running,
    pub(crate) ssh: i32,
    pub(crate) agent: i32,
    pub(crate) reflector: i32,
}

impl SshRun {
    /// Lets other tests have precedence: what was started keeps its niceness.
    pub(crate) fn yield_precedence(&mut self) {
        self.sshd.precedence = None;
    }

    pub(crate) fn start(line: &str) -> Option<SshRun> {
        SshRun::start_in(&with_latlab(), line)
    }

    /// The same with `path` as PATH of logins; see [`Sshd::start`].
    pub(crate) fn start_in(path: &str, line: &str) -> Option<SshRun> {
        let sshd = Sshd::start(path)?;
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut running = over_ssh(&sshd, home.path(), "ssh:far").line(line).start();
        running.wait_until("the run was under way", || spool_bytes(home.path()) > 1_000);
        let ssh = below(running.pid().as_raw_nonzero().get(), &["latlab", "agent", "--stdio"]).expect("ssh runs");
        let agent = below(sshd.pid(), &["latlab", "agent", "--stdio"]).expect("the agent runs");
        // The agent may be the child of a login shell; the reflector is a child of the agent.
        let reflector = below(sshd.pid(), &["reflector"]).expect("the reflector runs");
        Some(SshRun { sshd, home, running, ssh, agent, reflector })
    }

    pub(crate) fn wait_for_far_end(&self) {
        wait_until("the far reflector had ended", || !is_alive(self.reflector));
        wait_until("the agent had ended", || below(self.sshd.pid(), &["agent", "--stdio"]).is_none());
    }
}
