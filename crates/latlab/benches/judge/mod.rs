//! What the benches share: rounds, ratios, verdicts, contenders, accounts.

pub(crate) mod account;
pub(crate) mod machine;
pub(crate) mod options;
pub(crate) mod paired;
pub(crate) mod programs;
pub(crate) mod race;
pub(crate) mod rates;
pub(crate) mod readings;

/// The main of every bench: what was asked for, then `run`; 3 where it could not be measured.
pub(crate) fn begin(run: fn(&options::Options) -> Result<(), String>) {
    let outcome = options::Options::parse(std::env::args().skip(1)).and_then(|options| run(&options));
    if let Err(error) = outcome {
        eprintln!("error: {error}");
        std::process::exit(3);
    }
}
