//! Run times of whole programs: latlab, its peer and the peer again run once in each round, in random order
//! (docs/design/0004-judging-our-own-cost.md).

use rand_pcg::Pcg64Mcg;
use serde_json::{Map, Value, json};

use super::options::Options;
use super::paired::{Paired, median};
use super::race::shuffled;

/// Rounds that are added at a time while the machine is not quiet.
const ROUNDS_STEP: usize = 15;
/// Permitted deviation from 1 of the median ratio of the peer to itself.
const TOLERANCE: f64 = 0.01;

/// A program of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contender {
    Latlab,
    Peer,
    PeerAgain,
}

const CONTENDERS: [Contender; 3] = [Contender::Latlab, Contender::Peer, Contender::PeerAgain];

/// Run time in each round, in s.
#[derive(Default)]
pub(crate) struct RunTimes {
    latlab: Vec<f64>,
    peer: Vec<f64>,
    again: Vec<f64>,
}

impl RunTimes {
    /// Runs rounds until the ratio of the peer to itself is within the tolerance, or their number is the maximum.
    /// `run_time` runs a program and returns its seconds.
    pub(crate) fn measure(
        title: &str,
        options: &Options,
        rng: &mut Pcg64Mcg,
        mut run_time: impl FnMut(Contender) -> Result<f64, String>,
    ) -> Result<RunTimes, String> {
        let mut times = RunTimes::default();
        let mut wanted = options.rounds;
        for done in 0.. {
            if done == wanted {
                if wanted >= options.rounds_max || times.self_ratio().is_quiet(TOLERANCE) {
                    break;
                }
                wanted = (wanted + ROUNDS_STEP).min(options.rounds_max);
            }
            for contender in shuffled(&CONTENDERS, rng) {
                let seconds = run_time(contender)?;
                times.of(contender).push(seconds);
            }
            eprint!("\r{title}: round {} of {wanted}   ", done + 1);
        }
        eprintln!();
        Ok(times)
    }

    fn of(&mut self, contender: Contender) -> &mut Vec<f64> {
        match contender {
            Contender::Latlab => &mut self.latlab,
            Contender::Peer => &mut self.peer,
            Contender::PeerAgain => &mut self.again,
        }
    }

    fn self_ratio(&self) -> Paired {
        Paired::of(&self.again, &self.peer)
    }

    /// The row of a table: title, target, ratio to the peer with its interval, ratio of the peer to itself, median times,
    /// rounds and verdict.
    pub(crate) fn judged(&self, title: &str, target: f64) -> Vec<String> {
        let (ours, self_ratio) = (Paired::of(&self.latlab, &self.peer), self.self_ratio());
        let median_text = |seconds: &[f64]| {
            let mut sorted = seconds.to_vec();
            sorted.sort_by(f64::total_cmp);
            format!("{:.3} s", median(&sorted))
        };
        vec![
            title.into(),
            format!("≤ {target:.2}"),
            format!("{:.3}", ours.median),
            ours.interval(),
            format!("{:.3}", self_ratio.median),
            median_text(&self.latlab),
            median_text(&self.peer),
            ours.rounds.to_string(),
            ours.at_most(target, self_ratio.is_quiet(TOLERANCE)).word().into(),
        ]
    }

    /// Every time, in an object of the row `title`.
    pub(crate) fn raw(&self, title: &str) -> Map<String, Value> {
        let times = [("latlab_s", &self.latlab), ("peer_s", &self.peer), ("peer_again_s", &self.again)];
        let named = times.map(|(name, seconds)| (name.to_owned(), json!(seconds)));
        named.into_iter().chain([("row".to_owned(), json!(title))]).collect()
    }
}
