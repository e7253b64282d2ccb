//! Invalid command lines: exit code 2, the value in the message, a hint, nothing on stdout and no file.

use crate::harness::{Latlab, contains, empty};

/// Expects that `line` is refused with `value` in the message and with `hint`.
#[track_caller]
fn refused(line: &str, value: &str, hint: &str) {
    let ran = Latlab::new()
        .line(line)
        .stdout(empty())
        .stderr(contains(format!("`{value}`")))
        .stderr(contains("\n  hint: "))
        .stderr(contains(hint))
        .failure(2);
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("error: ") && first.contains(value) && !first.ends_with('.'), "{line}: {first}");
    let left = std::fs::read_dir(ran.directory()).expect("the directory is there").count();
    assert_eq!(left, 0, "{line} left something behind");
}

#[test]
fn invalid_values_of_ping_are_refused() {
    for (line, value, hint) in [
        ("ping --size 23", "23", "from 24 to 65507"),
        ("ping -s 64,23", "23", "from 24 to 65507"),
        ("ping --size 70000", "70000", "from 24 to 65507"),
        ("ping --size 70_000", "70_000", "from 24 to 65507"),
        ("ping --size 0", "0", "from 24 to 65507"),
        ("ping 127.0.0.1 --protocol echo --size 23", "23", "from 24 to 65507"),
        ("ping --count 0", "0", "1 or more"),
        ("ping -n 0", "0", "1 or more"),
        ("ping -n -1", "-1", "whole number"),
        ("ping -n 99999999999999999999", "99999999999999999999", "whole number"),
        ("ping --interval 0", "0", "up to 1h"),
        ("ping --interval 0ms", "0ms", "up to 1h"),
        ("ping --interval -5ms", "-5ms", "250us"),
        ("ping --duration -5s", "-5s", "250us"),
        ("ping --duration=-5s", "-5s", "250us"),
        ("ping -d 10", "10", "unit"),
        ("ping -i 10", "10", "unit"),
        ("ping -d 10parsec", "10parsec", "unit"),
        ("ping -d 25h", "25h", "up to 24h"),
        ("ping --timeout 0s", "0s", "up to 1m"),
        ("ping --timeout 61s", "61s", "up to 1m"),
        ("ping --timeout -1s", "-1s", "250us"),
        ("ping -i 1ms --max-backlog 0s", "0s", "up to 24h"),
        ("ping --warmup soon", "soon", "250us"),
        ("ping --source-port 0", "0", "from 1 to 65535"),
        ("ping --source-port 65536", "65536", "from 1 to 65535"),
        ("ping --dscp 64", "64", "from 0 to 63"),
        ("ping --dscp EF1", "EF1", "`AF11` to `AF43`"),
        ("ping --cpu 1024", "1024", "from 0 to 1023"),
        ("ping --peer-cpu -1", "-1", "whole number"),
        ("ping --fifo 100", "100", "from 1 to 99"),
        ("ping --quantiles 0.5,99", "99", "0.99"),
        ("ping --window 0s", "0s", "up to 24h"),
        ("ping --deadline 200", "200", "unit"),
        ("ping --tag build", "build", "KEY=VALUE"),
        ("ping --bind a/b", "a/b", "eth0"),
        ("ping --wait sleep", "sleep", "`busy-poll`"),
        ("ping --protocol icmp", "icmp", "`echo`"),
    ] {
        refused(line, value, hint);
    }
}

#[test]
fn invalid_targets_are_refused() {
    for (line, value, hint) in [
        ("ping 127.0.0.1:0", "127.0.0.1:0", "1 to 65535"),
        ("ping [::1]:0", "[::1]:0", "1 to 65535"),
        ("ping 127.0.0.1:65536", "127.0.0.1:65536", "1 to 65535"),
        ("ping [::1", "[::1", "[V6]:PORT"),
        ("ping user@host", "user@host", "HOST"),
        ("ping 192.0.2.9", "192.0.2.9:9862", "--psk-file"),
        ("ping [2001:db8::9]:7000", "[2001:db8::9]:7000", "--psk-file"),
        ("ping ssh:-oProxyCommand=reboot", "ssh:-oProxyCommand=reboot", "~/.ssh/config"),
        ("ping ssh:pi3 --psk-file k", "ssh:pi3", "leave it out"),
        ("ping cmd:", "cmd:", "latlab agent --stdio"),
        ("ping cmd:latlab", "cmd:", "--peer-addr ADDR"),
        ("ping lab --peer-addr 10.0.0.1", "lab", "ssh:HOST"),
        ("ping -6 127.0.0.1", "127.0.0.1:9862", "leave one"),
        ("ping 127.0.0.1 --peer-cpu 1", "127.0.0.1:9862", "latlab serve --cpu"),
        ("ping --protocol echo", "local", "HOST:PORT"),
        ("ping 127.0.0.1 --protocol echo --psk-file k", "--psk-file", "leave one"),
    ] {
        refused(line, value, hint);
    }
    refused("ping --queue 1", "--queue", "--transport xdp");
    refused("serve --transport xdp", "xdp", "answers senders of");
    refused("ping --transport tcp --df", "--df", "leave it out");
    refused("ping pi3 --transport tcp --protocol echo", "--protocol echo", "latlab serve --tcp");
    let many = Latlab::new().line("ping -s 24,25,26,27,28 --source-port sweep").stdout(empty());
    many.stderr(contains("error: 80 runs")).stderr(contains("hint: give fewer sizes")).failure(2);
}

#[test]
fn unknown_options_and_commands_are_refused() {
    for (line, value, hint) in [
        ("ping --cuont 5", "--cuont", "did you mean `--count`?"),
        ("ping --no-such-option", "--no-such-option", "latlab ping --help"),
        ("ping -z", "-z", "latlab ping --help"),
        ("ping local another", "another", "latlab ping --help"),
        ("pign", "pign", "did you mean `ping`?"),
        ("explain", "explain", "latlab --help"),
        ("ping --count", "--count", "<N>"),
        ("stream --interval 1ms", "--interval", "it is an option of `latlab ping`, `latlab wakeup`"),
        ("ping --gate-strict", "--gate", "add `--gate <CONDITION>`"),
        ("wakeup --relative=yes", "--relative", "write `--relative`"),
        ("ping --poisson", "--interval", "-i 1ms --poisson"),
        ("ping -i 1ms --seed 7", "--seed", "--poisson --seed 7"),
        ("ping --max-backlog 1s", "--max-backlog", "-i 1ms"),
        ("ping -4 -6", "--ipv4", "leave one"),
        ("ping -q -v", "--quiet", "leave one"),
        ("ping --no-record --output x", "--output", "leave one"),
        ("ping --json --json", "--json", "once"),
        ("summary", "REC", "latlab summary --help"),
        ("completions tcsh", "tcsh", "`bash`"),
    ] {
        refused(line, value, hint);
    }
    Latlab::new().stdout(empty()).stderr(contains("hint: start with `latlab ping`")).failure(2);
}

#[test]
fn invalid_values_of_the_other_commands_are_refused() {
    for (line, value, hint) in [
        ("serve --bind 0.0.0.0", "0.0.0.0:9862", "latlab keygen"),
        ("serve --bind 127.0.0.1:0", "127.0.0.1:0", "1 to 65535"),
        ("serve --bind localhost", "localhost", "0.0.0.0"),
        ("serve --max-sessions 0", "0", "from 1 to 1024"),
        ("serve --max-duration -1s", "-1s", "250us"),
        ("serve --max-size 23", "23", "from 24 to 65507"),
        ("serve --allow-down 1Gbit/s", "1Gbit/s", "latlab keygen"),
        ("serve --psk-fd 3 --allow-down 1Gb", "1Gb", "10Mbit/s"),
        ("serve --psk-fd three", "three", "whole number"),
        ("serve --psk-fd 3 --psk-file k", "--psk-fd", "leave one"),
        ("summary rec --quantiles 1", "1", "0.99"),
        ("summary rec --deadline 5", "5", "unit"),
        ("doctor --calibrate --size 23", "23", "from 24 to 65507"),
        ("doctor --cpu 4096", "4096", "from 0 to 1023"),
    ] {
        refused(line, value, hint);
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let strange = OsStr::from_bytes(b"\xff\xfe");
    Latlab::new().args([OsStr::new("ping"), strange]).stderr(contains("\n  hint: ")).failure(2);
}
