//! Reports of an agent about its host: facts, and samples, which it takes during a run and sends afterwards in pages.

use std::collections::VecDeque;
use std::mem;
use std::net::IpAddr;
use std::thread;

use latlab_sys::errno::explain;

use super::frame::PAYLOAD_MAX_BYTES;
use super::message::SamplePage;
use crate::diagnostics::Failure;
use crate::facts::{CpuReadings, FIRMWARE_NOW, HostFacts, HostSample};
use crate::host::HostRoot;
use crate::host::facts::{self, Interface};
use crate::host::sampler::{SampleSink, Sampler, SamplerSpec};

/// Memory for the samples of a run: 20 minutes at ten a second on four CPUs. Longer runs are decimated; after a day one
/// sample is kept every 6 s to 13 s. Nothing is written to the disk: SD cards wear out, and a spool would outlive a killed
/// agent.
const MEMORY_BYTES: usize = 16 << 20;
/// The number of samples that are kept whatever their size.
const SAMPLES_MIN: usize = 64;
/// The length at which a page is full: 1.5 s at 1 Mbit/s, of the 10 s that a reply has.
const PAGE_BYTES: usize = 128 << 10;
/// Upper bound of the bytes of a frame without its samples.
const PAGE_HEAD_BYTES: usize = 1 << 10;

/// The facts of this host, and of the interface that has `address`.
pub(super) fn facts(address: Option<IpAddr>) -> HostFacts {
    let mut facts = facts::read(&HostRoot::live(), address.map_or(Interface::OfDefaultRoute, Interface::Holding));
    // With a thousand CPUs the counts of interrupts are the longest fields, and the least needed.
    if serde_json::to_vec(&facts).is_ok_and(|bytes| bytes.len() > PAYLOAD_MAX_BYTES - PAGE_HEAD_BYTES) {
        for (field, was_present) in [
            ("counters.interrupts", facts.counters.interrupts.take().is_some()),
            ("counters.softirqs", facts.counters.softirqs.take().is_some()),
        ] {
            if was_present {
                facts.unknown.insert(field.into(), "too long for a frame of the agent".into());
            }
        }
    }
    facts
}

/// Samples of this host between their start and their collection.
#[derive(Debug, Default)]
pub(super) enum Sampling {
    /// No samples were requested, or all have been collected.
    #[default]
    Idle,
    Running(Sampler<DecimatedSamples>),
    Collecting(VecDeque<HostSample>),
}

impl Sampling {
    /// Starts to sample; samples that were not collected are dropped.
    pub(super) fn start(&mut self, avoid_cpus: Vec<u16>, own_processes: Vec<u32>) -> Result<(), Failure> {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let spec = SamplerSpec { avoid_cpus, own_processes, ..SamplerSpec::for_cpus(cpus) };
        let sampler = Sampler::start(HostRoot::live(), spec, DecimatedSamples::within(MEMORY_BYTES));
        let failure = |error| Failure::world("cannot sample the far host").because(explain(&error));
        *self = Sampling::Running(sampler.map_err(failure)?);
        Ok(())
    }

    /// Ends the sampling, if it has not ended, and removes the next page.
    pub(super) fn next_page(&mut self) -> SamplePage {
        let mut samples = match mem::take(self) {
            Sampling::Idle => VecDeque::new(),
            Sampling::Running(sampler) => sampler.stop().finish(),
            Sampling::Collecting(samples) => samples,
        };
        let page = page_of(&mut samples);
        if !samples.is_empty() {
            *self = Sampling::Collecting(samples);
        }
        page
    }
}

/// The next page: at least one sample, if there are any.
fn page_of(samples: &mut VecDeque<HostSample>) -> SamplePage {
    let (mut page, mut bytes) = (Vec::new(), PAGE_HEAD_BYTES);
    while bytes < PAGE_BYTES
        && let Some(sample) = samples.front()
    {
        bytes += serde_json::to_vec(sample).map_or(0, |json| json.len() + 1);
        // The first sample always fits: 1 MiB holds that of two thousand CPUs.
        if bytes > PAYLOAD_MAX_BYTES && !page.is_empty() {
            break;
        }
        page.extend(samples.pop_front());
    }
    SamplePage { samples: page, left: samples.len() as u64 }
}

/// Evenly spaced samples in bounded memory. When the memory is full, samples are merged in pairs, and from then on each kept
/// sample represents twice as many. Of a group the hottest sample is kept unchanged: cumulative counters lose resolution but
/// no total, and the hottest state is not lost. The first and the last sample are always kept.
#[derive(Debug)]
pub(super) struct DecimatedSamples {
    kept: Vec<HostSample>,
    memory_bytes: usize,
    /// The number of samples that each kept one represents.
    stride: u64,
    /// The hottest sample of the incomplete group, and the number of samples in it.
    group: Option<(HostSample, u64)>,
    /// Not in a group yet, since it may be the last one.
    latest: Option<HostSample>,
}

impl DecimatedSamples {
    fn within(memory_bytes: usize) -> DecimatedSamples {
        DecimatedSamples { kept: Vec::new(), memory_bytes, stride: 1, group: None, latest: None }
    }

    /// The most samples of the size of `sample` that are kept.
    fn capacity(&self, sample: &HostSample) -> usize {
        let bytes = size_of::<HostSample>() + sample.cpus.len() * size_of::<(u16, CpuReadings)>();
        (self.memory_bytes / bytes).max(SAMPLES_MIN)
    }

    fn add(&mut self, sample: HostSample) {
        if self.kept.is_empty() {
            self.kept.push(sample);
            return;
        }
        let capacity = self.capacity(&sample);
        let (held, count) = match self.group.take() {
            Some((held, count)) => (hotter(held, sample), count + 1),
            None => (sample, 1),
        };
        if count < self.stride {
            self.group = Some((held, count));
            return;
        }
        self.kept.push(held);
        // An odd number: the first sample, which stays as it is, and pairs.
        if self.kept.len() > capacity && self.kept.len() % 2 == 1 {
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
            self.add(before);
        }
    }
}

/// The hotter one of two adjacent samples; the later one if they are equal.
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

    fn decimated(samples: impl Iterator<Item = HostSample>) -> Vec<HostSample> {
        let mut sink = DecimatedSamples::within(0);
        samples.for_each(|sample| {
            sink.take(sample);
            assert!(sink.kept.len() <= SAMPLES_MIN + 2);
        });
        sink.finish().into()
    }

    #[test]
    fn samples_that_fit_are_all_kept() {
        for count in [0, 1, 2, 3, 64] {
            assert_eq!(decimated((0..count).map(sample)), (0..count).map(sample).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn samples_of_a_day_are_decimated_evenly() {
        for count in [67, 100, 1_000, 864_000] {
            let kept: Vec<u64> = decimated((0..count).map(sample)).into_iter().map(|sample| sample.seq).collect();
            assert!(kept.len() > SAMPLES_MIN / 2 && kept.len() <= SAMPLES_MIN + 4, "{count}: {}", kept.len());
            assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&(count - 1))), "{count}");
            let gaps: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let stride = gaps[1];
            // The incomplete group and the last sample are closer together.
            let whole = gaps.len() - 2;
            assert!(gaps[1..whole].iter().all(|gap| *gap == stride), "{count}: {gaps:?}");
            assert!(gaps.iter().all(|gap| (1..=stride).contains(gap)), "{count}: {gaps:?}");
        }
    }

    #[test]
    fn the_hottest_sample_of_a_group_is_kept() {
        let kept = decimated((0..10_000).map(|seq| if seq == 4_321 { hot(seq, 3) } else { hot(seq, 0) }));
        assert!(kept.iter().any(|sample| sample.seq == 4_321 && sample.host.cooling_state == Some(3)));
        assert!(kept.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    }

    #[test]
    fn pages_contain_each_sample_once_in_order() {
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
}
