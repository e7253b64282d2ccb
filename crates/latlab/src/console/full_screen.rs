//! The alternate screen of a terminal, which is left as it was: the screen before it comes back with the cursor, and
//! messages meanwhile are printed then.
//!
//! No mode of the terminal driver is changed, so that Ctrl-C and Ctrl-Z are signals as ever, and a process that is killed
//! leaves nothing but the alternate screen (`tput rmcup` leaves it).

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;
use std::{panic, thread};

use rustix::termios::tcgetwinsize;

use super::output::{OutputStream, SharedStream, cut, in_one_line};
use crate::tui::ScreenSize;

/// Saves the cursor, clears and shows the alternate screen; hides the cursor (xterm, private modes 1049 and 25).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The reverse, in the reverse order.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// The most lines of messages that are shown on the alternate screen.
const MESSAGES: usize = 3;
/// The size of a terminal that does not report it.
const USUAL_SIZE: ScreenSize = ScreenSize { rows: 24, columns: 80 };
/// How often, and at which interval, a thread that ends the process tries to leave the screen while another one draws.
const ATTEMPTS: u32 = 50;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(1);

/// The stream whose alternate screen is shown, for a thread that ends the process.
static SHOWN: Mutex<Option<SharedStream>> = Mutex::new(None);

/// A full screen; see [`Console::full_screen`](super::Console::full_screen). It is left when the value is dropped.
pub struct FullScreen {
    stream: SharedStream,
}

impl FullScreen {
    /// Shows the alternate screen of the terminal that `stream` writes to.
    pub(super) fn enter(stream: &SharedStream) -> FullScreen {
        static LEAVE_AT_PANIC: Once = Once::new();
        LEAVE_AT_PANIC.call_once(|| {
            let report = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // The report would vanish with the alternate screen.
                leave_full_screen();
                report(info);
            }));
        });
        let screen = FullScreen { stream: Arc::clone(stream) };
        screen.show();
        screen
    }

    /// Shows the alternate screen again after it was left.
    pub fn show(&self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&self.stream));
        lock(&self.stream).enter();
    }

    /// The present size of the terminal.
    pub fn size(&self) -> ScreenSize {
        let reported = tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
        reported
            .map_or(USUAL_SIZE, |size| ScreenSize { rows: usize::from(size.ws_row), columns: usize::from(size.ws_col) })
    }

    /// Draws `lines` from the top, without characters that a terminal obeys, and the last messages over the lowest ones.
    pub fn draw(&self, lines: Vec<String>) {
        let columns = self.size().columns.saturating_sub(1);
        lock(&self.stream).draw_screen(lines, columns);
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        lock(&self.stream).leave();
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Leaves the alternate screen if it is shown, and prints the messages that were held back. To be called before the process
/// ends without dropping its values, or stops.
pub fn leave_full_screen() {
    for _ in 0..ATTEMPTS {
        if is_left() {
            return;
        }
        // In a panic the lock may be that of this thread: then it is left when the value is dropped.
        thread::sleep(ATTEMPT_INTERVAL);
    }
}

/// Leaves the alternate screen if it is shown; false if another thread holds it.
fn is_left() -> bool {
    let Some(mut shown) = locked(SHOWN.try_lock()) else { return false };
    let Some(stream) = shown.clone() else { return true };
    let Some(mut stream) = locked(stream.try_lock()) else { return false };
    stream.leave();
    *shown = None;
    true
}

fn locked<T>(attempt: TryLockResult<MutexGuard<'_, T>>) -> Option<MutexGuard<'_, T>> {
    match attempt {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock(stream: &SharedStream) -> MutexGuard<'_, OutputStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `line` without the colours of this process.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// Errors of stderr are ignored: they cannot be reported anywhere.
impl OutputStream {
    fn enter(&mut self) {
        if self.held.is_none() {
            self.erase();
            self.held = Some(String::new());
            let _ = self.stream.write_all(ENTER.as_bytes()).and_then(|()| self.stream.flush());
        }
    }

    fn leave(&mut self) {
        if let Some(held) = self.held.take() {
            let _ = self.stream.write_all(format!("{LEAVE}{held}").as_bytes()).and_then(|()| self.stream.flush());
        }
    }

    fn draw_screen(&mut self, mut lines: Vec<String>, columns: usize) {
        let Some(held) = &self.held else { return };
        let messages: Vec<&str> = held.lines().rev().take(MESSAGES.min(lines.len())).collect();
        let lowest = lines.len() - messages.len();
        for (line, message) in lines[lowest..].iter_mut().zip(messages.into_iter().rev()) {
            *line = cut(&without_colours(message), columns);
        }
        // Each line is cleared behind its text instead of the whole screen before, which would flicker.
        let text: Vec<String> = lines.iter().map(|line| format!("{}\x1b[K", in_one_line(line))).collect();
        let screen = format!("\x1b[H{}\x1b[J", text.join("\r\n"));
        let _ = self.stream.write_all(screen.as_bytes()).and_then(|()| self.stream.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::output::{shared, write_whole};

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut *self.0.lock().expect("no panic"))).expect("text")
        }
    }

    /// One test, since the process has one screen.
    #[test]
    fn the_screen_is_left_once_and_messages_appear_behind_it() {
        let paper = Paper::default();
        let stream = shared(paper.clone());
        let screen = FullScreen::enter(&stream);
        assert_eq!(paper.take(), ENTER);
        write_whole(&stream, "\x1b[1;33mwarning:\x1b[0m x").expect("paper takes it");
        assert_eq!(paper.take(), "", "a message waits");
        screen.draw(vec!["a\x1b[2J".into(), "b".into()]);
        assert_eq!(paper.take(), "\x1b[Ha\\x1b[2J\x1b[K\r\nwarning: x\x1b[K\x1b[J");
        leave_full_screen();
        let left = format!("{LEAVE}\x1b[1;33mwarning:\x1b[0m x\n");
        assert_eq!(paper.take(), left);
        leave_full_screen();
        screen.draw(vec!["not shown".into()]);
        assert_eq!(paper.take(), "");
        screen.show();
        drop(screen);
        assert_eq!(paper.take(), format!("{ENTER}{LEAVE}"));
        let panicked = panic::catch_unwind(|| {
            let _screen = FullScreen::enter(&stream);
            panic!("while it is shown");
        });
        assert!(panicked.is_err());
        assert_eq!(paper.take(), format!("{ENTER}{LEAVE}"));
    }
}
