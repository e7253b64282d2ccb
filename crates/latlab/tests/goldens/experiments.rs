//! `latlab run`: plans, and reports of finished experiments.

use crate::{Case, case, directories, lines_of};

pub(crate) fn cases() -> Vec<Case> {
    let finished = directories("experiments/finished").into_iter().map(|name| {
        let lines = [FINISHED, json(&name), more(&name)].into_iter().flat_map(lines_of).collect();
        Case { name: format!("experiment/{name}"), inputs: vec![format!("experiments/finished/{name} as x")], lines }
    });
    let others = [
        case("experiment/unfinished", &["experiments/old/1.1 as x"], UNFINISHED),
        case("experiment/plans", &[], PLANS),
        case("experiment/stores", &STORED, STORES),
        case("experiment/colour", &STORED, COLOUR),
    ];
    finished.chain(others).collect()
}

/// Command lines for every finished experiment.
const FINISHED: &str = "
run x
~ run x -q
~ run x -v
run x --format markdown
compare x
";

/// The whole document of one experiment; of the others what belongs to their recipe.
fn json(name: &str) -> &'static str {
    match name {
        "lost" => "run x --json",
        "factors" => "valid:groups run x --json",
        _ => "valid:experiment,caveats run x --json",
    }
}

/// Further command lines for the experiment of that name.
fn more(name: &str) -> &'static str {
    match name {
        "factors" => FACTORS,
        "aa" => "compare x --explain\ncompare x --shift\ncompare x --ministat\nlist --store x/runs",
        "alone" | "until" => {
            "run x --dry-run\ncompare x --explain\ncompare x --format csv\nsummary x/runs/*\nrun x --plan 'p50 3%'"
        }
        "stream" | "search" => {
            "compare x --metric delivered_rate\ncompare x --metric loss_ratio\ncompare x --explain --statistic p10"
        }
        "lost" => {
            "~ run x --keep-going\ncompare x --format csv\ncompare x --statistic loss_ratio --gate 'loss_ratio <= +1%'"
        }
        "wakeup" => "compare x --by via\ncompare x --by interval\ncompare x --explain",
        "udp-loopback-matrix" => "run x --print-unit\ncompare x --ministat",
        _ => "",
    }
}

const FACTORS: &str = "
~ compare x --explain
run x --dry-run
run x --new
run x --force
run x --print-unit
run x --plan 'p50 3%'
run x --plan 'response_time mean 50%'
run x --plan 'p50 3'
run x lab
compare x --format markdown
compare x --format csv
valid compare x --json
compare x --by load
~ compare x --by load --explain
~ compare x --by load --baseline cpu=20%
~ compare x --by load --shift
~ compare x --by load --gate 'p50 <= +5%'
compare x --by size --equivalence 20%
~ compare x --by size --over boots
compare x --by size --metric response_time --statistic p90 --statistic mean
valid compare x --by load --shift --json
compare x --by load --shift --format markdown
valid:gates compare x --by load --gate 'p50 <= +50%' --gate 'response_time mean <= +60%' --json
compare x --by laod
compare x --by load --baseline cpu=30%
compare x --ministat
compare x --ministat --by load
compare x --ministat --by load --statistic p50 -A
compare --ministat --group all=x/runs/*
compare --group a=x/runs/*[0-7] --group b=x/runs/*[89a-f]
list --store x/runs
valid list --store x/runs --json
";

const STORED: [&str; 3] = [
    "experiments/finished/aa as store/20261122T203428Z-experiment-9a1b",
    "experiments/finished/alone as store/20261122T205636Z-experiment-91aa",
    "experiments/old/1.1 as store/20261122T082659Z-experiment-0011",
];

const STORES: &str = "
list --store store
list --store store/20261122T205636Z-experiment-91aa --json
valid list --store store --json
list --store store/20261122T203428Z-experiment-9a1b
compare store
compare store/20261122T203428Z-experiment-9a1b store/20261122T205636Z-experiment-91aa
valid compare store/20261122T203428Z-experiment-9a1b store/20261122T205636Z-experiment-91aa --json
compare --group one=store/*9a1b/runs/* --group two=store/*91aa/runs/*
";

const COLOUR: &str = "
list --store store
~ tty list --store store
run store/20261122T203428Z-experiment-9a1b
~ tty run store/20261122T203428Z-experiment-9a1b
compare store/20261122T203428Z-experiment-9a1b --explain
~ tty compare store/20261122T203428Z-experiment-9a1b --explain
COLUMNS=120 tty compare store/20261122T203428Z-experiment-9a1b
";

const UNFINISHED: &str = "
run x --dry-run
run x --print-unit
compare x
valid compare x --json
list --store x/runs
";

const PLANS: &str = r#"
write x.toml kind='ping'
run x.toml --dry-run
write x.toml name="pi4 to pi3 under load"\nkind="ping"\ntarget="lab"\n[base]\ncount=50_000\nsize=24\n[factors]\nload=["none","net=90Mbit/s@both",["cpu=80%@both","mem=1GB/s"]]\nwait=["block","spin"]\n[design]\nruns=10\nwarmup-runs=1\nblocks=3\nbetween-blocks="pause 10m"\norder="listed"\nseed=7\nsettle="2s"\n[[compare]]\nmetric="round_trip_delay"\nstatistic="p99"\nbaseline={load="none"}\nequivalence="3%"\n
run x.toml --dry-run
write x.toml kind='ping'\n[design]\nruns='until p99 ±3%'\nmax-runs=60\n
run x.toml --dry-run
write x.toml kind='wakeup'\n[base]\ncount=100\n[factors]\nvia=['select','poll']\ninterval=['1ms','2ms','3ms']\n[[leave-out]]\nvia='poll'\ninterval='3ms'\n[[leave-out]]\ninterval='2ms'\n
run x.toml --dry-run
write x.toml kind='stream'\n[base]\nrate='10Mbit/s'\nduration='2s'\n[factors]\nsize=[64,1472]\nflows=[1,2]\n[design]\nblocks=2\nbetween-blocks='reboot'\n
run x.toml --dry-run
run x.toml --print-unit
"#;
