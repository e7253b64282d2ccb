//! Inputs from the process environment, and options common to several commands: key, store, destinations and tags of
//! recordings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::cli::args::{OutputArgs, StoreArgs};
use crate::cli::value::{Tag, unusable};
use crate::diagnostics::Failure;
use crate::host::placement;
use crate::plan::defaults;

/// Inputs of a command other than its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Value of `LATLAB_STORE`; `None` if unset or empty.
    pub store: Option<PathBuf>,
    /// Random seed for options without an explicit seed.
    pub seed: u64,
    /// Two CPUs for the two ends of a measurement on this host alone.
    pub cores: Option<[u16; 2]>,
    /// What `{port}` in an experiment file stands for; `None`: any free port.
    pub port: Option<u16>,
}

impl Environment {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// Returns an error if the kernel provides no random number.
    pub fn of_this_process() -> Result<Environment, Failure> {
        let store = std::env::var_os("LATLAB_STORE").filter(|store| !store.is_empty());
        // A seed of 32 bits is short enough to be typed again with `--seed`.
        let seed = getrandom::u32().map_err(|error| {
            Failure::world("cannot draw a random seed").because(error.to_string()).hint("use `--seed N`")
        })?;
        let (store, cores) = (store.map(Into::into), placement::two_cores());
        Ok(Environment { store, seed: u64::from(seed), cores, port: None })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputSpec {
    Nothing,
    /// A new directory for each run in this store.
    InStore(PathBuf),
    /// This directory, which must not exist yet, for the only recording.
    As(PathBuf),
    /// This directory, which must not exist yet, as the store of several runs.
    InNewStore(PathBuf),
}

pub(super) fn output_spec(typed: &OutputArgs, runs: usize, environment: &Environment) -> OutputSpec {
    match &typed.output {
        _ if typed.no_record => OutputSpec::Nothing,
        None => OutputSpec::InStore(store(&typed.store, environment)),
        Some(directory) if runs == 1 => OutputSpec::As(directory.clone()),
        Some(directory) => OutputSpec::InNewStore(directory.clone()),
    }
}

/// Returns the path of the store: `--store`, else `LATLAB_STORE`, else the default.
pub fn store(typed: &StoreArgs, environment: &Environment) -> PathBuf {
    let named = typed.store.as_ref().or(environment.store.as_ref());
    named.cloned().unwrap_or_else(|| defaults::STORE.into())
}

/// Tags by their keys, of which each is given once.
pub(super) fn tags(typed: &[Tag]) -> Result<BTreeMap<String, String>, Failure> {
    let mut tags = BTreeMap::new();
    for Tag { key, value } in typed {
        if tags.insert(key.clone(), value.clone()).is_some() {
            return Err(unusable("--tag", format!("{key}={value}"), "its key was given before", "give each key once"));
        }
    }
    Ok(tags)
}
