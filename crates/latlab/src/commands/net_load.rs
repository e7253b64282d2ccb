//! `latlab net-load` (hidden): a network load, as a process of its own.

use std::io::{self, BufRead};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread;

use super::{Outcome, order};
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::host::placement;
use crate::measure::MeasureError;
use crate::measure::stream::{NetLoadCommands, run_net_load};
use crate::plan::EndSpec;
use crate::session::{BEGIN_WORD, LoadsError, NetLoadError, NetLoadEvent, NetLoadRequest, PreSharedKey};

/// A sleep ends when it shall, not up to the usual 50 µs later: the stream's packets would clump.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// Takes the order from standard input, says when the load is there, holds it until standard input closes, and says
/// what was reached.
pub(super) fn run(console: &Console) -> Result<Outcome, Failure> {
    let order: NetLoadRequest = order::read("a load of your own is `--load net=…`")?;
    match hold(&order, console) {
        Ok(()) => Ok(Outcome::Done),
        Err(Failure { message, cause, hint, .. }) => {
            console.data(&NetLoadEvent::Refused { message, cause, hint }.line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

fn hold(order: &NetLoadRequest, console: &Console) -> Result<(), Failure> {
    order::tie_to_parent(order.parent)?;
    order::work_as_usual()?;
    let key = order.key.as_deref().map(|line| PreSharedKey::from_reader("the order", line.as_bytes())).transpose()?;
    let words = Arc::new(NetLoadCommands::default());
    listen(&words).map_err(refused("watch standard input"))?;
    placement::place(&EndSpec { cpu: order.stream.cpu, ..EndSpec::SYSTEM })?;
    // Where it cannot be had the load is a little less even, and no less true.
    let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS));
    let say = |news: NetLoadEvent| console.data(&news.line());
    let begun = |searched_bps| {
        let gone = |_| LoadsError::from(NetLoadError::Process(io::ErrorKind::BrokenPipe.into()));
        say(NetLoadEvent::Begun { searched_bps }).map_err(gone).map_err(MeasureError::from)
    };
    let Some(held) = run_net_load(order, key.as_ref(), &words, begun)? else { return Ok(()) };
    match held.failure {
        Some(failure) => Err(failure.into()),
        None => say(NetLoadEvent::Ended { report: Box::new(held.report) }),
    }
}

/// Passes on what is said on standard input; what ends that is the end of the parent, or its word to end.
fn listen(words: &Arc<NetLoadCommands>) -> io::Result<()> {
    let words = Arc::clone(words);
    let listener = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line == BEGIN_WORD {
                words.say_begin();
            }
        }
        words.say_end();
    };
    thread::Builder::new().name("stdin".into()).spawn(listener).map(drop)
}
