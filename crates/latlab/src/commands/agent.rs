//! `latlab agent --stdio`: the remote end of `ssh:` and `cmd:` targets, over standard input and output.

use std::io::{self, IsTerminal};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::{flag, low_level};

use super::{Outcome, recovery};
use crate::agent::{AgentEnd, Greeting, RequestHandler, ServeStreams, serve};
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::platform::signals;

/// Serves until the input ends or is silent for too long, then restores this host.
pub(super) fn run(console: &Console) -> Result<Outcome, Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::request("cannot run an agent on a terminal")
            .because("it exchanges binary frames with another latlab")
            .hint("`latlab ping ssh:HOST` starts it on the other host"));
    }
    // An agent that was killed may have left settings changed.
    recovery::recover(console);
    let asked = Arc::new(AtomicUsize::new(0));
    let streams = streams(&asked, console).map_err(refused("open the streams of the agent"))?;
    match serve(&streams, greeting(), &mut RequestHandler::default()) {
        Ok(()) => Ok(Outcome::Done),
        Err(AgentEnd::Signal) => {
            Ok(signals::outcome_of(asked.load(Ordering::Relaxed) as i32).unwrap_or(Outcome::Terminated))
        }
        Err(end) => Err(end.into()),
    }
}

/// Standard input and output, and a socket that becomes readable with the first signal.
fn streams(asked: &Arc<AtomicUsize>, console: &Console) -> io::Result<ServeStreams> {
    let (signals, raise) = UnixStream::pair()?;
    for signal in signals::handled() {
        // In this order: after the wake-up the number of the signal is already stored.
        flag::register_usize(signal, Arc::clone(asked), signal as usize)?;
        low_level::pipe::register(signal, raise.try_clone()?)?;
    }
    Ok(ServeStreams {
        input: io::stdin().as_fd().try_clone_to_owned()?,
        output: console.bytes()?,
        signals: signals.into(),
    })
}

fn greeting() -> Greeting {
    let connection = std::env::var("SSH_CONNECTION").ok();
    Greeting { software: env!("CARGO_PKG_VERSION").into(), reached: connection.as_deref().and_then(reached) }
}

/// The third word of `SSH_CONNECTION` (ssh(1), ENVIRONMENT): where sshd was reached. An address with a zone means
/// nothing on the other host.
fn reached(connection: &str) -> Option<IpAddr> {
    let address: IpAddr = connection.split_whitespace().nth(2)?.parse().ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_ssh_reached_is_the_third_word() {
        let address = |text: &str| text.parse().ok();
        for (connection, expected) in [
            ("192.0.2.1 50000 192.0.2.7 22", address("192.0.2.7")),
            ("2001:db8::1 50000 2001:db8::7 22", address("2001:db8::7")),
            ("::ffff:192.0.2.1 1 ::ffff:192.0.2.7 22", address("192.0.2.7")),
            ("fe80::1%eth0 1 fe80::7%eth0 22", None),
            ("UNKNOWN 65535 UNKNOWN 65535", None),
            ("", None),
        ] {
            assert_eq!(reached(connection), expected, "{connection}");
        }
    }
}
