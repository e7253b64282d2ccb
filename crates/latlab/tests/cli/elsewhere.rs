//! An agent in another network namespace: the reflector's of a lab, kept by a process that sleeps there.

use std::process::{Child, Command, Stdio};

use latlab::host::lab::Lab;

/// The namespace is there as long as this value, or the lab, lives.
pub(crate) struct Elsewhere {
    keeper: Child,
}

impl Elsewhere {
    pub(crate) fn of(lab: &Lab) -> Elsewhere {
        let _there = lab.enter_reflector().expect("the namespace is there");
        let keeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep(1) is everywhere");
        Elsewhere { keeper }
    }

    /// The target that leads there.
    pub(crate) fn target(&self) -> String {
        let latlab = env!("CARGO_BIN_EXE_latlab");
        format!("cmd:nsenter --net=/proc/{}/ns/net {latlab} agent --stdio", self.keeper.id())
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Both fail where it has ended, which is all that is wanted.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
