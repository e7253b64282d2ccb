//! What an agent reports about its host: facts, and samples that it collects during a run and sends in pages.

use std::collections::VecDeque;
use std::mem;
use std::net::IpAddr;
use std::thread;

use latlab_sys::errno::explain;

use super::error::RequestFailure;
use super::frame::PAYLOAD_MAX_BYTES;
use super::message::SamplePage;
use crate::facts::{CpuReadings, FIRMWARE_NOW, HostFacts, HostSample};
use crate::host::HostRoot;
use crate::host::facts::{self, Interface};
use crate::host::sampler::{SampleSink, Sampler, SamplerSpec};

/// Memory for the samples of a run: 20 minutes at ten a second on four CPUs. After that neighbours are thinned, so that
/// a day comes to one sample in six to thirteen seconds. A disk is not touched: on small boards it is a card that wears
/// out, and a spool of ours would outlive a killed agent.
const ROOM_BYTES: usize = 16 << 20;
/// However many CPUs a host has, so many samples are kept.
const FEWEST: usize = 64;
/// A page is full when it is this long: a second and a half on a line of a megabit, of the ten that a reply has.
const PAGE_BYTES: usize = 128 << 10;
/// Bytes of a page beside its samples, with a reserve for the rest of the frame.
const PAGE_HEAD_BYTES: usize = 1 << 10;

/// The facts of this host, and of the interface that has `address`.
pub(super) fn facts(address: Option<IpAddr>) -> HostFacts {
    let mut facts = facts::read(&HostRoot::live(), address.map_or(Interface::OfDefaultRoute, Interface::Holding));
    // A thousand CPUs with as many interrupts: the counts of each are the longest, and the least missed.
    if serde_json::to_vec(&facts).is_ok_and(|bytes| bytes.len() > PAYLOAD_MAX_BYTES - PAGE_HEAD_BYTES) {
        for (field, was_there) in [
            ("counters.interrupts", facts.counters.interrupts.take().is_some()),
            ("counters.softirqs", facts.counters.softirqs.take().is_some()),
        ] {
            if was_there {
                facts.unknown.insert(field.into(), "too long for a frame of the agent".into());
            }
        }
    }
    facts
}

/// Samples of this host between their start and their collection.
#[derive(Debug, Default)]
pub(super) enum Sampling {
    /// None were asked for, or all are handed over.
    #[default]
    Idle,
    /// They are taken.
    Running(Sampler<DecimatedSamples>),
    /// They are handed over.
    Over(VecDeque<HostSample>),
}

impl Sampling {
    /// Starts anew; samples that were not collected are dropped.
    pub(super) fn start(&mut self, avoid_cpus: Vec<u16>, own_processes: Vec<u32>) -> Result<(), RequestFailure> {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let spec = SamplerSpec { avoid_cpus, own_processes, ..SamplerSpec::for_cpus(cpus) };
        let sampler = Sampler::start(HostRoot::live(), spec, DecimatedSamples::within(ROOM_BYTES));
        *self = Sampling::Running(
            sampler.map_err(|error| RequestFailure::world("cannot sample the far host", explain(&error)))?,
        );
        Ok(())
    }

    /// Ends the sampling where it still goes on, and takes the next samples out.
    pub(super) fn next_page(&mut self) -> SamplePage {
        let mut samples = match mem::take(self) {
            Sampling::Idle => VecDeque::new(),
            Sampling::Running(sampler) => sampler.stop().finish(),
            Sampling::Over(samples) => samples,
        };
        let page = page_of(&mut samples);
        if !samples.is_empty() {
            *self = Sampling::Over(samples);
        }
        page
    }
}

/// The next page: at least one sample, where there is any.
fn page_of(samples: &mut VecDeque<HostSample>) -> SamplePage {
    let (mut page, mut bytes) = (Vec::new(), PAGE_HEAD_BYTES);
    while bytes < PAGE_BYTES
        && let Some(sample) = samples.front()
    {
        bytes += serde_json::to_vec(sample).map_or(0, |json| json.len() + 1);
        // The first one goes in any case: 1 MiB hold the sample of two thousand CPUs.
        if bytes > PAYLOAD_MAX_BYTES && !page.is_empty() {
            break;
        }
        page.extend(samples.pop_front());
    }
    SamplePage { samples: page, left: samples.len() as u64 }
}

/// Samples in bounded memory, evenly spaced: when it is full every other one goes, and from then on each one kept
/// stands for twice as many. Of those that it stands for the hottest is kept, as it was taken: counters lose
/// resolution by it and no sum, and the worst state is not lost. The first and the last are always there.
#[derive(Debug)]
pub(super) struct DecimatedSamples {
    kept: Vec<HostSample>,
    room_bytes: usize,
    /// Each kept sample stands for so many.
    stride: u64,
    /// The one kept of a group that is not yet complete, and how many it has.
    group: Option<(HostSample, u64)>,
    /// In no group yet: it may be the last one.
    latest: Option<HostSample>,
}

impl DecimatedSamples {
    fn within(room_bytes: usize) -> DecimatedSamples {
        DecimatedSamples { kept: Vec::new(), room_bytes, stride: 1, group: None, latest: None }
    }

    /// How many of the size of `sample` are kept.
    fn most(&self, sample: &HostSample) -> usize {
        let bytes = size_of::<HostSample>() + sample.cpus.len() * size_of::<(u16, CpuReadings)>();
        (self.room_bytes / bytes).max(FEWEST)
    }

    fn put(&mut self, sample: HostSample) {
        if self.kept.is_empty() {
            self.kept.push(sample);
            return;
        }
        let most = self.most(&sample);
        let (held, count) = match self.group.take() {
            Some((held, count)) => (hotter(held, sample), count + 1),
            None => (sample, 1),
        };
        if count < self.stride {
            self.group = Some((held, count));
            return;
        }
        self.kept.push(held);
        // The first one, and pairs.
        if self.kept.len() > most && self.kept.len() % 2 == 1 {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let mut rest = mem::take(&mut self.kept).into_iter();
        self.kept.extend(rest.next());
        while let Some(one) = rest.next() {
            self.kept.push(match rest.next() {
                Some(other) => hotter(one, other),
                None => one,
            });
        }
        self.stride *= 2;
    }

    fn finish(mut self) -> VecDeque<HostSample> {
        let rest = self.group.take().map(|(held, _)| held).into_iter().chain(self.latest.take());
        self.kept.extend(rest);
        self.kept.into()
    }
}

impl SampleSink for DecimatedSamples {
    fn take(&mut self, sample: HostSample) {
        if let Some(before) = self.latest.replace(sample) {
            self.put(before);
        }
    }
}

/// The one of two neighbours that says more about heat; the later one where both say the same.
fn hotter(one: HostSample, other: HostSample) -> HostSample {
    let heat = |sample: &HostSample| {
        let flags = sample.host.firmware_throttled.unwrap_or(0) & FIRMWARE_NOW;
        (sample.host.cooling_state, flags.count_ones(), sample.host.temperature_millicelsius)
    };
    if heat(&one) > heat(&other) { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::HostReadings;

    fn sample(seq: u64) -> HostSample {
        let start_ns = seq as i64 * 100_000_000;
        let cpu = CpuReadings { busy_ns: Some(start_ns), ..CpuReadings::default() };
        HostSample { seq, start_ns, end_ns: start_ns + 1, cpus: vec![(0, cpu)], ..HostSample::default() }
    }

    fn hot(seq: u64, cooling_state: i64) -> HostSample {
        let host = HostReadings { cooling_state: Some(cooling_state), ..HostReadings::default() };
        HostSample { host, ..sample(seq) }
    }

    fn thinned(samples: impl Iterator<Item = HostSample>) -> Vec<HostSample> {
        let mut sink = DecimatedSamples::within(0);
        samples.for_each(|sample| {
            sink.take(sample);
            assert!(sink.kept.len() <= FEWEST + 2);
        });
        sink.finish().into()
    }

    #[test]
    fn few_samples_stay_as_they_are() {
        for count in [0, 1, 2, 3, 64] {
            assert_eq!(thinned((0..count).map(sample)), (0..count).map(sample).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn a_day_fits_into_the_same_room_evenly() {
        for count in [67, 100, 1_000, 864_000] {
            let kept: Vec<u64> = thinned((0..count).map(sample)).into_iter().map(|sample| sample.seq).collect();
            assert!(kept.len() > FEWEST / 2 && kept.len() <= FEWEST + 4, "{count}: {}", kept.len());
            assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&(count - 1))), "{count}");
            let gaps: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let stride = gaps[1];
            // The group that goes on and the last sample are nearer.
            let whole = gaps.len() - 2;
            assert!(gaps[1..whole].iter().all(|gap| *gap == stride), "{count}: {gaps:?}");
            assert!(gaps.iter().all(|gap| (1..=stride).contains(gap)), "{count}: {gaps:?}");
        }
    }

    #[test]
    fn a_hot_moment_is_kept() {
        let kept = thinned((0..10_000).map(|seq| if seq == 4_321 { hot(seq, 3) } else { hot(seq, 0) }));
        assert!(kept.iter().any(|sample| sample.seq == 4_321 && sample.host.cooling_state == Some(3)));
        assert!(kept.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    }

    #[test]
    fn pages_hold_everything_once_in_order() {
        let mut samples: VecDeque<HostSample> = (0..5_000).map(sample).collect();
        let mut seen = Vec::new();
        loop {
            let page = page_of(&mut samples);
            let bytes = serde_json::to_vec(&page).expect("plain data").len();
            assert!(bytes <= PAGE_BYTES + PAGE_HEAD_BYTES && !page.samples.is_empty(), "{bytes}");
            seen.extend(page.samples.iter().map(|sample| sample.seq));
            assert_eq!(page.left, 5_000 - seen.len() as u64);
            if page.left == 0 {
                break;
            }
        }
        assert_eq!(seen, (0..5_000).collect::<Vec<u64>>());
        assert_eq!(page_of(&mut samples), SamplePage::default());
    }

    #[test]
    fn the_sample_of_a_thousand_cpus_fits_into_a_frame() {
        let reading = CpuReadings::of([Some(i64::MAX); CpuReadings::WIDTH]);
        let mut large = sample(0);
        large.cpus = (0..1_000).map(|cpu| (cpu, reading)).collect();
        let page = page_of(&mut VecDeque::from([large.clone(), large]));
        assert!(page.samples.len() == 1 && serde_json::to_vec(&page).expect("plain data").len() < PAYLOAD_MAX_BYTES);
    }

    #[test]
    fn this_host_is_sampled_until_its_samples_are_collected() {
        let mut sampling = Sampling::default();
        assert_eq!(sampling.next_page(), SamplePage::default());
        sampling.start(Vec::new(), Vec::new()).expect("a thread");
        let page = sampling.next_page();
        assert!(!page.samples.is_empty() && page.left == 0, "{page:?}");
        assert_eq!(sampling.next_page(), SamplePage::default(), "handed over once");
    }
}
