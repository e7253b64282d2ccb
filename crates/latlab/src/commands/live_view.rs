//! `--live`: reads the rates of a run that goes on, and draws them on the full screen.

use std::time::{Duration, Instant};

use crate::clock::{Clock, Monotonic};
use crate::console::{Console, FullScreen, RedrawCost, leave_full_screen};
use crate::host::HostRoot;
use crate::host::sampler::{BusyMeter, CpuBusy};
use crate::measure::{LiveCounts, LiveProgress};
use crate::plan::{Kind, Plan};
use crate::platform::SuspendSignal;
use crate::tui::{LiveRates, LiveState, lines};
use crate::units::{Nanos, SenderClock, Stamp};

/// The interval between two drawings.
const REDRAW: Duration = Duration::from_millis(500);
/// The interval between two readings of rates, loads and CPUs.
const UPDATE: Duration = Duration::from_secs(1);

/// The view of a plan that is measured. Its full screen is entered when it is drawn first: until the sessions are open the usual
/// screen is needed, for a prompt of `ssh`, and Ctrl-Z stops the process as ever.
pub(super) struct LiveView<'a> {
    console: &'a Console,
    plan: &'a Plan,
    heading: String,
    loads: String,
    shown: Option<ShownView>,
}

/// The full screen, and what is drawn on it.
struct ShownView {
    screen: FullScreen,
    suspend: Option<SuspendSignal>,
    start: Instant,
    drawn_at: Option<Instant>,
    cost: RedrawCost,
    readings: Readings,
}

impl ShownView {
    fn enter(console: &Console) -> Option<ShownView> {
        // Without it Ctrl-Z stops on the alternate screen; it is received before that screen is shown.
        let suspend = SuspendSignal::listen().ok();
        Some(ShownView {
            screen: console.full_screen()?,
            suspend,
            start: Instant::now(),
            drawn_at: None,
            cost: RedrawCost::default(),
            readings: Readings::begin(),
        })
    }

    /// Stops the process on the usual screen if SIGTSTP was received, and shows the view again when it goes on.
    fn obey_suspension(&mut self) {
        if let Some(suspend) = self.suspend.as_ref().filter(|suspend| suspend.is_received()) {
            leave_full_screen();
            suspend.stop_process();
            self.screen.show();
            self.drawn_at = None;
        }
    }

    /// Whether it is time to draw again.
    fn is_due(&self) -> bool {
        self.drawn_at.is_none_or(|drawn_at| drawn_at.elapsed() >= REDRAW)
    }
}

/// What is read once a second.
struct Readings {
    at: Instant,
    counts: LiveCounts,
    rates: LiveRates,
    cpus: Vec<CpuBusy>,
    meter: BusyMeter,
    /// CPU time of the processes of the loads so far.
    loads_time: Option<Nanos>,
    loads_share: Option<f64>,
}

impl Readings {
    fn begin() -> Readings {
        Readings {
            at: Instant::now(),
            counts: LiveCounts::default(),
            rates: LiveRates::default(),
            cpus: Vec::new(),
            meter: BusyMeter::open(&HostRoot::live()),
            loads_time: None,
            loads_share: None,
        }
    }

    fn update(&mut self, live: &LiveProgress, counts: LiveCounts) {
        let elapsed = self.at.elapsed();
        if elapsed < UPDATE {
            return;
        }
        self.cpus = self.meter.read();
        let before = std::mem::replace(&mut self.loads_time, cpu_time_of(live.load_processes()));
        let used = self.loads_time.zip(before).map(|(now, before)| now - before);
        let all = elapsed.as_secs_f64() * self.cpus.len() as f64;
        self.loads_share = used.filter(|_| all > 0.0).map(|used| (used.as_secs_f64() / all).clamp(0.0, 1.0));
        (self.at, self.rates, self.counts) =
            (Instant::now(), LiveRates::between(&self.counts, &counts, elapsed), counts);
    }
}

/// CPU time that `processes` have used so far; `None` without any that runs.
fn cpu_time_of(processes: &[u32]) -> Option<Nanos> {
    processes
        .iter()
        .filter_map(|pid| latlab_sys::cpu_time::of_process(*pid).ok())
        .map(Nanos)
        .reduce(|sum, one| sum + one)
}

impl<'a> LiveView<'a> {
    /// The view of `plan` below its `heading`; `None` without a terminal for it, of which a note is printed.
    pub(super) fn of(plan: &'a Plan, heading: String, console: &'a Console) -> Option<LiveView<'a>> {
        if !console.has_full_screen() {
            console.note("`--live` needs a terminal on stderr: without one nothing is drawn");
            return None;
        }
        let loads: Vec<String> = plan.runs.first()?.loads.iter().map(ToString::to_string).collect();
        Some(LiveView { console, plan, heading, loads: loads.join(" · "), shown: None })
    }

    /// Draws the present rates of runs that are open; may be called at any rate.
    pub(super) fn draw(&mut self, live: &LiveProgress) {
        if self.shown.is_none() {
            self.shown = ShownView::enter(self.console);
        }
        let Some(shown) = &mut self.shown else { return };
        shown.obey_suspension();
        if !shown.is_due() {
            return;
        }
        shown.drawn_at = Some(Instant::now());
        let begin = RedrawCost::begin();
        let counts = live.read();
        shown.readings.update(live, counts);
        let (now, delays) = (Monotonic.now(), live.delays());
        let kind = self.plan.runs.first().map(|run| run.kind()).filter(|kind| *kind != Kind::Stream);
        let elapsed = shown.start.elapsed();
        let state = LiveState {
            heading: &self.heading,
            delay: kind.map(|kind| kind.metric().title()),
            rows: kind.map_or("", Kind::rows),
            phase: &phase(live, now),
            counts,
            rates: shown.readings.rates,
            delays: &delays,
            now,
            loads: &self.loads,
            loads_share: shown.readings.loads_share.filter(|_| !self.loads.is_empty()),
            cpus: &shown.readings.cpus,
            redraw: shown.cost.average(),
            redraw_share: shown.cost.total.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
        };
        shown.screen.draw(lines(&state, shown.screen.size(), !self.console.is_utf8()));
        shown.cost = shown.cost.and(begin);
    }

    /// Leaves the full screen, and says what it has cost. A SIGTSTP since the last drawing stops the process now.
    pub(super) fn close(self) {
        let Some(ShownView { screen, suspend, cost, .. }) = self.shown else { return };
        drop(screen);
        suspend.filter(SuspendSignal::is_received).iter().for_each(SuspendSignal::stop_process);
        self.console.detail(&format!("the view was drawn {}", cost.words()));
    }
}

/// `warm-up`, or the time of the measuring phase: `7.1 s`
fn phase(live: &LiveProgress, now: Stamp<SenderClock>) -> String {
    match live.measuring_for(now) {
        Some(measuring) => format!("measuring for {:.1} s", measuring.as_secs_f64()),
        None => "warm-up".into(),
    }
}
