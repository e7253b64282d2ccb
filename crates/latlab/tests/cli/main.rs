//! The binary: command lines, stdout, stderr, exit codes, and the files that it leaves.

mod ab;
mod agent;
mod arguments;
mod check_published;
mod command;
#[path = "../commands/mod.rs"]
mod commands;
mod compare;
mod compare_groups;
mod compare_numbers;
mod crash_safety;
mod damaged_experiments;
mod dds;
mod echo;
mod escapes;
mod experiment;
mod experiment_failures;
mod experiment_targets;
mod explain;
mod export;
mod export_figures;
#[path = "../fake_host/mod.rs"]
mod fake_host;
mod far_end;
mod harness;
mod hook_processes;
mod hooks;
mod host;
mod hostile;
mod hostile_recordings;
mod import;
mod import_losses;
mod lab;
mod list;
mod live;
mod load;
mod loopback_matrix;
mod ministat;
mod net_load;
mod one_way;
mod output;
mod ping;
mod ping_with_wakeup;
mod processes;
mod progress;
mod recipes;
mod remedies;
mod remote;
mod remote_settings;
mod report;
#[path = "../scheduling/mod.rs"]
mod scheduling;
#[path = "../sealed/mod.rs"]
mod sealed;
mod search;
mod serve;
mod settings;
mod settings_real;
#[path = "../skip/mod.rs"]
mod skip;
mod stamps;
mod store;
mod stream;
mod summary;
mod tcp;
mod tcp_stream;
mod two_commands;
mod wakeup;
mod wakeup_trace;
mod watchdog;
mod xdp;
