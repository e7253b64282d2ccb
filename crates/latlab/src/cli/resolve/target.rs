//! Resolution of `TARGET`.

use std::net::Ipv6Addr;

use super::{RequestError, value};
use crate::plan::{Protocol, Target, defaults};

const OPTION: &str = "TARGET";
const FORMS: &str = "`local`, `lab`, `HOST`, `HOST:PORT`, `[V6]:PORT`, `ssh:HOST` or `cmd:COMMAND …`";

/// Resolves the target; the default is `local`, the default port is that of `protocol`.
pub(super) fn target(typed: Option<&str>, protocol: Protocol) -> Result<Target, RequestError> {
    let typed = match typed {
        None | Some("local") => return Ok(Target::Local),
        Some("lab") => return Ok(Target::Lab),
        Some(typed) => typed,
    };
    if let Some(host) = typed.strip_prefix("ssh:") {
        return ssh(typed, host);
    }
    if let Some(line) = typed.strip_prefix("cmd:") {
        return command(typed, line);
    }
    let (host, port) = host_and_port(OPTION, typed)?;
    let port = port.unwrap_or(match protocol {
        Protocol::Native => defaults::PORT,
        Protocol::Echo => defaults::ECHO_PORT,
    });
    Ok(Target::Host { host: host.to_owned(), port })
}

/// The target of the host `typed` with this port; `None` for another form of target, or a host with a port.
pub(in crate::cli) fn with_port(typed: &str, port: u16) -> Option<Target> {
    let is_host = matches!(target(Some(typed), Protocol::Native), Ok(Target::Host { .. }));
    let (host, typed_port) = host_and_port(OPTION, typed).ok().filter(|_| is_host)?;
    typed_port.is_none().then(|| Target::Host { host: host.to_owned(), port })
}

/// Accepts `[USER@]HOST` unchanged, since it may be defined in the ssh configuration, unless ssh would read an option.
fn ssh(typed: &str, host: &str) -> Result<Target, RequestError> {
    let hint = "such as `ssh:pi3` or `ssh:user@pi3`; port and key file belong to ~/.ssh/config";
    let refuse = |cause| Err(value::unusable(OPTION, typed, cause, hint));
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

/// Resolves the command of `cmd:`.
fn command(typed: &str, line: &str) -> Result<Target, RequestError> {
    let hint = "such as `'cmd:ip netns exec b latlab agent --stdio'`, quoted as one argument";
    let refuse = |cause| Err(value::unusable(OPTION, typed, cause, hint));
    split_command(line).map(|words| Target::Command { words }).or_else(refuse)
}

/// The words of a command, split like a POSIX shell does, without any expansion.
pub(super) fn split_command(line: &str) -> Result<Vec<String>, &'static str> {
    match shlex::split(line) {
        Some(words) if words.first().is_some_and(|program| !program.is_empty()) => Ok(words),
        Some(_) => Err("it names no command"),
        None => Err("a quotation mark is not closed"),
    }
}

/// Splits `HOST`, `HOST:PORT`, `V6`, `[V6]` or `[V6]:PORT`; the returned host has no brackets.
pub(super) fn host_and_port<'a>(option: &'static str, typed: &'a str) -> Result<(&'a str, Option<u16>), RequestError> {
    let refuse = |cause: &str| value::unusable(option, typed, cause, FORMS);
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
            Some((host, port)) => return Err(unbracketed(option, typed, host, port)),
            None => (typed, None),
        }
    } else if let Some((host, port)) = typed.rsplit_once(':').filter(|(host, _)| is_v6(host)) {
        return Err(unbracketed(option, typed, host, port));
    } else {
        let (host, port) = typed.split_once(':').map_or((typed, None), |(host, port)| (host, Some(port)));
        check_name(host).map_err(refuse)?;
        (host, port)
    };
    let port = port.map(|port| read_port(option, typed, port)).transpose()?;
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

fn unbracketed(option: &'static str, typed: &str, host: &str, port: &str) -> RequestError {
    let hint = match port.parse::<u16>() {
        Ok(1..) if is_v6(typed) => format!("`[{host}]:{port}` for the port, `[{typed}]` for the address"),
        Ok(1..) => format!("`[{host}]:{port}`"),
        _ => format!("`[{host}]:PORT`; ports go from 1 to 65535"),
    };
    value::unusable(option, typed, "an IPv6 address with a port needs brackets", hint)
}

fn read_port(option: &'static str, typed: &str, port: &str) -> Result<u16, RequestError> {
    let cause = match port.parse::<u32>() {
        Ok(0) => "packets cannot be sent to port 0".to_owned(),
        Ok(number) if number <= u32::from(u16::MAX) => return Ok(number as u16),
        _ => format!("`{port}` is not a port"),
    };
    Err(value::unusable(option, typed, cause, "ports go from 1 to 65535; IPv6 with a port is written `[V6]:PORT`"))
}

/// Returns true for an IPv6 address with or without a zone (`fe80::1%eth0`).
pub(super) fn is_v6(host: &str) -> bool {
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
    use crate::diagnostics::Explain;

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
            assert_eq!(target(Some(typed), Protocol::Native), Ok(expected), "{typed}");
        }
        assert_eq!(target(None, Protocol::Native), Ok(Target::Local));
        assert_eq!(target(Some("pi3"), Protocol::Echo), Ok(host("pi3", 7)));
    }

    #[test]
    fn impossible_hosts_are_refused_with_the_value() {
        for (typed, cause) in [
            ("", "names no host"),
            (":9862", "names no host"),
            ("pi3:0", "port 0"),
            ("[::1]:0", "port 0"),
            ("pi3:65536", "`65536` is not a port"),
            ("pi3:", "`` is not a port"),
            ("pi3:http", "`http` is not a port"),
            ("pi3:-1", "`-1` is not a port"),
            ("[::1", "not closed"),
            ("[pi3]:9862", "not an IPv6 address"),
            ("[::1]9862", "only `:PORT`"),
            ("udp://pi3", "`//pi3` is not a port"),
            ("a b", "host names cannot have"),
            ("user@pi3", "host names cannot have"),
            ("fe80::1%", "not a port"),
        ] {
            let error = target(Some(typed), Protocol::Native).expect_err(typed);
            assert!(error.explain().cause.is_some_and(|text| text.contains(cause)), "{typed}: {error:?}");
            assert!(error.to_string().contains(&format!("`{typed}`")), "{error}");
            assert!(error.explain().hint.is_some());
        }
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
            let error = target(Some(typed), Protocol::Native).expect_err(typed);
            assert_eq!(error.explain().cause.as_deref(), Some("an IPv6 address with a port needs brackets"), "{typed}");
            assert_eq!(error.explain().hint.as_deref(), Some(hint), "{typed}");
        }
        for (typed, cause) in [
            ("ssh:", "names no host"),
            ("ssh:pi@", "names no host"),
            ("ssh:@pi3", "names no host"),
            ("ssh:-oProxyCommand=reboot", "as an option"),
            ("ssh:pi@-oProxyCommand=reboot", "as an option"),
            ("ssh:pi3 reboot", "host names cannot have"),
            ("cmd:", "names no command"),
            ("cmd:  ", "names no command"),
            ("cmd:'' x", "names no command"),
            ("cmd:ip netns 'exec", "not closed"),
        ] {
            let error = target(Some(typed), Protocol::Native).expect_err(typed);
            assert!(error.explain().cause.is_some_and(|text| text.contains(cause)), "{typed}: {error:?}");
            assert!(error.to_string().contains(&format!("`{typed}`")) && error.explain().hint.is_some(), "{error}");
        }
    }
}
