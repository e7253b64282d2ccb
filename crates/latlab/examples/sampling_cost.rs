//! CPU time of host samples: `cargo run --release --example sampling_cost [SAMPLES]`.
//!
//! Prints the CPU time of a sample on this host and its share of one CPU, at the default rate and at ten samples a
//! second. Samples are taken 100 ms apart: back to back they would run with warm caches. The figures are for
//! docs/performance.md; nothing is judged here.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::time::Duration;

use latlab::facts::HostSample;
use latlab::host::HostRoot;
use latlab::host::sampler::{Observer, SamplerSpec};

fn main() {
    let samples: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let spec = SamplerSpec::for_cpus(cpus);
    let mut observer = Observer::new(&HostRoot::live(), &spec.avoid_cpus, &spec.own_processes);
    let taken: Vec<HostSample> = (0..samples)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            observer.sample()
        })
        .collect();
    let mut costs: Vec<i64> =
        taken.windows(2).filter_map(|pair| Some(pair[1].host.sampler_ns? - pair[0].host.sampler_ns?)).collect();
    costs.sort_unstable();
    let mean = costs.iter().sum::<i64>() as f64 / costs.len().max(1) as f64;
    let of = |quantile: usize| costs.get(costs.len() * quantile / 100).map_or(0.0, |cost| *cost as f64 / 1e3);
    println!("{:8.1} µs of CPU a sample (mean; median {:.1}, p90 {:.1}), {} CPUs", mean / 1e3, of(50), of(90), cpus);
    for period in [spec.period.0, 100_000_000] {
        println!("{:8.4} % of one CPU, a sample every {} ms", mean / period as f64 * 100.0, period / 1_000_000);
    }
}
