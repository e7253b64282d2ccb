//! The parser of `TARGET`.

use std::net::Ipv6Addr;

use super::{Refusal, refusal};
use crate::plan::{Protocol, Target, defaults};

const FORMS: &str = "`local`, `lab`, `HOST`, `HOST:PORT`, `[V6]:PORT`, `ssh:HOST` or `cmd:COMMAND …`";

/// A target as typed: its port depends on the protocol unless it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedTarget {
    target: Target,
    has_port: bool,
}

impl TypedTarget {
    pub fn over(&self, protocol: Protocol) -> Target {
        match (&self.target, protocol) {
            (Target::Host { host, .. }, Protocol::Echo) if !self.has_port => {
                Target::Host { host: host.clone(), port: defaults::ECHO_PORT }
            }
            (target, _) => target.clone(),
        }
    }

    /// The same host with this port; `None` for another form of target, or a host with a port.
    pub fn with_port(&self, port: u16) -> Option<Target> {
        match &self.target {
            Target::Host { host, .. } if !self.has_port => Some(Target::Host { host: host.clone(), port }),
            _ => None,
        }
    }
}

pub fn target(typed: &str) -> Result<TypedTarget, Refusal> {
    let without_port = |target| Ok(TypedTarget { target, has_port: false });
    match typed.split_once(':') {
        None if typed == "local" => without_port(Target::Local),
        None if typed == "lab" => without_port(Target::Lab),
        Some(("ssh", host)) => without_port(ssh(host)?),
        Some(("cmd", line)) => without_port(command(line)?),
        _ => {
            let (host, port) = host_and_port(typed)?;
            let target = Target::Host { host: host.to_owned(), port: port.unwrap_or(defaults::PORT) };
            Ok(TypedTarget { target, has_port: port.is_some() })
        }
    }
}

/// Accepts `[USER@]HOST` unchanged, since it may be defined in the ssh configuration, unless ssh would read an option.
fn ssh(host: &str) -> Result<Target, Refusal> {
    let hint = "such as `ssh:pi3` or `ssh:user@pi3`; port and key file belong to ~/.ssh/config";
    let refuse = |cause| Err(refusal(cause, hint));
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    if name.is_empty() || host.starts_with('@') {
        return refuse("it names no host");
    }
    if host.starts_with('-') || name.starts_with('-') {
        return refuse("ssh would read it as an option");
    }
    if host.chars().any(|sign| sign.is_whitespace() || sign.is_control()) {
        return refuse("it has a character that host names cannot have");
    }
    Ok(Target::Ssh { host: host.to_owned() })
}

fn command(line: &str) -> Result<Target, Refusal> {
    let hint = "such as `'cmd:ip netns exec b latlab agent --stdio'`, quoted as one argument";
    split_command(line).map(|words| Target::Command { words }).map_err(|cause| refusal(cause, hint))
}

/// The words of a command, split like a POSIX shell does, without any expansion.
pub fn split_command(line: &str) -> Result<Vec<String>, &'static str> {
    match shlex::split(line) {
        Some(words) if words.first().is_some_and(|program| !program.is_empty()) => Ok(words),
        Some(_) => Err("it names no command"),
        None => Err("a quotation mark is not closed"),
    }
}

/// Splits `HOST`, `HOST:PORT`, `V6`, `[V6]` or `[V6]:PORT`; the returned host has no brackets.
pub fn host_and_port(typed: &str) -> Result<(&str, Option<u16>), Refusal> {
    let refuse = |cause: &str| refusal(cause, FORMS);
    let (host, port) = if let Some(rest) = typed.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| refuse("the bracket is not closed"))?;
        if !is_v6(host) {
            return Err(refuse("the text in brackets is not an IPv6 address"));
        }
        let port = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':').ok_or_else(|| refuse("only `:PORT` can follow the bracket"))?),
        };
        (host, port)
    } else if is_v6(typed) {
        match with_a_port_perhaps(typed) {
            Some((host, port)) => return Err(unbracketed(typed, host, port)),
            None => (typed, None),
        }
    } else if let Some((host, port)) = typed.rsplit_once(':').filter(|(host, _)| is_v6(host)) {
        return Err(unbracketed(typed, host, port));
    } else {
        let (host, port) = typed.split_once(':').map_or((typed, None), |(host, port)| (host, Some(port)));
        check_name(host).map_err(refuse)?;
        (host, port)
    };
    let port = port.map(read_port).transpose()?;
    Ok((host, port))
}

/// Splits an address without brackets that was probably meant as an address with a port. `::1:9862` is valid as an
/// address but improbable. Either the port is latlab's, or the address is in the deprecated block of RFC 4291, section
/// 2.5.5.1 (`::/96`), in which only `::` and `::1` are in use.
fn with_a_port_perhaps(typed: &str) -> Option<(&str, &str)> {
    let (host, port) = typed.rsplit_once(':').filter(|(host, port)| is_v6(host) && port.parse::<u16>().is_ok())?;
    let deprecated = typed.parse::<Ipv6Addr>().is_ok_and(|address| address.segments()[..6] == [0; 6]);
    (deprecated || port.parse() == Ok(defaults::PORT)).then_some((host, port))
}

fn unbracketed(typed: &str, host: &str, port: &str) -> Refusal {
    let hint = match port.parse::<u16>() {
        Ok(1..) if is_v6(typed) => format!("`[{host}]:{port}` for the port, `[{typed}]` for the address"),
        Ok(1..) => format!("`[{host}]:{port}`"),
        _ => format!("`[{host}]:PORT`; ports go from 1 to 65535"),
    };
    refusal("an IPv6 address with a port needs brackets", hint)
}

fn read_port(port: &str) -> Result<u16, Refusal> {
    let cause = match port.parse::<u32>() {
        Ok(0) => "packets cannot be sent to port 0".to_owned(),
        Ok(number) if number <= u32::from(u16::MAX) => return Ok(number as u16),
        _ => format!("`{port}` is not a port"),
    };
    Err(refusal(cause, "ports go from 1 to 65535; IPv6 with a port is written `[V6]:PORT`"))
}

/// Returns true for an IPv6 address with or without a zone (`fe80::1%eth0`).
fn is_v6(host: &str) -> bool {
    let (address, zone) = host.split_once('%').map_or((host, None), |(address, zone)| (address, Some(zone)));
    address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(|zone| !zone.is_empty() && !zone.contains(':'))
}

/// Checks the characters of a host name, not its existence.
fn check_name(host: &str) -> Result<(), &'static str> {
    let known = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() {
        Err("it names no host")
    } else if host.len() > 253 {
        Err("host names have at most 253 characters")
    } else if host.starts_with('-') || !host.chars().all(known) {
        Err("it has a character that host names cannot have")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: u16) -> Target {
        Target::Host { host: name.into(), port }
    }

    fn command(words: &[&str]) -> Target {
        Target::Command { words: words.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn every_form_is_parsed() {
        for (typed, expected) in [
            ("local", Target::Local),
            ("lab", Target::Lab),
            ("pi3", host("pi3", 9862)),
            ("pi3.example.org:7000", host("pi3.example.org", 7000)),
            ("10.0.0.7", host("10.0.0.7", 9862)),
            ("10.0.0.7:1", host("10.0.0.7", 1)),
            ("::1", host("::1", 9862)),
            ("[::1]", host("::1", 9862)),
            ("[2001:db8::7]:65535", host("2001:db8::7", 65535)),
            ("fe80::1%eth0", host("fe80::1%eth0", 9862)),
            ("münchen.example", host("münchen.example", 9862)),
            ("[::1:9862]", host("::1:9862", 9862)),
            ("fe80::1:1234", host("fe80::1:1234", 9862)),
            ("2001:db8::7:80", host("2001:db8::7:80", 9862)),
            ("::ffff:192.0.2.7", host("::ffff:192.0.2.7", 9862)),
            ("::", host("::", 9862)),
            ("ssh:pi3", Target::Ssh { host: "pi3".into() }),
            ("ssh:pi@pi3", Target::Ssh { host: "pi@pi3".into() }),
            ("cmd:ip netns exec 'b c' latlab", command(&["ip", "netns", "exec", "b c", "latlab"])),
            ("cmd:echo $HOME;ls", command(&["echo", "$HOME;ls"])),
        ] {
            assert_eq!(target(typed).map(|target| target.over(Protocol::Native)), Ok(expected), "{typed}");
        }
        assert_eq!(target("pi3").map(|target| target.over(Protocol::Echo)), Ok(host("pi3", 7)));
    }

    #[test]
    fn an_ipv6_address_with_a_port_needs_brackets() {
        for (typed, hint) in [
            ("::1:9862", "`[::1]:9862` for the port, `[::1:9862]` for the address"),
            ("::1:5000", "`[::1]:5000` for the port, `[::1:5000]` for the address"),
            ("fe80::1:9862", "`[fe80::1]:9862` for the port, `[fe80::1:9862]` for the address"),
            ("::1:99999", "`[::1]:PORT`; ports go from 1 to 65535"),
            ("2001:db8:0:0:0:0:0:7:9862", "`[2001:db8:0:0:0:0:0:7]:9862`"),
            ("fe80::1%eth0:5000", "`[fe80::1%eth0]:5000`"),
            ("fe80::1%eth0:70000", "`[fe80::1%eth0]:PORT`; ports go from 1 to 65535"),
            ("::1:", "`[::1]:PORT`; ports go from 1 to 65535"),
        ] {
            let error = target(typed).expect_err(typed);
            assert_eq!(error, refusal("an IPv6 address with a port needs brackets", hint), "{typed}");
        }
    }
}
