//! How text reaches a stream: whole, without characters that a terminal obeys, and over the progress line that is drawn
//! there.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;

use crate::diagnostics::Colour;
use crate::units::Nanos;
use crate::units::human::{columns as width, span};

/// A stream that two threads may share.
pub(super) struct OutputStream {
    pub(super) stream: Box<dyn Write + Send>,
    /// Columns of the progress line that is drawn on it; 0 without one.
    drawn: usize,
    /// The messages that wait until the full screen is left; `None` if it is not shown.
    pub(super) held: Option<String>,
}

pub(super) type SharedStream = Arc<Mutex<OutputStream>>;

pub(super) fn shared(stream: impl Write + Send + 'static) -> SharedStream {
    Arc::new(Mutex::new(OutputStream { stream: Box::new(stream), drawn: 0, held: None }))
}

fn lock(stream: &SharedStream) -> MutexGuard<'_, OutputStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes `text` and a line end in one call, so that lines of two processes on one terminal do not mix.
pub(super) fn write_whole(stream: &SharedStream, text: &str) -> io::Result<()> {
    let mut stream = lock(stream);
    stream.erase();
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    if let Some(held) = &mut stream.held {
        held.push_str(text);
        held.push_str(line_end);
        return Ok(());
    }
    stream.stream.write_all(format!("{text}{line_end}").as_bytes())?;
    stream.stream.flush()
}

impl OutputStream {
    /// Draws `line` over the progress line. Spaces cover the rest of a longer one: they need no control sequence but the
    /// carriage return, which any terminal knows.
    fn draw(&mut self, line: &str) {
        let columns = width(line);
        let rest = self.drawn.saturating_sub(columns);
        // A closed stderr cannot be reported anywhere.
        let _ = write!(self.stream, "\r{line}{:rest$}", "").and_then(|()| self.stream.flush());
        self.drawn = columns;
    }

    /// Erases the progress line, if one is drawn, and leaves the cursor at the begin of the line.
    pub(super) fn erase(&mut self) {
        if self.drawn > 0 {
            self.draw("");
            let _ = self.stream.write_all(b"\r");
        }
    }
}

/// Whether a terminal obeys `char` instead of showing it: control characters (Unicode category Cc) but line ends and tabs,
/// line separators, and what changes the direction of text (Unicode annex 9, section 2).
fn is_obeyed(char: char) -> bool {
    let is_direction =
        matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_direction || matches!(char, '\u{2028}' | '\u{2029}') || (char.is_control() && !matches!(char, '\n' | '\t'))
}

/// `text` without a character that a terminal obeys, except in colours of this process.
pub(super) fn escaped(text: &str, own: Colour) -> String {
    let escape = |char: char| match u32::from(char) {
        code @ ..0x100 => format!("\\x{code:02x}"),
        code => format!("\\u{{{code:x}}}"),
    };
    replaced(text, escape, |rest| own.split(rest))
}

/// `json` without such a character, which can only be in a string.
pub(super) fn escaped_in_json(json: &str) -> String {
    replaced(json, |char| format!("\\u{:04x}", u32::from(char)), |_| None)
}

/// `text` in one line without such a character.
pub(super) fn in_one_line(text: &str) -> String {
    escaped(text, Colour::OFF).replace(['\n', '\t'], " ")
}

/// `text` with every character that a terminal obeys replaced by its `escape`, and without the marks of the colours at
/// which `own_colour` splits it.
fn replaced<'a>(
    text: &'a str,
    escape: impl Fn(char) -> String,
    own_colour: impl Fn(&'a str) -> Option<(&'a str, &'a str)>,
) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(is_obeyed) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((code, behind)) = own_colour(rest) {
            shown += &format!("\x1b[{code}m");
            rest = behind;
            continue;
        }
        let mut chars = rest.chars();
        shown.extend(chars.next().map(&escape));
        rest = chars.as_str();
    }
    shown + rest
}

/// CPU time of drawings, with the making of what they show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedrawCost {
    pub redraws: u32,
    pub total: Nanos,
    /// Of the most expensive one.
    pub longest: Nanos,
}

/// CPU time of this thread at the begin of a drawing.
#[derive(Clone, Copy, Debug)]
pub struct RedrawBegin(Nanos);

impl RedrawCost {
    /// Begins a drawing on this thread.
    pub fn begin() -> RedrawBegin {
        // Without the kernel's answer the cost is 0.
        RedrawBegin(Nanos(latlab_sys::cpu_time::of_this_thread().unwrap_or_default()))
    }

    /// With the drawing that began at `begin` on this thread.
    #[must_use]
    pub fn and(self, begin: RedrawBegin) -> RedrawCost {
        let RedrawBegin(now) = RedrawCost::begin();
        let one = now - begin.0;
        RedrawCost { redraws: self.redraws + 1, total: self.total + one, longest: self.longest.max(one) }
    }

    /// `20 times, each in 41 µs of CPU time on average, 96 µs at most`
    pub fn words(self) -> String {
        let [average, longest] = [self.average(), self.longest].map(span);
        format!("{} times, each in {average} of CPU time on average, {longest} at most", self.redraws)
    }

    /// CPU time of one drawing on average; 0 before the first.
    pub fn average(self) -> Nanos {
        Nanos(self.total.0 / i64::from(self.redraws.max(1)))
    }
}

/// A progress line; see [`Console::progress`](super::Console::progress).
pub struct Progress {
    /// `None` if it is not shown.
    stream: Option<SharedStream>,
    title: String,
    length: Option<u64>,
    shown_at: Cell<Option<Instant>>,
    cost: Cell<RedrawCost>,
}

/// The interval between two drawings of a progress line.
const REDRAW: Duration = Duration::from_millis(500);
/// The width of a terminal that does not report it.
const USUAL_COLUMNS: usize = 80;
/// Columns of a progress bar: the second number, if the whole title does not fit beside the first.
const BAR_COLUMNS: [usize; 2] = [20, 10];
/// A part of a title that is shorter than this is left out.
const TITLE_COLUMNS: usize = 12;

impl Progress {
    /// A line that begins with `title`; `stream`: where it is drawn, `None` if it is not shown.
    pub(super) fn new(stream: Option<SharedStream>, title: &str, length: Option<u64>) -> Progress {
        Progress { stream, title: in_one_line(title), length, shown_at: Cell::new(None), cost: Cell::default() }
    }

    /// Whether it is drawn at all.
    pub fn is_shown(&self) -> bool {
        self.stream.is_some()
    }

    /// Shows `done` steps, with `text` at the end of the line, which is made only if the line is drawn; may be called at any
    /// rate.
    pub fn show(&self, done: u64, text: impl FnOnce() -> String) {
        let now = Instant::now();
        let is_due = self.shown_at.get().is_none_or(|shown_at| now - shown_at >= REDRAW);
        let Some(stream) = self.stream.as_ref().filter(|_| is_due) else { return };
        self.shown_at.set(Some(now));
        let begin = RedrawCost::begin();
        let share = self.length.map(|length| (done as f64 / length.max(1) as f64).min(1.0));
        // Read each time, since a terminal can be resized. In its last column some terminals begin a new line.
        let reported = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if reported == 0 { USUAL_COLUMNS } else { reported } - 1;
        lock(stream).draw(&progress_line(&self.title, share, &in_one_line(&text()), columns));
        self.cost.set(self.cost.get().and(begin));
    }

    /// What it has cost the thread that draws it.
    pub fn cost(&self) -> RedrawCost {
        self.cost.get()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stream.iter().for_each(|stream| lock(stream).erase());
    }
}

/// A progress line of at most `columns`. The title is cut first, then the bar is left out; `share` is that of the steps
/// that are done.
fn progress_line(title: &str, share: Option<f64>, text: &str, columns: usize) -> String {
    // Without a title where the text is cut, so that it does not appear again when a count becomes longer.
    let Some(left) = columns.checked_sub(width(text)) else { return cut(text, columns) };
    for cells in BAR_COLUMNS {
        let title_cut = cut(title, left.saturating_sub(cells + 4));
        let is_wide_enough = if cells == BAR_COLUMNS[0] { title_cut == title } else { !title_cut.ends_with('…') };
        if let Some(share) = share.filter(|_| is_wide_enough && !title_cut.is_empty()) {
            return format!("{title_cut}  {}  {text}", bar(share, cells));
        }
    }
    match cut(title, left.saturating_sub(2)) {
        title_cut if title_cut.is_empty() || (title_cut.ends_with('…') && left < TITLE_COLUMNS) => text.to_owned(),
        title_cut => format!("{title_cut}  {text}"),
    }
}

fn bar(share: f64, cells: usize) -> String {
    let halves = (share * 2.0 * cells as f64) as usize;
    let done = "━".repeat(halves / 2) + if halves % 2 == 1 { "╸" } else { "" };
    format!("{done:cells$}")
}

/// `text` in at most `columns`, without as many of its last parts as do not fit; parts are separated by ` · `. A single
/// part ends with `…` where it is cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
    let mut whole = text;
    while width(whole) > columns {
        let Some((shorter, _)) = whole.rsplit_once(" · ") else {
            let starts = whole.char_indices().map(|(end, _)| &whole[..end]);
            let start = starts.take_while(|start| width(start) < columns).last().unwrap_or_default();
            return if start.is_empty() { String::new() } else { format!("{start}…") };
        };
        whole = shorter;
    }
    whole.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped_and_colours_of_others_too() {
        for (text, text_form, json_form) in [
            ("a\tb\nµ \u{1f600}", "a\tb\nµ \u{1f600}", "a\tb\nµ \u{1f600}"),
            ("\x1b]0;x\x07\r\x08", r"\x1b]0;x\x07\x0d\x08", r"\u001b]0;x\u0007\u000d\u0008"),
            ("\0\x7f\u{9b}31m", r"\x00\x7f\x9b31m", r"\u0000\u007f\u009b31m"),
            ("\u{202e}\u{2066}\u{200f}\u{2028}", r"\u{202e}\u{2066}\u{200f}\u{2028}", r"\u202e\u2066\u200f\u2028"),
            ("\x1b[31;8mx\x1b[0m", r"\x1b[31;8mx\x1b[0m", r"\u001b[31;8mx\u001b[0m"),
        ] {
            for own in [Colour::OFF, Colour::marked(7)] {
                assert_eq!(escaped(text, own), text_form);
            }
            assert_eq!(escaped_in_json(text), json_form);
        }
        let own = Colour::marked(7);
        assert_eq!(escaped(&own.paint("31", "a\x1b[1m"), own), "\x1b[31ma\\x1b[1m\x1b[0m");
        assert_eq!(escaped(&own.adopt("\x1b[1mUsage:\x1b[0m x"), own), "\x1b[1mUsage:\x1b[0m x");
        assert_eq!(Colour::OFF.adopt("a"), "a");
        assert_eq!(in_one_line("a\nb\tc\r"), "a b c\\x0d");
    }
}
