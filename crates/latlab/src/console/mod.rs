//! The only printing: data on stdout, messages on stderr. Everything reads the same without colour.
//!
//! Text comes from files and other hosts too. Whether stdout and stderr are terminals or not, every character that a
//! terminal obeys instead of showing it is escaped by `output`: control characters but line ends and tabs as `\x1b`, line and
//! paragraph separators and those that change the direction of text as `\u{202e}`; in JSON as `\u001b`, which a reader
//! of JSON decodes. Only CSV that goes to a file or pipe is left as it is.

#![expect(clippy::disallowed_methods, reason = "the only printing")]

mod full_screen;
mod output;

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::termios::tcgetwinsize;

use crate::diagnostics::{Caveat, Colour, Failure, Severity, in_words};
use crate::plan::defaults::{PLOT_WIDTH, PLOT_WIDTHS};
use crate::report::text::wrap;
use crate::report::{CaveatChoice, Style, text_plots};
use crate::session::random_bytes;

pub use full_screen::{FullScreen, leave_full_screen};
pub use output::{Progress, RedrawBegin, RedrawCost};
use output::{SharedStream, escaped, escaped_in_json, shared, write_whole};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Warnings and errors.
    Quiet,
    #[default]
    Usual,
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

    /// Bold blue, magenta, red: yellow cannot be read on a white background.
    const fn colour(self) -> &'static str {
        match self {
            Mark::Note => "1;34",
            Mark::Warning => "1;35",
            Mark::Error => "1;31",
        }
    }
}

/// Capabilities of one output stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
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

/// Whether the first of these variables of the environment that is set names a locale with UTF-8 (POSIX, section 8.2);
/// without any, the locale is POSIX.
fn is_utf8(variables: [Option<String>; 3]) -> bool {
    let locale = variables.into_iter().flatten().find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The output streams of this process and their capabilities.
pub struct Console {
    verbosity: Verbosity,
    is_utf8: bool,
    /// The terminal obeys control sequences.
    obeys_controls: bool,
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
            obeys_controls: term.as_deref().is_some_and(|term| !matches!(term, "" | "dumb")),
            is_utf8: is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok())),
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

    pub const fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    pub const fn data_screen(&self) -> Screen {
        self.data_screen
    }

    /// Width of a plot of groups in the terminal, in characters between its borders.
    pub fn plot_width(&self) -> usize {
        let columns = self.data_screen.columns;
        columns.map_or(PLOT_WIDTH, |columns| usize::from(columns).saturating_sub(2).max(*PLOT_WIDTHS.start() as usize))
    }

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

    /// Prints `plots` below what was printed, as text; in ASCII on request, or if the locale does not have UTF-8.
    pub fn plots(&self, plots: &str, in_ascii: bool) -> Result<(), Failure> {
        match in_ascii || !self.is_utf8 {
            _ if plots.is_empty() => Ok(()),
            true => self.data(&format!("\n{}", text_plots::in_ascii(plots))),
            false => self.data(&format!("\n{plots}")),
        }
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
        Console::expect_written(write_whole(&self.data, text))
    }

    /// The failure of writing results, if it is one.
    fn expect_written(written: io::Result<()>) -> Result<(), Failure> {
        match written {
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

    pub fn note(&self, text: &str) {
        if self.verbosity >= Verbosity::Usual {
            self.say(Mark::Note, text, &[]);
        }
    }

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

    /// A caveat as note, warning or error by its severity, in one line unless it is fatal or details are asked for; with
    /// `--quiet` notes are left out.
    pub fn caveat(&self, caveat: &Caveat) {
        let mark = match caveat.severity {
            Severity::Note => Mark::Note,
            Severity::Warning => Mark::Warning,
            Severity::Fatal => Mark::Error,
        };
        if mark == Mark::Note && self.verbosity < Verbosity::Usual {
            return;
        }
        let is_in_full = mark == Mark::Error || self.verbosity >= Verbosity::Verbose;
        let text = if is_in_full { caveat.message.clone() } else { Caveat::line(&caveat.message, &caveat.hint) };
        let filled = |text| Some(text).filter(|text: &&str| is_in_full && !text.is_empty());
        self.say(mark, &text, &[("effect", filled(&caveat.effect)), ("hint", filled(&caveat.hint))]);
    }

    /// A failure with cause and hint, at any verbosity.
    pub fn failure(&self, failure: &Failure) {
        let lines = [("cause", failure.cause.as_deref()), ("hint", failure.hint.as_deref())];
        self.say(Mark::Error, &failure.message, &lines);
    }

    /// A progress line on stderr: drawn at most twice a second, only on a terminal, not with `--quiet`; erased before
    /// a message, and when the value is dropped.
    ///
    /// `length` is in steps of the caller's choice; `None` if the end is unknown.
    pub fn progress(&self, title: &str, length: Option<u64>) -> Progress {
        let is_shown = self.message_screen.terminal && self.verbosity >= Verbosity::Usual;
        let stream = is_shown.then(|| Arc::clone(&self.talking));
        Progress::new(stream, title, length)
    }

    /// A full screen on stderr, on whose alternate screen the caller draws; `None` without a terminal that has one, or with
    /// `--quiet`. Messages are shown on it, and printed when it is left.
    pub fn full_screen(&self) -> Option<FullScreen> {
        self.has_full_screen().then(|| FullScreen::enter(&self.talking))
    }

    /// Whether [`Console::full_screen`] has one.
    pub fn has_full_screen(&self) -> bool {
        self.message_screen.terminal && self.obeys_controls && self.verbosity >= Verbosity::Usual
    }

    /// Whether the locale has UTF-8, without which text for a person is best in ASCII.
    pub const fn is_utf8(&self) -> bool {
        self.is_utf8
    }

    /// Errors of stderr are ignored: they cannot be reported anywhere.
    fn say(&self, mark: Mark, text: &str, lines: &[(&str, Option<&str>)]) {
        let Screen { colour, columns, .. } = self.message_screen;
        let _ = write_whole(&self.talking, &escaped(&message(mark, text, lines, colour, columns), colour));
    }
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

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
            is_utf8: true,
            obeys_controls: false,
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
    fn plots_are_in_ascii_unless_the_locale_has_utf_8() {
        for (variables, expected) in [
            ([None, None, Some("C.UTF-8")], true),
            ([Some("de_CH.utf8"), Some("C"), None], true),
            ([Some(""), Some("C"), Some("C.UTF-8")], false),
            ([None, None, None], false),
        ] {
            assert_eq!(is_utf8(variables.map(|value| value.map(str::to_owned))), expected, "{variables:?}");
        }
        let (data, talking) = (Paper::default(), Paper::default());
        let mut console = console(Verbosity::Usual, &data, &talking);
        for (is_utf8, in_ascii, expected) in [(true, false, "\n█\n"), (true, true, "\n#\n"), (false, false, "\n#\n")]
        {
            console.is_utf8 = is_utf8;
            console.plots("█\n", in_ascii).expect("paper takes it");
            console.plots("", in_ascii).expect("paper takes it");
            assert_eq!(std::mem::take(&mut *data.written.lock().expect("no panic")), expected.as_bytes());
        }
    }
}
