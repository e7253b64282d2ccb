//! Samples between two processes over loopback.
#![allow(clippy::print_stdout, reason = "a process that plays the peer says so")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use latlab_dds::{History, Participant, Qos, Reader, Receiving, Reliability, TopicType, Writer};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const CONFIGURATION: &str = "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>\
    <AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
    <Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>\
    <Tracing><Category>config</Category><OutputFile>stderr</OutputFile></Tracing>";
/// Set for a copy of this test binary that returns each message: its domain, type and reliability.
const ROLE: &str = "LATLAB_DDS_TEST_ECHO";
const RELIABLE: Reliability = Reliability::Reliable { max_blocking: Duration::from_secs(1) };

fn qos(reliability: Reliability) -> Qos {
    Qos { reliability, history: History::KeepLast(16), batches: false }
}

fn join(domain: u32) -> Participant {
    Participant::join(domain, CONFIGURATION, Some((LOOPBACK, 0))).expect("joined")
}

struct Ends {
    writer: Writer,
    reader: Reader,
    receiving: Receiving,
}

impl Ends {
    fn new(participant: &Participant, topics: (&str, &str), kind: TopicType, qos: Qos, partition: &str) -> Ends {
        let receiving = Receiving::default();
        let writer = participant.writer(topics.0, kind, qos, partition).expect("a writer");
        let reader = participant.reader(topics.1, kind, qos, partition, &receiving).expect("a reader");
        Ends { writer, reader, receiving }
    }

    fn await_match(&self) {
        wait_until("the peer is matched", || {
            self.writer.readers().expect("a count") > 0 && self.reader.writer_count().expect("a count") > 0
        });
        self.receiving.take_matched();
    }

    /// Waits until a message has returned. A writer knows the reader of its peer before that reader knows the writer, and
    /// until then samples with best effort are lost.
    fn await_echo(&mut self) {
        let first = b"first";
        let returned = (0..100).any(|_| {
            self.writer.write(first, 7).and_then(|()| self.writer.flush()).expect("written");
            self.next(Duration::from_millis(100)).is_some()
        });
        assert!(returned, "the peer returns messages");
        while self.next(Duration::from_millis(300)).is_some() {}
    }

    /// The next message, which a thread of the library takes.
    fn next(&mut self, span: Duration) -> Option<Vec<u8>> {
        let Ends { reader, receiving, .. } = self;
        let (mut buffer, mut found) = (vec![0; 70_000], None);
        receiving.run_within(span, &mut || {
            found = reader.take(&mut buffer).expect("takes").map(|sample| buffer[..sample.bytes].to_vec());
            found.is_some()
        });
        found
    }
}

fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A process that returns each message, killed when this is dropped.
struct Peer(Child);

impl Peer {
    fn start(domain: u32, kind: TopicType, reliability: Reliability) -> Peer {
        let role = format!("{domain} {} {}", kind == TopicType::KeyedMessage, reliability == RELIABLE);
        let program = std::env::current_exe().expect("this test");
        let mut child = Command::new(program)
            .args(["--exact", "play_the_echo", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let ready = lines.map_while(Result::ok).any(|line| line.contains("ready"));
        assert!(ready, "the peer is ready");
        Peer(child)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("killed");
    }
}

#[test]
fn play_the_echo() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let kind = if words[1] == "true" { TopicType::KeyedMessage } else { TopicType::Message };
    let reliability = if words[2] == "true" { RELIABLE } else { Reliability::BestEffort };
    let participant = join(words[0].parse().expect("a domain"));
    let mut ends = Ends::new(&participant, ("answers", "probes"), kind, qos(reliability), "");
    println!("ready");
    let mut buffer = vec![0; 70_000];
    // The parent kills this process, or it ends by itself.
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let Ends { writer, reader, receiving } = &mut ends;
        receiving.run_within(Duration::from_secs(1), &mut || {
            while let Some(sample) = reader.take(&mut buffer).expect("takes") {
                writer.write(&buffer[..sample.bytes], sample.key).expect("written");
            }
            false
        });
    }
}

#[test]
fn messages_return_whatever_their_type_and_reliability() {
    for (domain, kind, reliability) in [
        (21, TopicType::Message, Reliability::BestEffort),
        (22, TopicType::KeyedMessage, Reliability::BestEffort),
        (23, TopicType::Message, RELIABLE),
        (24, TopicType::KeyedMessage, RELIABLE),
    ] {
        let _peer = Peer::start(domain, kind, reliability);
        let participant = join(domain);
        let mut ends = Ends::new(&participant, ("probes", "answers"), kind, qos(reliability), "");
        ends.await_match();
        ends.await_echo();
        for (number, size) in [0usize, 1, 32, 1_472, 8_192, 63_000].into_iter().enumerate() {
            let message: Vec<u8> = (0..size).map(|index| (index * 7 + number) as u8).collect();
            ends.writer.write(&message, 7).expect("written");
            assert_eq!(ends.next(Duration::from_secs(5)), Some(message), "{kind:?} {reliability:?} {size}");
        }
        assert_eq!(ends.next(Duration::ZERO), None, "each message returns once");
    }
}

#[test]
fn receiving_sockets_have_the_requested_address() {
    let _participant = join(25);
    // The ports of a domain: 7400 and 250 for each (RTPS 2.5, section 9.6.1.1).
    let ports = 7_400 + 250 * 25..7_400 + 250 * 26;
    let sockets = fs::read_to_string("/proc/net/udp").expect("a table");
    let addresses: Vec<(&str, u16)> = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'))
        .filter_map(|(address, port)| Some((address, u16::from_str_radix(port, 16).ok()?)))
        .filter(|(_, port)| ports.contains(port))
        .collect();
    assert!(addresses.len() >= 2, "discovery and data: {addresses:?}");
    assert!(addresses.iter().all(|(address, _)| *address == "0100007F"), "{addresses:?}");
}

#[test]
fn a_refused_policy_is_named() {
    let participant = join(28);
    let offered = participant.writer("t", TopicType::Message, qos(Reliability::BestEffort), "").expect("a writer");
    let receiving = Receiving::default();
    let asked = participant.reader("t", TopicType::Message, qos(RELIABLE), "", &receiving).expect("a reader");
    wait_until("the refusal is noticed", || offered.refused_policy().expect("known").is_some());
    let id = asked.refused_policy().expect("known").expect("refused");
    assert_eq!((latlab_dds::policy_name(id), asked.writer_count()), (Some("RELIABILITY"), Ok(0)));
}

#[test]
fn writers_are_known_by_partition_and_participant() {
    let participant = join(29);
    let receiving = Receiving::default();
    let qos = qos(Reliability::BestEffort);
    let reader = participant.reader("t", TopicType::Message, qos, "lab/9862/*", &receiving).expect("a reader");
    let other = participant.writer("t", TopicType::Message, qos, "lab/9863/a").expect("a writer");
    assert!(!receiving.take_matched());
    let writer = participant.writer("t", TopicType::Message, qos, "lab/9862/a").expect("a writer");
    wait_until("the writer is matched", || reader.writer_count() == Ok(1));
    assert!(receiving.take_matched());
    let found = reader.writers(8).expect("a list");
    let matched = reader.writer(found[0]).expect("is there");
    assert_eq!((found.len(), &matched.partitions[..]), (1, &["lab/9862/a".to_owned()][..]));
    assert_ne!(matched.participant, [0; 16]);
    assert_eq!((writer.readers(), other.readers()), (Ok(1), Ok(0)));
    drop(writer);
    wait_until("its end is noticed", || reader.writer_count() == Ok(0));
    assert_eq!(reader.writer(found[0]), None);
}

#[test]
fn samples_of_further_keys_are_refused_by_a_reader_with_best_effort_alone() {
    let participant = join(32);
    for (reliability, expected) in [(Reliability::BestEffort, 1_000..=1_024), (RELIABLE, 3_000..=3_000)] {
        let topic = format!("{reliability:?}").chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        let mut ends = Ends::new(&participant, (&topic, &topic), TopicType::KeyedMessage, qos(reliability), "");
        ends.await_match();
        let mut taken = 0;
        for key in 0..3_000 {
            ends.writer.write(&[7], key).expect("written");
            let mut buffer = [0; 8];
            while ends.reader.take(&mut buffer).expect("takes").is_some() {
                taken += 1;
            }
        }
        assert!(expected.contains(&taken), "{reliability:?}: {taken}");
    }
}

#[test]
fn a_batch_is_sent_when_it_is_flushed() {
    // A reader of the same participant would get samples before they are sent. A reliable writer also sends when it asks for
    // an acknowledgement.
    let _peer = Peer::start(31, TopicType::Message, Reliability::BestEffort);
    let participant = join(31);
    let batching = Qos { batches: true, ..qos(Reliability::BestEffort) };
    let mut ends = Ends::new(&participant, ("probes", "answers"), TopicType::Message, batching, "");
    ends.await_match();
    ends.await_echo();
    for number in 0..3 {
        ends.writer.write(&[number], 0).expect("written");
    }
    assert_eq!(ends.next(Duration::from_millis(300)), None, "no sample was sent");
    ends.writer.flush().expect("sent");
    for number in 0..3 {
        assert_eq!(ends.next(Duration::from_secs(5)), Some(vec![number]));
    }
}

#[test]
fn a_longer_message_than_the_buffer_fills_it() {
    let participant = join(30);
    let mut ends = Ends::new(&participant, ("t", "t"), TopicType::Message, qos(RELIABLE), "");
    ends.await_match();
    ends.writer.write(&[7; 100], 0).expect("written");
    assert!(ends.receiving.wait(Duration::from_secs(5)));
    let mut buffer = [0; 64];
    let sample = ends.reader.take(&mut buffer).expect("takes").expect("a sample");
    assert_eq!((sample.bytes, buffer), (64, [7; 64]));
    ends.writer.write(&[7; 100], 0).expect("written");
    assert!(ends.receiving.wait(Duration::from_secs(5)));
    assert_eq!(ends.reader.take(&mut []).expect("takes").expect("a sample").bytes, 0);
}
