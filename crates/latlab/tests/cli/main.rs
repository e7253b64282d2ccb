//! The real binary from outside: what is typed, what comes back on each stream, and the exit code.

mod agent;
mod arguments;
mod compare;
mod doctor;
mod documents;
mod echo;
mod elsewhere;
mod experiment;
mod experiment_afar;
mod facts;
mod far;
mod harness;
mod help;
mod host_samples;
mod interfaces;
mod lab;
mod late_trace;
mod list;
mod load;
mod load_ends;
mod ministat;
mod ministat_runs;
mod net_load;
mod pages;
mod ping;
mod processes;
mod real_knobs;
mod recipes;
mod refused;
mod remote;
mod serve;
mod setting;
#[path = "../skip/mod.rs"]
mod skip;
mod sshd;
mod store;
mod stream;
mod streams;
mod summary;
mod wakeup;
mod wakeup_experiment;
mod wakeup_remedies;
#[path = "../watched/mod.rs"]
mod watched;
mod with_wakeup;
mod wounds;
