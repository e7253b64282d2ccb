//! The shared module of the benches: rounds, ratios, verdicts, contenders, results.

pub(crate) mod machine;
pub(crate) mod options;
pub(crate) mod paired;
pub(crate) mod programs;
pub(crate) mod race;
pub(crate) mod rates;
pub(crate) mod readings;
pub(crate) mod results;
pub(crate) mod run_times;

/// The main function of every bench: parses the options, then calls `run`; exit code 3 if it fails.
pub(crate) fn begin(run: fn(&options::Options) -> Result<(), String>) {
    let outcome = options::Options::parse(std::env::args().skip(1)).and_then(|options| run(&options));
    if let Err(error) = outcome {
        eprintln!("error: {error}");
        std::process::exit(3);
    }
}
