//! Caveats of runs of any kind, each with numbers, effect and remedy. Caveats of a single kind are in the folder of
//! that kind. docs/metrics.md lists every code.

mod clocks;
mod host_samples;
mod hosts;
mod loads;
mod run;
mod wording;

pub(super) use clocks::same_machine;
pub(super) use host_samples::is_contended;
pub use hosts::real_time_warning;
pub(super) use hosts::{
    any_of, cpu_for_each_end, fifo, own_cpu, reflector_cpu, spin, spin_on_one_cpu_caveat, without_cpus_of_ends,
};
pub use loads::unreached_loads;
pub(super) use run::{answers_ended, of_one_run, of_run, silence_hint, timeout_of, was_ended_by_silence};
pub use wording::{effect_order, is_routine, repeats_silence};

#[cfg(test)]
mod tests;
