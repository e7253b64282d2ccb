//! `latlab ping --stamps kernel`: stamps of both kernels on the way of each probe.

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use latlab::probe::{Fate, ProbeRecord};
use latlab::units::Stamp;
use rustix::process::Signal;

use crate::harness::{Latlab, contains, empty, wait_until};
use crate::lab::privileged;
use crate::serve::serve;
use crate::store::{only_recording, open, spool_bytes};

/// The stamps of a probe in the order of its way, in ns; absent ones are left out.
fn way(row: &ProbeRecord) -> Vec<i64> {
    let here = [row.sent, row.kernel.tx_sched, row.kernel.tx_software].map(|at| at.map(Stamp::as_nanos));
    let kernel = row.kernel;
    let there =
        [kernel.reflector_rx_software, row.reflector_received, row.reflector_sent, kernel.reflector_tx_software];
    let there = there.map(|at| at.map(Stamp::as_nanos));
    let back = [row.kernel.rx_software, row.received].map(|at| at.map(Stamp::as_nanos));
    here.into_iter().chain(there).chain(back).flatten().collect()
}

/// Expects the stamps of all answered probes, in order, to the error that the recording states. The last answers of a run
/// are followed by none that could carry the stamp of their driver.
fn expect_whole_ways(line: &str) {
    let ran = Latlab::new().line(line).measured();
    let (manifest, rows) = open(&only_recording(ran.directory()));
    let facts = manifest.run.stamps.expect("stamps");
    // A thread that lost its CPU between two clock readings makes the error larger, never the order wrong.
    assert_eq!(facts.clock_steps, 0, "{line}");
    let answered: Vec<&ProbeRecord> = rows.iter().filter(|row| row.fate == Fate::Answered).collect();
    assert!(answered.len() > 100, "{line}: {}", answered.len());
    for row in &answered {
        let way = way(row);
        let in_order = way.windows(2).all(|pair| pair[0] <= pair[1] + 2 * facts.error_ns);
        assert!(in_order, "{line}: {way:?}, error {}", facts.error_ns);
    }
    let whole = answered.iter().filter(|row| way(row).len() == 9).count();
    assert!(whole * 100 >= answered.len() * 80, "{line}: {whole} of {}", answered.len());
}

#[test]
fn both_kernels_stamp_each_probe_on_its_way() {
    for options in ["", "-i 1ms", "-i 1ms --wait spin", "-6", "-i 2ms --wait busy-poll"] {
        expect_whole_ways(&format!("ping -n 300 --warmup 20 --stamps kernel {options}"));
    }
    if privileged() {
        expect_whole_ways("ping lab -n 300 --warmup 20 --stamps kernel");
    }
}

#[test]
fn short_probes_carry_no_stamp_of_the_far_driver() {
    let ran = Latlab::new().line("ping -n 50 --warmup 0 -s 40 --stamps kernel").measured();
    let (_, rows) = open(&only_recording(ran.directory()));
    assert!(rows.iter().all(|row| row.kernel.reflector_tx_software.is_none()));
    assert!(rows.iter().any(|row| row.kernel.reflector_rx_software.is_some()));
}

#[test]
fn an_echo_leaves_the_stamps_of_this_host() {
    let echo = UdpSocket::bind("127.0.0.1:0").expect("a port");
    echo.set_read_timeout(Some(Duration::from_secs(2))).expect("a time-out");
    let address = echo.local_addr().expect("an address");
    let echoing = thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((bytes, from)) = echo.recv_from(&mut buffer) {
            echo.send_to(&buffer[..bytes], from).expect("sent");
        }
    });
    let ran =
        Latlab::new().line(&format!("ping {address} --protocol echo -n 100 --warmup 0 --stamps kernel")).measured();
    let (_, rows) = open(&only_recording(ran.directory()));
    let answered: Vec<&ProbeRecord> = rows.iter().filter(|row| row.fate == Fate::Answered).collect();
    assert!(!answered.is_empty() && answered.iter().all(|row| way(row).len() == 5 && way(row).is_sorted()));
    echoing.join().expect("no panic");
}

/// Stamps that are not read take up the receive buffer of the reflector's socket.
#[test]
fn a_session_with_stamps_that_falls_silent_does_not_stop_the_answers_to_others() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_serving, address) = serve(home.path(), "");
    let line = format!("ping {address} -i 5ms -d 50s --warmup 0 --stamps kernel");
    let stamped = Latlab::at(home.path()).line(&line).start();
    wait_until("it was answered", || spool_bytes(home.path()) > 64 * 20);
    stamped.signal(Signal::KILL);
    stamped.killed_by(Signal::KILL);
    let line = format!("ping {address} -n 15000 -d 60s --no-record --json");
    let plain = Latlab::at(home.path()).line(&line).start().exits_with_one_of(&[0, 4]).json();
    assert_eq!(plain["answered"], 15_000, "{plain:#}");
}

#[test]
fn stamps_of_a_nic_are_refused() {
    Latlab::new().line("ping -n 5 --stamps nic").stdout(empty()).stderr(contains("--stamps kernel")).failure(3);
}
