//! The only printing: data on stdout, messages on stderr. Everything reads the same without colour.
//!
//! Text comes from files and other hosts too. Whether stdout and stderr are terminals or not, every character that a
//! terminal obeys instead of showing it is escaped here: control characters but line ends and tabs as `\x1b`, line and
//! paragraph separators and those that change the direction of text as `\u{202e}`; in JSON as `\u001b`, which a reader
//! of JSON decodes. Only CSV that goes to a file or pipe is left as it is.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;

use crate::diagnostics::{Caveat, Colour, Failure, Severity, in_words};
use crate::plan::defaults::{PLOT_WIDTH, PLOT_WIDTHS};
use crate::report::text::wrap;
use crate::report::{CaveatChoice, Style};
use crate::session::random_bytes;
use crate::units::human::columns as width;

/// Which messages reach stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Warnings and errors.
    Quiet,
    /// Progress and notes too.
    #[default]
    Usual,
    /// Details too: `--verbose`.
    Verbose,
}

/// The word that begins a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Note,
    Warning,
    Error,
}

impl Mark {
    const fn word(self) -> &'static str {
        match self {
            Mark::Note => "note",
            Mark::Warning => "warning",
            Mark::Error => "error",
        }
    }

    /// Bold blue, yellow, red.
    const fn colour(self) -> &'static str {
        match self {
            Mark::Note => "1;34",
            Mark::Warning => "1;33",
            Mark::Error => "1;31",
        }
    }
}

/// Capabilities of one output stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// The stream is a terminal.
    pub terminal: bool,
    /// Colours, if the terminal has them and `NO_COLOR` is not set.
    pub colour: Colour,
    /// Characters in a line, if the terminal reports them.
    pub columns: Option<u16>,
}

impl Screen {
    /// The capabilities that follow from whether it is a terminal, `NO_COLOR` and `TERM`.
    fn judged(terminal: bool, no_color: Option<&str>, term: Option<&str>, mark: Colour) -> Screen {
        let refused = no_color.is_some_and(|value| !value.is_empty());
        let coloured = terminal && !refused && term != Some("dumb");
        Screen { terminal, colour: if coloured { mark } else { Colour::OFF }, columns: None }
    }

    /// With the width from `COLUMNS`, or else from the terminal of `stream`.
    fn measured(self, stream: impl AsFd, columns: Option<&str>) -> Screen {
        let typed = columns.and_then(|columns| columns.parse().ok());
        let reported = || tcgetwinsize(stream).ok().map(|size| size.ws_col);
        let columns = if self.terminal { typed.or_else(reported).filter(|columns| *columns > 0) } else { None };
        Screen { columns, ..self }
    }
}

/// A stream that two threads may share.
struct OutputStream {
    stream: Box<dyn Write + Send>,
    /// Columns of the progress line that is drawn on it; 0 without one.
    drawn: usize,
}

type SharedStream = Arc<Mutex<OutputStream>>;

/// The output streams of this process and their capabilities.
pub struct Console {
    verbosity: Verbosity,
    data_screen: Screen,
    message_screen: Screen,
    data: SharedStream,
    talking: SharedStream,
}

impl Console {
    /// stdout and stderr of this process.
    pub fn of_this_process(verbosity: Verbosity) -> Console {
        let no_color = std::env::var("NO_COLOR").ok();
        let term = std::env::var("TERM").ok();
        let columns = std::env::var("COLUMNS").ok();
        // Without random bytes nothing is coloured.
        let mark = random_bytes().map_or(Colour::OFF, |bytes| Colour::marked(u64::from_ne_bytes(bytes)));
        let screen = |terminal| Screen::judged(terminal, no_color.as_deref(), term.as_deref(), mark);
        Console {
            verbosity,
            data_screen: screen(io::stdout().is_terminal()).measured(io::stdout(), columns.as_deref()),
            message_screen: screen(io::stderr().is_terminal()).measured(io::stderr(), columns.as_deref()),
            data: shared(io::stdout()),
            talking: shared(io::stderr()),
        }
    }

    /// The same streams with another verbosity.
    pub fn with_verbosity(self, verbosity: Verbosity) -> Console {
        Console { verbosity, ..self }
    }

    /// Which messages are printed.
    pub const fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Capabilities of stdout.
    pub const fn data_screen(&self) -> Screen {
        self.data_screen
    }

    /// Width of a plot of groups in the terminal, in characters between its borders.
    pub fn plot_width(&self) -> usize {
        let columns = self.data_screen.columns;
        columns.map_or(PLOT_WIDTH, |columns| usize::from(columns).saturating_sub(2).max(*PLOT_WIDTHS.start() as usize))
    }

    /// Capabilities of stderr.
    pub const fn message_screen(&self) -> Screen {
        self.message_screen
    }

    /// The style of text on stdout.
    pub fn data_style(&self) -> Style {
        self.style(self.data_screen)
    }

    /// The style of text on stderr.
    pub fn message_style(&self) -> Style {
        self.style(self.message_screen)
    }

    fn style(&self, screen: Screen) -> Style {
        let caveats = match self.verbosity {
            Verbosity::Quiet => CaveatChoice::Warnings,
            Verbosity::Usual => CaveatChoice::Foremost,
            Verbosity::Verbose => CaveatChoice::All,
        };
        Style::new(screen.colour, screen.columns, caveats)
    }

    /// Prints results to stdout, with a line end after the last line.
    ///
    /// A closed pipe is not a failure; any other error is, since results would be lost.
    pub fn data(&self, text: &str) -> Result<(), Failure> {
        self.results(&escaped(text, self.data_screen.colour))
    }

    /// Prints `json` to stdout in the same way.
    pub fn document(&self, json: &str) -> Result<(), Failure> {
        self.results(&escaped_in_json(json))
    }

    /// Prints `csv` to stdout in the same way: unchanged unless stdout is a terminal, since CSV has no escapes.
    pub fn values(&self, csv: &str) -> Result<(), Failure> {
        if self.data_screen.terminal { self.data(csv) } else { self.results(csv) }
    }

    fn results(&self, text: &str) -> Result<(), Failure> {
        match write_whole(&self.data, text) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::world("cannot write the results to stdout")
                    .because(in_words(&error))
                    .hint("redirect stdout to another file system"))
            }
            _ => Ok(()),
        }
    }

    /// The descriptor of stdout, for a protocol of bytes; the caller must print nothing else there.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn bytes(&self) -> io::Result<OwnedFd> {
        io::stdout().as_fd().try_clone_to_owned()
    }

    /// A detail that only `--verbose` shows.
    pub fn detail(&self, text: &str) {
        if self.verbosity >= Verbosity::Verbose {
            self.say(Mark::Note, text, &[]);
        }
    }

    /// A note.
    pub fn note(&self, text: &str) {
        if self.verbosity >= Verbosity::Usual {
            self.say(Mark::Note, text, &[]);
        }
    }

    /// Several lines on stderr.
    pub fn lines(&self, text: &str) {
        if self.verbosity >= Verbosity::Usual {
            // A closed stderr cannot be reported anywhere.
            let _ = write_whole(&self.talking, &escaped(text, self.message_screen.colour));
        }
    }

    /// A warning, with a hint if there is a remedy.
    pub fn warning(&self, text: &str, hint: Option<&str>) {
        self.say(Mark::Warning, text, &[("hint", hint)]);
    }

    /// A failure that only leaves something out: a warning with cause and hint.
    pub fn left_out(&self, failure: &Failure) {
        let lines = [("cause", failure.cause.as_deref()), ("hint", failure.hint.as_deref())];
        self.say(Mark::Warning, &format!("skipped: {}", failure.message), &lines);
    }

    /// A caveat as note, warning or error by its severity; with `--quiet` notes are left out.
    pub fn caveat(&self, caveat: &Caveat) {
        let mark = match caveat.severity {
            Severity::Note => Mark::Note,
            Severity::Warning => Mark::Warning,
            Severity::Fatal => Mark::Error,
        };
        if self.verbosity >= Verbosity::Usual || mark != Mark::Note {
            let filled = |text| Some(text).filter(|text: &&str| !text.is_empty());
            self.say(mark, &caveat.message, &[("effect", filled(&caveat.effect)), ("hint", filled(&caveat.hint))]);
        }
    }

    /// A failure with cause and hint, at any verbosity.
    pub fn failure(&self, failure: &Failure) {
        let lines = [("cause", failure.cause.as_deref()), ("hint", failure.hint.as_deref())];
        self.say(Mark::Error, &failure.message, &lines);
    }

    /// A progress line on stderr: drawn at most four times a second, only on a terminal, not with `--quiet`; erased before
    /// a message, and when the value is dropped.
    ///
    /// `length` is in steps of the caller's choice; `None` if the end is unknown.
    pub fn progress(&self, title: &str, length: Option<u64>) -> Progress {
        let is_shown = self.message_screen.terminal && self.verbosity >= Verbosity::Usual;
        let stream = is_shown.then(|| Arc::clone(&self.talking));
        Progress { stream, title: in_one_line(title), length, shown_at: Cell::new(None) }
    }

    /// Errors of stderr are ignored: they cannot be reported anywhere.
    fn say(&self, mark: Mark, text: &str, lines: &[(&str, Option<&str>)]) {
        let Screen { colour, columns, .. } = self.message_screen;
        let _ = write_whole(&self.talking, &escaped(&message(mark, text, lines, colour, columns), colour));
    }
}

/// A progress line; see [`Console::progress`].
pub struct Progress {
    /// `None` if it is not shown.
    stream: Option<SharedStream>,
    title: String,
    length: Option<u64>,
    shown_at: Cell<Option<Instant>>,
}

/// The interval between two drawings of a progress line.
const REDRAW: Duration = Duration::from_millis(250);
/// The width of a terminal that does not report it.
const USUAL_COLUMNS: usize = 80;
/// Columns of a progress bar: the second number, if the whole title does not fit beside the first.
const BAR_COLUMNS: [usize; 2] = [20, 10];
/// A part of a title that is shorter than this is left out.
const TITLE_COLUMNS: usize = 12;

impl Progress {
    /// Shows `done` steps, with `text` at the end of the line; may be called at any rate.
    pub fn show(&self, done: u64, text: &str) {
        let now = Instant::now();
        let is_due = self.shown_at.get().is_none_or(|shown_at| now - shown_at >= REDRAW);
        let Some(stream) = self.stream.as_ref().filter(|_| is_due) else { return };
        self.shown_at.set(Some(now));
        let share = self.length.map(|length| (done as f64 / length.max(1) as f64).min(1.0));
        // Read each time, since a terminal can be resized. In its last column some terminals begin a new line.
        let reported = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if reported == 0 { USUAL_COLUMNS } else { reported } - 1;
        lock(stream).draw(&progress_line(&self.title, share, &in_one_line(text), columns));
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

/// `━━━╸      `
fn bar(share: f64, cells: usize) -> String {
    let halves = (share * 2.0 * cells as f64) as usize;
    let done = "━".repeat(halves / 2) + if halves % 2 == 1 { "╸" } else { "" };
    format!("{done:cells$}")
}

/// `text` in at most `columns`, without as many of its last parts as do not fit; parts are separated by ` · `. A single
/// part ends with `…` where it is cut.
fn cut(text: &str, columns: usize) -> String {
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

/// A message in the form of the documentation: `error: …`, then indented `cause: …` and `hint: …`; on a terminal wrapped to
/// its `columns`.
fn message(mark: Mark, text: &str, lines: &[(&str, Option<&str>)], colour: Colour, columns: Option<u16>) -> String {
    let word = colour.paint(mark.colour(), &format!("{}:", mark.word()));
    let mut message = format!("{word} {}", indented(text, columns));
    for (name, line) in lines {
        if let Some(line) = line {
            message += &format!("\n  {name}: {}", indented(line, columns));
        }
    }
    message
}

/// The longest word in front of a text, with its indentation.
const FRONT: usize = "  effect: ".len();

/// Indents further lines of a text under its first.
fn indented(text: &str, columns: Option<u16>) -> String {
    let Some(columns) = columns else { return text.trim_end().replace('\n', "\n    ") };
    let available = usize::from(columns).max(40) - FRONT;
    text.lines().flat_map(|line| wrap(line, available)).collect::<Vec<_>>().join("\n    ")
}

/// Whether a terminal obeys `char` instead of showing it: control characters (Unicode category Cc) but line ends and tabs,
/// line separators, and what changes the direction of text (Unicode annex 9, section 2).
fn is_obeyed(char: char) -> bool {
    let is_direction =
        matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_direction || matches!(char, '\u{2028}' | '\u{2029}') || (char.is_control() && !matches!(char, '\n' | '\t'))
}

/// `text` without a character that a terminal obeys, except in colours of this process.
fn escaped(text: &str, own: Colour) -> String {
    let escape = |char: char| match u32::from(char) {
        code @ ..0x100 => format!("\\x{code:02x}"),
        code => format!("\\u{{{code:x}}}"),
    };
    replaced(text, escape, |rest| own.split(rest))
}

/// `json` without such a character, which can only be in a string.
fn escaped_in_json(json: &str) -> String {
    replaced(json, |char| format!("\\u{:04x}", u32::from(char)), |_| None)
}

/// `text` in one line without such a character.
fn in_one_line(text: &str) -> String {
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

fn shared(stream: impl Write + Send + 'static) -> SharedStream {
    Arc::new(Mutex::new(OutputStream { stream: Box::new(stream), drawn: 0 }))
}

fn lock(stream: &SharedStream) -> MutexGuard<'_, OutputStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes `text` and a line end in one call, so that lines of two processes on one terminal do not mix.
fn write_whole(stream: &SharedStream, text: &str) -> io::Result<()> {
    let mut stream = lock(stream);
    stream.erase();
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
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
    fn erase(&mut self) {
        if self.drawn > 0 {
            self.draw("");
            let _ = self.stream.write_all(b"\r");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A stream that keeps what it gets, or refuses everything.
    #[derive(Clone, Default)]
    struct Paper {
        written: Arc<Mutex<Vec<u8>>>,
        refusal: Option<io::ErrorKind>,
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.refusal {
                Some(kind) => Err(kind.into()),
                None => self.written.lock().expect("one thread").write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn console(verbosity: Verbosity, data: &Paper, talking: &Paper) -> Console {
        Console {
            verbosity,
            data_screen: Screen::default(),
            message_screen: Screen::default(),
            data: shared(data.clone()),
            talking: shared(talking.clone()),
        }
    }

    fn read(paper: &Paper) -> String {
        String::from_utf8(paper.written.lock().expect("one thread").clone()).expect("text")
    }

    #[test]
    fn a_failure_has_message_cause_and_hint() {
        let (data, talking) = (Paper::default(), Paper::default());
        let failure = Failure::world("cannot open `x`").because("not there\nnor anywhere").hint("make it");
        console(Verbosity::Quiet, &data, &talking).failure(&failure);
        let expected = "error: cannot open `x`\n  cause: not there\n    nor anywhere\n  hint: make it\n";
        assert_eq!((read(&data), read(&talking)), (String::new(), expected.to_owned()));
    }

    #[test]
    fn a_message_is_wrapped_to_the_terminal_without_dividing_figures_and_commands() {
        let hint = [("hint", Some("wait 2 s, then run `latlab doctor` on that host"))];
        let printed = message(Mark::Error, "no answer within 3 s from `192.0.2.9`", &hint, Colour::OFF, Some(40));
        let expected = "error: no answer within 3 s from\n    `192.0.2.9`\n  hint: wait 2 s, then run\n    \
                        `latlab doctor` on that host";
        assert_eq!(printed, expected);
    }

    #[test]
    fn quiet_prints_warnings_errors_and_results() {
        for (verbosity, lines) in [(Verbosity::Quiet, 3), (Verbosity::Usual, 4), (Verbosity::Verbose, 5)] {
            let (data, talking) = (Paper::default(), Paper::default());
            let console = console(verbosity, &data, &talking);
            console.detail("a");
            console.note("b");
            console.warning("c", Some("d"));
            console.failure(&Failure::request("e"));
            console.data("f").expect("paper takes it");
            assert_eq!((read(&talking).lines().count(), read(&data).as_str()), (lines, "f\n"), "{verbosity:?}");
        }
    }

    #[test]
    fn a_caveat_has_effect_and_hint() {
        let (data, talking) = (Paper::default(), Paper::default());
        let caveat = Caveat::new(Severity::Warning, "send-slip", "12 probes were late", "p99 is too low", "spin");
        console(Verbosity::Usual, &data, &talking).caveat(&caveat);
        assert_eq!(read(&talking), "warning: 12 probes were late\n  effect: p99 is too low\n  hint: spin\n");
    }

    #[test]
    fn a_closed_pipe_is_success_and_a_full_disk_a_failure() {
        let talking = Paper::default();
        let closed = Paper { refusal: Some(io::ErrorKind::BrokenPipe), ..Paper::default() };
        assert_eq!(console(Verbosity::Usual, &closed, &talking).data("x"), Ok(()));
        let full = Paper { refusal: Some(io::ErrorKind::StorageFull), ..Paper::default() };
        let failure = console(Verbosity::Usual, &full, &talking).data("x").expect_err("lost");
        assert_eq!(failure.exit_code, 3);
    }

    #[test]
    fn colour_needs_a_terminal_without_no_color() {
        for (terminal, no_color, term, colour) in [
            (true, None, Some("xterm"), true),
            (true, Some(""), None, true),
            (true, Some("1"), Some("xterm"), false),
            (true, None, Some("dumb"), false),
            (false, None, Some("xterm"), false),
        ] {
            let screen = Screen::judged(terminal, no_color, term, Colour::marked(7));
            assert_eq!(screen.colour.is_on(), colour, "{terminal} {no_color:?} {term:?}");
        }
        let own = Colour::marked(7);
        assert_eq!(escaped(&message(Mark::Note, "x", &[], own, None), own), "\x1b[1;34mnote:\x1b[0m x");
    }

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

    #[test]
    fn every_way_to_print_escapes() {
        let (data, talking) = (Paper::default(), Paper::default());
        let console = console(Verbosity::Verbose, &data, &talking);
        let hostile = "\x1b[2J";
        console.data(hostile).expect("paper takes it");
        console.document(hostile).expect("paper takes it");
        console.lines(hostile);
        console.detail(hostile);
        console.note(hostile);
        console.warning(hostile, Some(hostile));
        console.caveat(&Caveat::new(Severity::Fatal, "send-slip", hostile, hostile, hostile));
        console.failure(&Failure::world(hostile).because(hostile).hint(hostile));
        console.left_out(&Failure::world(hostile).because(hostile).hint(hostile));
        for printed in [read(&data), read(&talking)] {
            assert!(!printed.contains('\x1b') && printed.contains("1b[2J"), "{printed}");
        }
    }

    #[test]
    fn a_progress_line_is_cut_to_the_width_of_the_terminal() {
        let (title, text) =
            ("ping local · udp ipv4 · 64 B · 10 s", "sent 203,118 · lost 18 · answered 203,100 · 7.1 s");
        for (columns, expected) in [
            (139, format!("{title}  ━━━━━━━━━━━━━━        {text}")),
            (79, format!("ping local  ━━━━━━━     {text}")),
            (62, format!("ping local  {text}")),
            (49, text.to_owned()),
            (48, "sent 203,118 · lost 18 · answered 203,100".to_owned()),
            (39, "sent 203,118 · lost 18".to_owned()),
            (9, "sent 203…".to_owned()),
            (0, String::new()),
        ] {
            assert_eq!(progress_line(title, Some(0.7), text, columns), expected, "{columns}");
        }
        assert_eq!(progress_line("x", None, "0.3 s", 39), "x  0.3 s");
        // Two columns for each character.
        for columns in 0..20 {
            let line = progress_line("測定測定測定", Some(0.5), "1 s", columns);
            assert!(width(&line) <= columns, "{columns}: {line}");
        }
    }

    #[test]
    fn a_message_erases_the_progress_line_and_the_end_too() {
        let (data, talking) = (Paper::default(), Paper::default());
        let mut console = console(Verbosity::Usual, &data, &talking);
        drop(console.progress("a", None));
        console.progress("no terminal", None).show(0, "1 s");
        assert_eq!(read(&talking), "");
        console.message_screen.terminal = true;
        let progress = console.progress("a", Some(2));
        progress.show(1, "1 s");
        progress.show(2, "too early to be drawn");
        console.note("b");
        drop(progress);
        assert_eq!(read(&talking), format!("\ra  {:20}  1 s\r{:28}\rnote: b\n", "━━━━━━━━━━", ""));
    }
}
