//! An experiment before it begins: what will be done, in what order, how long it takes and how much it leaves.

use crate::report::paint::{Style, wrap};
use crate::units::Nanos;
use crate::units::human::{about, grouped, span};

/// What is planned.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanView {
    /// The experiment's name.
    pub name: String,
    /// What its runs measure, against what.
    pub work: String,
    /// Its conditions in one line each, in their order.
    pub conditions: Vec<String>,
    /// Rows that are left out, with the reason.
    pub impossible: Vec<(String, String)>,
    /// Runs of a condition in a block: `10 runs`, `until p99 ±3%, 60 runs at most`.
    pub runs: String,
    /// Runs that warm up, per condition and block.
    pub warmup_runs: u32,
    /// Blocks; of a rule the most.
    pub blocks: u32,
    /// What lies between blocks, in words.
    pub between: String,
    /// `randomized, seed 7`.
    pub order: String,
    /// All runs, at most.
    pub all_runs: u64,
    /// Of them over already.
    pub done: u64,
    /// What is expected of the rest.
    pub cost: PlanCost,
    /// The numbers of the conditions in the order of the blocks; blocks that are not shown are left out.
    pub blocks_shown: Vec<(u32, Vec<u32>)>,
    /// Where the experiment is, once it has begun.
    pub directory: Option<String>,
}

/// What the runs that are left take and leave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanCost {
    /// How long.
    pub duration: Nanos,
    /// A round trip was guessed to take so long; none: nothing was guessed.
    pub guessed: Option<Nanos>,
    /// On the disk.
    pub bytes: f64,
}

/// More than this nobody reads before it begins.
const CONDITIONS_SHOWN: usize = 24;
const TURNS_SHOWN: usize = 66;
const INDENT: usize = 13;

/// The plan as text.
pub fn render(view: &PlanView, style: Style) -> String {
    let mut lines = vec![format!("{} · {}", style.strong(&view.name), view.work)];
    let count = view.conditions.len();
    for (number, condition) in view.conditions.iter().enumerate().take(CONDITIONS_SHOWN) {
        let label = if number == 0 { "conditions" } else { "" };
        lines.push(format!("{label:<INDENT$}{:>2}  {condition}", number + 1));
    }
    if count > CONDITIONS_SHOWN {
        lines.push(format!("{:<INDENT$}    and {} more", "", count - CONDITIONS_SHOWN));
    }
    for (condition, reason) in &view.impossible {
        push(&mut lines, "left out", &format!("{condition}: {reason}"), style);
    }
    push(&mut lines, "runs", &runs(view), style);
    push(&mut lines, "order", &view.order, style);
    for (block, turns) in &view.blocks_shown {
        let shown: Vec<String> = turns.iter().take(TURNS_SHOWN).map(ToString::to_string).collect();
        let more = if turns.len() > TURNS_SHOWN { " …" } else { "" };
        push(&mut lines, &format!("block {block}"), &format!("{}{more}", shown.join(" ")), style);
    }
    push(&mut lines, "expected", &expected(view.cost), style);
    if let Some(directory) = &view.directory {
        push(&mut lines, "directory", directory, style);
    }
    lines.join("\n") + "\n"
}

fn push(lines: &mut Vec<String>, label: &str, text: &str, style: Style) {
    for (number, line) in wrap(text, style.width - INDENT).into_iter().enumerate() {
        lines.push(format!("{:<INDENT$}{line}", if number == 0 { label } else { "" }));
    }
}

fn runs(view: &PlanView) -> String {
    let warmup = match view.warmup_runs {
        0 => String::new(),
        1 => ", 1 more to warm up".into(),
        several => format!(", {several} more to warm up"),
    };
    let blocks = if view.blocks == 1 { "1 block".into() } else { format!("{} blocks", view.blocks) };
    let done = if view.done > 0 { format!(", {} of them done", grouped(view.done)) } else { String::new() };
    let between =
        if view.blocks > 1 && !view.between.is_empty() { format!(", {}", view.between) } else { String::new() };
    format!("{} per condition{warmup}; {blocks}{between}: {} runs in all{done}", view.runs, grouped(view.all_runs))
}

fn expected(cost: PlanCost) -> String {
    let guess = cost.guessed.map(|trip| format!(", if a round trip takes {}", span(trip))).unwrap_or_default();
    format!("about {}{guess}; about {}", roughly(cost.duration), size(cost.bytes))
}

/// `40 s`, `12 min`, `3.5 h`: nobody knows it better beforehand.
pub fn roughly(duration: Nanos) -> String {
    let seconds = duration.0 as f64 / 1e9;
    match seconds {
        seconds if seconds < 90.0 => format!("{} s", seconds.ceil().max(1.0)),
        seconds if seconds < 5_400.0 => format!("{} min", (seconds / 60.0).round()),
        seconds => format!("{} h", about(seconds / 3_600.0)),
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e6 => format!("{} kB", (bytes / 1e3).ceil().max(1.0)),
        bytes if bytes < 1e9 => format!("{} MB", about(bytes / 1e6)),
        bytes => format!("{} GB", about(bytes / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_what_how_often_and_how_long() {
        let view = PlanView {
            name: "udp under load".into(),
            work: "ping local · udp ipv4 · 64 B".into(),
            conditions: vec!["load=none".into(), "load=cpu=80%".into()],
            impossible: vec![("load=net=1Mbit/s@peer".into(), "no agent there".into())],
            runs: "10 runs".into(),
            warmup_runs: 1,
            blocks: 3,
            between: "a reboot between them".into(),
            order: "randomized, seed 7".into(),
            all_runs: 66,
            done: 4,
            cost: PlanCost { duration: Nanos::from_secs(700), guessed: Some(Nanos::from_micros(100)), bytes: 42e6 },
            blocks_shown: vec![(1, vec![1, 2, 2, 1])],
            directory: None,
        };
        let expected = "\
udp under load · ping local · udp ipv4 · 64 B
conditions    1  load=none
              2  load=cpu=80%
left out     load=net=1Mbit/s@peer: no agent there
runs         10 runs per condition, 1 more to warm up; 3 blocks, a reboot
             between them: 66 runs in all, 4 of them done
order        randomized, seed 7
block 1      1 2 2 1
expected     about 12 min, if a round trip takes 100 µs; about 42 MB
";
        assert_eq!(render(&view, Style::PLAIN), expected);
    }

    #[test]
    fn what_is_expected_is_rough() {
        for (seconds, words) in [(0, "1 s"), (40, "40 s"), (90, "2 min"), (700, "12 min"), (12_600, "3.5 h")] {
            assert_eq!(roughly(Nanos::from_secs(seconds)), words);
        }
        for (bytes, words) in [(10.0, "1 kB"), (42e6, "42 MB"), (1.2e9, "1.2 GB")] {
            assert_eq!(size(bytes), words);
        }
    }
}
