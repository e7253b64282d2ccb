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
    /// `None` for a comment, and for other lines that the kernel writes between events.
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

/// A trace that was read.
#[derive(Debug, Default)]
pub struct Trace<'a> {
    spans: Vec<[i64; 2]>,
    /// Those of each CPU in the order of their ends.
    pub segments: Vec<TraceSegment<'a>>,
}

impl<'a> Trace<'a> {
    pub fn of(text: &'a str) -> Trace<'a> {
        let (mut trace, mut cpus) = (Trace::default(), BTreeMap::new());
        for line in text.lines() {
            if let Some((from, to)) = parse_span(line) {
                trace.close(take(&mut cpus));
                trace.spans.push([from.0, to.0]);
            } else if let Some(event) = TraceEvent::parse(line) {
                trace.take(event, &mut cpus);
            }
        }
        trace.close(cpus);
        trace
    }

    /// Whether it has all from `from_ns` to `to_ns`.
    pub fn covers(&self, from_ns: i64, to_ns: i64) -> bool {
        self.spans.iter().any(|[begin, end]| *begin <= from_ns && to_ns <= *end)
    }

    /// Ends a span.
    fn close(&mut self, cpus: BTreeMap<u16, Running<'a>>) {
        for (cpu, running) in cpus {
            let [_, end] = self.spans.last().copied().unwrap_or_default();
            self.add(cpu, running.name, false, running.since_ns, end);
        }
    }

    fn add(&mut self, cpu: u16, name: &'a str, is_interrupt: bool, from_ns: i64, to_ns: i64) {
        let is_idle = name.starts_with("swapper/") || name == "<idle>";
        let what = if is_idle { "idle" } else { name.trim() };
        self.segments.push(TraceSegment { cpu, what, is_interrupt, from_ns, to_ns });
    }

    fn take(&mut self, event: TraceEvent<'a>, cpus: &mut BTreeMap<u16, Running<'a>>) {
        // Before the first span.
        let Some([begin, _]) = self.spans.last().copied() else { return };
        let TraceEvent { at: Nanos(at), cpu, task, fields, .. } = event;
        let (name, pid) = task.rsplit_once('-').unwrap_or((task, ""));
        let running = cpus.entry(cpu).or_insert(Running { name, pid, since_ns: begin, interrupts: Vec::new() });
        if running.pid != pid {
            // A switch is missing: who ran since the event before is not known.
            *running = Running { name, pid, since_ns: at, interrupts: Vec::new() };
        }
        if event.event == "sched_switch" {
            let (before, after) = fields.split_once(" ==> next_comm=").unwrap_or((fields, ""));
            let known = before.strip_prefix("prev_comm=").and_then(|it| Some(it.rsplit_once(" prev_pid=")?.0));
            let (next, rest) = after.rsplit_once(" next_pid=").unwrap_or((after, ""));
            let since_ns = running.since_ns;
            let pid = rest.split(' ').next().unwrap_or_default();
            *running = Running { name: next, pid, since_ns: at, interrupts: Vec::new() };
            self.add(cpu, known.unwrap_or(name), false, since_ns, at);
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

/// The present task of a CPU, and the interrupts in it, the innermost last.
struct Running<'a> {
    name: &'a str,
    pid: &'a str,
    since_ns: i64,
    interrupts: Vec<(&'a str, i64)>,
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
            let [(before, pid), (next, next_pid)] =
                [from, to].map(|task| task.rsplit_once('-').expect("name and number"));
            let fields = format!("prev_comm={before} prev_pid={pid} prev_prio=120 prev_state=S");
            let next = format!("next_comm={next} next_pid={next_pid} next_prio=120");
            format!("{from} [001] d..2. 5.{at:06}: sched_switch: {fields} ==> {next}\n")
        };
        let text = [
            span_comment(Nanos(5_000_000_000), Nanos(5_001_000_000)),
            "<...>-9 [001] d.h.. 5.000100: irq_handler_entry: irq=9 name=eth0\n".into(),
            "<...>-9 [001] d.h.. 5.000110: irq_handler_exit: irq=9 ret=handled\n".into(),
            switch(200, "my hog-9", "swapper/1-0"),
            "<idle>-0 [001] ..s1. 5.000300: softirq_entry: vec=3 [action=NET_RX]\n".into(),
            "<idle>-0 [001] ..s1. 5.000340: softirq_exit: vec=3 [action=NET_RX]\n".into(),
            switch(600, "swapper/1-0", "measure-7"),
            switch(700, "measure-7", "cc1-8"),
            // The switch from cc1 is missing.
            switch(900, "other-6", "measure-7"),
            span_comment(Nanos(5_010_000_000), Nanos(5_010_000_000)),
        ];
        let text = text.concat();
        let trace = Trace::of(&text);
        let micros = |at: i64| (at - 5_000_000_000) / 1_000;
        let found: Vec<_> =
            trace.segments.iter().map(|it| (it.what, it.is_interrupt, micros(it.from_ns), micros(it.to_ns))).collect();
        let tasks = [("my hog", false, 0, 200), ("idle", false, 200, 600), ("measure", false, 600, 700)];
        let own = [("other", false, 900, 900), ("measure", false, 900, 1_000)];
        let expected =
            [&[("eth0", true, 100, 110), tasks[0], ("NET_RX", true, 300, 340), tasks[1], tasks[2]], &own[..]];
        assert_eq!(found, expected.concat());
        assert!(trace.covers(5_000_000_000, 5_001_000_000) && !trace.covers(5_010_000_000, 5_010_500_000));
    }
}
