//! `latlab run`: what is planned, and finished experiments as they are reported.

use crate::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![case("experiment/unfinished", &["experiments/old/1.1 as x"], UNFINISHED), case("experiment/plans", &[], PLANS)]
}

const UNFINISHED: &str = "
run x --dry-run
run x --print-unit
compare x
compare x --json
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
