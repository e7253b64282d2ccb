//! Processes in /proc.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The processes whose parent is `pid`.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("Linux has it");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|child| parent(*child) == Some(pid)).collect()
}

/// Whether `pid` exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    fields(pid).is_some_and(|fields| fields.first().is_some_and(|state| state != "Z"))
}

/// The arguments with which `pid` was started.
pub(crate) fn arguments(pid: i32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// The network namespaces of the threads of `pid`.
pub(crate) fn network_namespaces(pid: i32) -> Vec<String> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let links = threads.filter_map(|thread| fs::read_link(thread.ok()?.path().join("ns/net")).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

/// The process group of `pid`.
pub(crate) fn group(pid: i32) -> Option<i32> {
    fields(pid)?.get(2)?.parse().ok()
}

fn parent(pid: i32) -> Option<i32> {
    fields(pid)?.get(1)?.parse().ok()
}

/// The fields of `/proc/PID/stat` after the name: state, parent, ….
fn fields(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// A descendant of `ancestor` that has `words` among its arguments.
pub(crate) fn below(ancestor: i32, words: &[&str]) -> Option<i32> {
    let has_words = |pid: i32| {
        let arguments = arguments(pid);
        words.iter().all(|word| arguments.iter().any(|argument| argument == word))
    };
    children(ancestor).into_iter().find_map(|child| if has_words(child) { Some(child) } else { below(child, words) })
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("it runs");
}
