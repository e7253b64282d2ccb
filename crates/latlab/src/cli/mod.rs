//! The command line: `args` has the arguments as typed, and `resolve` turns them into plans and jobs.

pub mod args;
pub mod error;
pub mod examples;
pub mod resolve;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use args::Cli;

/// The whole definition: help, man pages and completions all come from it.
pub fn definition() -> clap::Command {
    let mut definition = Cli::command().after_help(examples::text(examples::OVERVIEW));
    for (name, examples) in examples::COMMANDS {
        definition = definition.mut_subcommand(name, |command| command.after_help(examples::text(examples)));
    }
    definition = definition.mut_subcommand("wakeup", args::wakeup_in_its_words);
    // The short help of `ping`, `stream` and `wakeup` hides `--load`; that of `latlab load` shows it.
    definition.mut_subcommand("load", |command| command.mut_arg("load", |load| load.hide_short_help(false)))
}

/// Parses a command line. Help pages and the version are returned as errors too (see [`error`]).
pub fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = definition().try_get_matches_from(typed)?;
    Cli::from_arg_matches(&matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An option that clap has not added by itself.
    fn is_own_option(argument: &clap::Arg) -> bool {
        !argument.is_positional() && !["help", "version"].contains(&argument.get_id().as_str())
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn help_states_the_defaults_that_hold() {
        use crate::plan::defaults;
        use crate::units::human::typed_span;
        let quantiles = defaults::QUANTILES.map(|quantile| quantile.to_string()).join(",");
        for (command, option, default) in [
            ("ping", "duration", typed_span(defaults::DURATION)),
            ("ping", "warmup", format!("{}, at most {} probes", typed_span(defaults::WARMUP), defaults::WARMUP_PROBES)),
            ("ping", "timeout", typed_span(defaults::TIMEOUT)),
            ("ping", "max_backlog", typed_span(defaults::MAX_BACKLOG)),
            ("ping", "size", defaults::SIZE_BYTES.to_string()),
            ("ping", "quantiles", quantiles),
            ("ping", "store", format!("{}, or $LATLAB_STORE", defaults::STORE)),
            ("ping", "target", format!("local, port {}", defaults::PORT)),
            ("load", "duration", typed_span(defaults::DURATION)),
            ("serve", "bind", format!("every address, port {}", defaults::PORT)),
            ("serve", "max_sessions", defaults::SERVE_SESSIONS.to_string()),
            ("serve", "max_sessions_per_prefix", defaults::SERVE_SESSIONS_PER_PREFIX.to_string()),
            ("serve", "max_new_sessions", defaults::SERVE_NEW_SESSIONS.to_string()),
            ("serve", "max_duration", typed_span(defaults::SERVE_DURATION)),
            ("serve", "idle_timeout", typed_span(defaults::SERVE_IDLE)),
            ("serve", "max_size", defaults::SIZE_MAX_BYTES.to_string()),
            ("bare", "count", defaults::BARE_COUNT.to_string()),
        ] {
            let definition = definition();
            let command = definition.find_subcommand(command).expect(command);
            let argument = command.get_arguments().find(|argument| argument.get_id() == option).expect(option);
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("[default: {default}]")), "{option}: {help} is not {default}");
        }
    }

    #[test]
    fn every_option_with_a_value_names_its_default() {
        let mut definition = definition();
        definition.build();
        for command in definition.get_subcommands().filter(|command| !command.is_hide_set()) {
            for option in command.get_arguments().filter(|argument| is_own_option(argument)) {
                let long = option.get_long_help().map(ToString::to_string).unwrap_or_default();
                let help = option.get_help().map(ToString::to_string).unwrap_or_default() + &long;
                if option.get_action().takes_values() {
                    assert!(help.contains("default"), "{} {}: {help}", command.get_name(), option);
                }
                assert!(option.get_help_heading().is_some(), "{} {} has no heading", command.get_name(), option);
            }
        }
    }
}
