//! The options of a bench.

use super::paired::{ROUNDS_MAX, ROUNDS_MIN};

/// `--quick`, `--rounds N`, `--max-rounds N`, `--cpus A,B`, and words that choose rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Show that it runs; judge nothing.
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    /// Rounds to give up after.
    pub(crate) rounds_max: usize,
    /// The sender's CPU and the reflector's.
    pub(crate) cpus: (u16, u16),
    /// Rows whose title holds one of these; none: all.
    pub(crate) chosen: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let default =
            Options { quick: false, rounds: ROUNDS_MIN, rounds_max: ROUNDS_MAX, cpus: (0, 1), chosen: vec![] };
        let mut options = default;
        let mut arguments = arguments.filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("`{argument}` needs a value"));
            let wrong = |value: &str| format!("`{value}` is no value for `{argument}`");
            match argument.as_str() {
                "--quick" => (options.quick, options.rounds, options.rounds_max) = (true, 3, 3),
                "--rounds" => options.rounds = value().and_then(|text| text.parse().map_err(|_| wrong(&text)))?,
                "--max-rounds" => {
                    options.rounds_max = value().and_then(|text| text.parse().map_err(|_| wrong(&text)))?
                }
                "--cpus" => options.cpus = value().and_then(|text| pair(&text).ok_or_else(|| wrong(&text)))?,
                other if other.starts_with('-') => return Err(format!("unknown option `{other}`")),
                word => options.chosen.push(word.to_string()),
            }
        }
        options.rounds_max = options.rounds_max.max(options.rounds);
        Ok(options)
    }

    /// Whether the row of that title is wanted.
    pub(crate) fn wants(&self, title: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|word| title.contains(word.as_str()))
    }
}

fn pair(text: &str) -> Option<(u16, u16)> {
    let (one, other) = text.split_once(',')?;
    Some((one.parse().ok()?, other.parse().ok()?))
}
