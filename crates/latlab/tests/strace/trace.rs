//! Parses the output of [strace(1)](https://man7.org/linux/man-pages/man1/strace.1.html) into the calls of each thread.

use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Its arguments and its result, as strace prints them.
    pub(crate) text: String,
}

impl Call {
    /// The return value; `None` if the thread ended during the call.
    pub(crate) fn returned(&self) -> Option<i64> {
        self.text.rsplit_once(" = ")?.1.split_whitespace().next()?.parse().ok()
    }

    /// Whether this is a send call.
    pub(crate) fn sends(&self) -> bool {
        matches!(self.name.as_str(), "sendto" | "sendmsg" | "sendmmsg")
    }

    /// Whether this is a receive call.
    pub(crate) fn receives(&self) -> bool {
        matches!(self.name.as_str(), "recvfrom" | "recvmsg" | "recvmmsg")
    }
}

/// The calls by thread id, in the order in which they started.
pub(crate) struct Trace(BTreeMap<u32, Vec<Call>>);

impl Trace {
    /// Parses the output of `strace -f -o FILE`, of which each line begins with a thread id.
    pub(crate) fn parse(text: &str) -> Trace {
        let mut threads: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
        for line in text.lines() {
            let (thread, event) = line.split_once(char::is_whitespace).expect("a thread id and an event");
            let calls = threads.entry(thread.parse().expect("a thread id")).or_default();
            let event = event.trim_start();
            if let Some(rest) = event.strip_prefix("<... ") {
                let (_, rest) = rest.split_once(" resumed>").expect("a resumed call");
                calls.last_mut().expect("an unfinished call").text.push_str(rest);
            } else if let Some((name, text)) = event.split_once('(').filter(|_| !event.starts_with(['-', '+'])) {
                let text = text.trim_end_matches("<unfinished ...>").to_owned();
                calls.push(Call { name: name.to_owned(), text });
            }
        }
        Trace(threads)
    }

    /// The calls of the only thread that made a call for which `wanted` is true.
    pub(crate) fn thread_that(&self, wanted: impl Fn(&Call) -> bool) -> &[Call] {
        let mut found = self.0.values().filter(|calls| calls.iter().any(&wanted));
        let calls = found.next().expect("a thread that made the call");
        assert!(found.next().is_none(), "two threads made the call");
        calls
    }
}

/// The calls from the first to the last for which `is_probe` is true.
pub(crate) fn between(calls: &[Call], is_probe: impl Fn(&Call) -> bool) -> &[Call] {
    let first = calls.iter().position(&is_probe).expect("a first probe");
    let last = calls.iter().rposition(&is_probe).expect("a last probe");
    &calls[first..=last]
}

#[test]
fn interrupted_lines_are_parsed_as_one_call() {
    let trace = Trace::parse(
        "10    execve(\"latlab\", [\"latlab\"], 0x7ffd /* 9 vars */) = 0\n\
         11 sendto(3, \"\\21 = 7\"..., 64, 0, NULL, 0 <unfinished ...>\n\
         10 write(1, \"\", 0) = 0\n\
         11 <... sendto resumed>) = 64\n\
         11 --- SIGUSR1 {si_signo=SIGUSR1} ---\n\
         11 madvise(0x7f, 4096, MADV_DONTNEED) = 0\n\
         11 recvfrom(3, 0x7f, 65536, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)\n\
         11 +++ exited with 0 +++\n",
    );
    let calls = trace.thread_that(Call::sends);
    let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["sendto", "madvise", "recvfrom"]);
    assert_eq!(calls.iter().map(Call::returned).collect::<Vec<_>>(), [Some(64), Some(0), Some(-1)]);
    assert_eq!(between(calls, |call| call.sends() || call.receives()).len(), 3);
    assert_eq!(between(calls, Call::sends).len(), 1);
}
