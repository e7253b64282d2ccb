//! `trace.txt`: what the kernel's scheduler and its interrupts did, as the text of ftrace. Each span that was kept begins with a
//! comment that states it.

use std::collections::BTreeMap;
use std::mem::take;

use crate::units::Nanos;

/// The comment before a span of the trace.
const SPAN: &str = "# latlab: from ";

/// A line of the trace, `NAME-PID [CPU] FLAGS SECONDS.MICROS: EVENT: FIELDS`, whose name may contain anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent<'a> {
    pub at: Nanos,
    pub cpu: u16,
    /// The task that the CPU ran up to this event, `NAME-PID`.
    pub task: &'a str,
    /// What happened, in the words of the kernel: `sched_switch`.
    pub event: &'a str,
    pub fields: &'a str,
}

impl TraceEvent<'_> {
    /// `None` for a comment and what else is no event.
    pub fn parse(line: &str) -> Option<TraceEvent<'_>> {
        let parse_behind = |place: usize| {
            let (cpu, rest) = line[place + 2..].split_once("] ")?;
            let (_flags, rest) = rest.trim_start().split_once(' ')?;
            let (time, rest) = rest.trim_start().split_once(": ")?;
            let (event, fields) = rest.split_once(':')?;
            let cpu = is_number(cpu).then(|| cpu.parse().ok())??;
            Some(TraceEvent { at: time_of(time)?, cpu, task: line[..place].trim(), event, fields: fields.trim_start() })
        };
        (!line.starts_with('#')).then(|| line.match_indices(" [").find_map(|(place, _)| parse_behind(place)))?
    }
}

/// `SECONDS.FRACTION` of CLOCK_MONOTONIC.
fn time_of(word: &str) -> Option<Nanos> {
    let (seconds, fraction) = word.split_once('.')?;
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse::<i64>().ok()?;
    Some(Nanos(seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The comment before the events of `[from, to]`.
pub fn span_comment(from: Nanos, to: Nanos) -> String {
    format!("{SPAN}{} to {} ns\n", from.0, to.0)
}

fn parse_span(line: &str) -> Option<(Nanos, Nanos)> {
    let (from, to) = line.strip_prefix(SPAN)?.strip_suffix(" ns")?.split_once(" to ")?;
    Some((Nanos(from.parse().ok()?), Nanos(to.parse().ok()?)))
}

/// What a CPU did from one instant to another, ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSegment<'a> {
    pub cpu: u16,
    /// The name of a task, `idle`, or that of an interrupt.
    pub what: &'a str,
    /// Its time is also that of the task in which it is, or of the interrupt.
    pub is_interrupt: bool,
    pub from_ns: i64,
    pub to_ns: i64,
}

/// A trace that was read. Spans of which the kernel overwrote events are left out: what the CPUs ran is not known then.
#[derive(Debug, Default)]
pub struct Trace<'a> {
    spans: Vec<[i64; 2]>,
    /// Those of each CPU in the order of time.
    pub segments: Vec<TraceSegment<'a>>,
}

impl<'a> Trace<'a> {
    pub fn of(text: &'a str) -> Trace<'a> {
        let (mut trace, mut span) = (Trace::default(), OpenSpan::default());
        for line in text.lines() {
            if let Some((from, to)) = parse_span(line) {
                trace.close(take(&mut span));
                span.ends_ns = [from.0, to.0];
            } else if line.starts_with("CPU:") && line.contains(" [LOST ") {
                span.is_incomplete = true;
            } else if let Some(event) = TraceEvent::parse(line) {
                span.take(event);
            }
        }
        trace.close(span);
        trace
    }

    /// Whether it is complete from `from_ns` to `to_ns`.
    pub fn covers(&self, from_ns: i64, to_ns: i64) -> bool {
        self.spans.iter().any(|[begin, end]| *begin <= from_ns && to_ns <= *end)
    }

    fn close(&mut self, mut span: OpenSpan<'a>) {
        let [from, to] = span.ends_ns;
        if from < to && !span.is_incomplete {
            for (cpu, running) in take(&mut span.cpus) {
                span.add(cpu, running.task, false, running.since_ns, to);
            }
            self.spans.push(span.ends_ns);
            self.segments.append(&mut span.segments);
        }
    }
}

/// A span while its events are read.
#[derive(Default)]
struct OpenSpan<'a> {
    ends_ns: [i64; 2],
    is_incomplete: bool,
    segments: Vec<TraceSegment<'a>>,
    cpus: BTreeMap<u16, Running<'a>>,
    /// The numbers of the threads that wait, and the CPU on which each began to.
    waiting: BTreeMap<&'a str, (u16, i64)>,
}

/// The present task of a CPU, and the interrupts in it, the innermost last.
struct Running<'a> {
    task: &'a str,
    since_ns: i64,
    interrupts: Vec<(&'a str, i64)>,
}

impl<'a> OpenSpan<'a> {
    fn add(&mut self, cpu: u16, what: &'a str, is_interrupt: bool, from_ns: i64, to_ns: i64) {
        self.segments.push(TraceSegment { cpu, what, is_interrupt, from_ns, to_ns });
    }

    fn take(&mut self, event: TraceEvent<'a>) {
        let TraceEvent { at: Nanos(at), cpu, fields, .. } = event;
        let (task, since_ns) = (name_of(event.task), self.ends_ns[0]);
        let running = self.cpus.entry(cpu).or_insert(Running { task, since_ns, interrupts: Vec::new() });
        running.task = task;
        if event.event == "sched_switch" {
            let next = fields.rsplit_once("next_comm=").and_then(|(_, next)| next.rsplit_once(" next_pid="));
            let since_ns = running.since_ns;
            (running.task, running.since_ns) = (next.map_or(task, |(next, _)| without_cpu(next)), at);
            self.add(cpu, task, false, since_ns, at);
            if OWN.contains(&task) && fields.contains(" prev_state=D") {
                self.waiting.insert(event.task.rsplit('-').next().unwrap_or_default(), (cpu, at));
            }
            let woken = next.and_then(|(_, pid)| self.waiting.remove(pid.split(' ').next()?));
            woken.into_iter().for_each(|(cpu, since_ns)| self.add(cpu, WAITED, true, since_ns, at));
            return;
        }
        match interrupt(&event) {
            Some((what, true)) => running.interrupts.push((what, at)),
            Some((_, false)) => {
                let begun = running.interrupts.pop();
                begun.into_iter().for_each(|(what, since_ns)| self.add(cpu, what, true, since_ns, at));
            }
            None => {}
        }
    }
}

/// The name of the task `NAME-PID`; the kernel does not know each.
fn name_of(task: &str) -> &str {
    match task.rsplit_once('-') {
        Some(("<idle>", _)) => IDLE,
        Some(("<...>", pid)) => pid,
        Some((name, _)) => name.trim(),
        None => task,
    }
}

const IDLE: &str = "idle";
/// The threads of latlab that measure: sender, sleeper, reflector.
const OWN: [&str; 3] = ["measure", "sleep", "latlab"];
/// What one of them did in an uninterruptible sleep: the CPU was not the cause.
const WAITED: &str = "wait for a page or a device";

fn without_cpu(task: &str) -> &str {
    if task.starts_with("swapper/") { IDLE } else { task }
}

/// The interrupt that begins at `event` or, if not `true`, ends.
fn interrupt<'a>(event: &TraceEvent<'a>) -> Option<(&'a str, bool)> {
    let name = match event.event.strip_suffix("_entry").or_else(|| event.event.strip_suffix("_exit"))? {
        "local_timer" => "timer interrupt",
        // `vec=3 [action=NET_RX]`
        "softirq" => event.fields.split_once("[action=")?.1.trim_end_matches(']'),
        // `irq=9 name=acpi`
        "irq_handler" => event.fields.split_once(' ')?.1.trim_start_matches("name="),
        _ => return None,
    };
    Some((name, event.event.ends_with("_entry")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [001] d..2. 24784.987425: sched_switch: prev_comm=swapper/1
       a [b] c-7 -663    [000] d..2. 24785.001515: sched_wakeup: comm=latlab
          <idle>-0       [001] d.h3. 24785.001717: irq_handler_entry: irq=9
";

    #[test]
    fn lines_are_read_whatever_the_name_of_the_process() {
        for line in ["", "# [001] x 1.5:", "x-1 [0a] d 1.5: y:", "x-1 [01] d 1: y:", "x-1 [01] d 1.5 y:"] {
            assert_eq!(TraceEvent::parse(line), None, "{line}");
        }
        let (at, cpu, task) = (Nanos(24_785_001_515_000), 0, "a [b] c-7 -663");
        let parsed = TraceEvent { at, cpu, task, event: "sched_wakeup", fields: "comm=latlab" };
        assert_eq!(TRACE.lines().nth(3).and_then(TraceEvent::parse), Some(parsed));
    }

    #[test]
    fn a_span_is_read_from_its_comment() {
        let (from, to) = (Nanos(5), Nanos(1_000_000_007));
        assert_eq!(parse_span(span_comment(from, to).trim_end()), Some((from, to)));
        assert_eq!((parse_span("# latlab: from 5"), parse_span("# tracer: nop")), (None, None));
    }

    #[test]
    fn segments_are_tasks_and_the_interrupts_in_them() {
        let switch = |at: u32, from: &str, to: &str| {
            let pid = to.len();
            format!(
                "{from} [001] d..2. 5.{at:06}: sched_switch: prev_comm=x next_comm={to} next_pid={pid} next_prio=120\n"
            )
        };
        let text = [
            span_comment(Nanos(5_000_000_000), Nanos(5_001_000_000)),
            "<...>-9 [001] d.h.. 5.000100: irq_handler_entry: irq=9 name=eth0\n".into(),
            "<...>-9 [001] d.h.. 5.000110: irq_handler_exit: irq=9 ret=handled\n".into(),
            switch(200, "my hog-9", "swapper/1"),
            "<idle>-0 [001] ..s1. 5.000300: softirq_entry: vec=3 [action=NET_RX]\n".into(),
            "<idle>-0 [001] ..s1. 5.000340: softirq_exit: vec=3 [action=NET_RX]\n".into(),
            switch(600, "<idle>-0", "measure"),
            switch(700, "measure-7", "cc1").replace("prev_comm=x", "prev_comm=x prev_state=D"),
            switch(900, "cc1-8", "measure"),
            span_comment(Nanos(5_010_000_000), Nanos(5_011_000_000)),
            switch(10_500, "a-1", "b"),
            "CPU:1 [LOST 345 EVENTS]\n".into(),
        ];
        let text = text.concat();
        let trace = Trace::of(&text);
        let micros = |at: i64| (at - 5_000_000_000) / 1_000;
        let found: Vec<_> =
            trace.segments.iter().map(|it| (it.what, it.is_interrupt, micros(it.from_ns), micros(it.to_ns))).collect();
        let tasks = [("my hog", false, 0, 200), ("idle", false, 200, 600), ("measure", false, 600, 700)];
        let own = [("cc1", false, 700, 900), (WAITED, true, 700, 900), ("measure", false, 900, 1_000)];
        let expected =
            [&[("eth0", true, 100, 110), tasks[0], ("NET_RX", true, 300, 340), tasks[1], tasks[2]], &own[..]];
        assert_eq!(found, expected.concat());
        assert!(trace.covers(5_000_000_000, 5_001_000_000) && !trace.covers(5_010_000_000, 5_010_500_000));
    }
}
