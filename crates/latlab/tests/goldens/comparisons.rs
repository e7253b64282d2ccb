//! `latlab compare`: every form of the answer.

use crate::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    let numbers = &["inputs/before", "inputs/after", "inputs/same", "inputs/columns", "inputs/columns2"][..];
    let recordings = &["recordings/good/closed", "recordings/good/scheduled", "recordings/old/1.5-tcp"][..];
    vec![
        case("compare/numbers", &[numbers, &["inputs/before as again/before"]].concat(), NUMBERS),
        case("compare/corners", &[], CORNERS),
        case("compare/gates", numbers, GATES),
        case("compare/columns", numbers, COLUMNS),
        case("compare/plots", &[numbers, recordings].concat(), PLOTS),
        case("compare/ministat", &[numbers, &COPIES].concat(), MINISTAT),
        case("compare/one-run-each", &[recordings, &["recordings/good/closed as again/closed"]].concat(), ONE_RUN_EACH),
        case("compare/kinds", &KINDS_AND_COPIES, KINDS),
        case("compare/colour", &[numbers, recordings].concat(), COLOUR),
    ]
}

/// Copies, since nothing is compared with itself.
const COPIES: [&str; 4] = [
    "inputs/before as again/before",
    "inputs/after as again/after",
    "inputs/same as again/same",
    "inputs/before as third/before",
];

const KINDS_AND_COPIES: [&str; 6] = [
    "recordings/old/1.3-wakeup",
    "recordings/old/1.4-stream",
    "recordings/old/1.5-search",
    "recordings/old/1.3-wakeup as again/1.3-wakeup",
    "recordings/old/1.4-stream as again/1.4-stream",
    "recordings/old/1.5-search as again/1.5-search",
];

const PLOTS: &str = "
LC_ALL=C.UTF-8 compare before after same --plot
LC_ALL=C compare before after same --plot
COLUMNS=40 LC_ALL=C.UTF-8 tty compare before after --plot
LC_ALL=C.UTF-8 compare closed scheduled 1.5-tcp --plot
compare before after --plot --json
compare before after --plot --format csv
compare before after --plot --ministat
compare before after --ascii";

const NUMBERS: &str = "
compare before after same
~ compare before after same -v
~ compare before after same -q
~ compare before after same --explain
compare before after same --json
~ compare before after same --explain --json
compare before after same --format markdown
compare before after same --format csv
compare before same --equivalence 3%
~ compare before same --equivalence 3% --explain
valid compare before same --equivalence 3% --json
compare before after
~ compare before after -c 99.9
~ compare before after --over boots
~ compare before after --statistic median
~ compare before after --statistic value
~ compare --group old=before --group new=after
~ compare before - < after
~ compare - before < after
compare before again/before
";

const CORNERS: &str = "
write zeros 0\\n0\\n0\\n0\\n0\\n0\\n
write ones 1\\n2\\n1\\n2\\n1\\n2\\n
write signs 1\\n-1\\n1\\n-1\\n1\\n-1\\n1\\n-1\\n
write signs2 1\\n-1\\n1\\n-1\\n1\\n-1\\n1\\n-1\\n
write huge 1e308\\n-1e308\\n1.5e308\\n1.7e308\\n
write huger 1.7e308\\n1.6e308\\n1.5e308\\n1e308\\n
write tiny 1e-300\\n2e-300\\n1e-300\\n2e-300\\n
write large 1e300\\n2e300\\n1e300\\n2e300\\n
write two 1\\n2\\n
write two2 1\\n2\\n
compare zeros ones --equivalence 3%
~ compare zeros ones --gate 'value <= +5%'
~ compare zeros ones --gate 'value <= +5%' --gate-strict
compare signs signs2 --equivalence 3%
valid compare signs signs2 --equivalence 3% --json
compare huge huger
compare huge huger --json
compare huge huger --format csv
compare tiny large
valid compare tiny large --json
compare tiny large --format csv
compare two two2
compare two ones
~ compare two ones --explain
valid compare two ones --json
";

const GATES: &str = "
compare before after
~ compare before after --gate 'value <= +5%'
~ compare before after --gate 'value <= +20%'
~ compare before after --gate 'value <= +8%'
~ compare before after --gate 'value <= +8%' --gate-strict
~ compare before after --gate 'value >= -5%' --gate-strict
~ compare before after same --gate 'value <= +5%' -q
valid:gates compare before after --gate 'value <= +5%' --json
valid:gates compare before after --gate 'value <= +8%' --json
compare before after --gate 'value <= +5%' --gate 'value <= +20%' --format markdown
compare before after --gate 'value <= +5%' --format csv
compare before after same --gate 'value <= +5%' --explain
";

const COLUMNS: &str = "
compare columns columns2 -C 3 -d ';'
valid compare columns columns2 -C 3 -d ';' --json
compare columns columns2 -C 2 -d ';'
compare --ministat -C 3 -d ';' columns columns2
compare columns columns2 -C 1 -d ';'
compare columns columns2
";

const MINISTAT: &str = "
compare --ministat before after
~ compare --ministat before - < after
~ compare --ministat --group old=before --group new=after
~ compare --ministat -q before after
~ compare --ministat -c 80 before after
~ tty compare --ministat before after
compare --ministat before after same
compare --ministat before same
compare --ministat before
compare --ministat < before
compare --ministat - after < before
compare --ministat -A before after same
compare --ministat -n before after same
compare --ministat -s before after same
compare --ministat -q -n before after
compare --ministat -w 40 before after
compare --ministat -c 90 -A before after
~ compare --ministat -c 98 -A before after
~ compare --ministat -c 99 -A before after
~ compare --ministat -c 99.5 -A before after
compare --ministat before again/before
compare --ministat before after same again/before again/after again/same third/before
COLUMNS=100 tty compare --ministat before after
";

const ONE_RUN_EACH: &str = "
compare closed scheduled --json
valid compare closed scheduled --shift --json
compare closed scheduled
~ compare closed scheduled --explain
~ compare closed scheduled --shift
~ compare closed scheduled --gate 'p50 <= +5%'
compare closed scheduled --format markdown
compare closed scheduled --format csv
compare closed 1.5-tcp
compare --by transport closed 1.5-tcp
compare --by schedule closed scheduled
compare closed again/closed
";

const KINDS: &str = "
compare 1.3-wakeup again/1.3-wakeup
valid compare 1.3-wakeup again/1.3-wakeup --json
compare 1.4-stream 1.5-search
compare 1.4-stream again/1.4-stream
compare 1.4-stream again/1.4-stream --statistic mean --statistic loss_ratio --statistic p10
compare 1.5-search again/1.5-search
compare 1.5-search again/1.5-search --metric round_trip_delay
compare 1.3-wakeup 1.4-stream
";

const COLOUR: &str = "
compare before after same
~ tty compare before after same
~ NO_COLOR=1 tty compare before after same
~ COLUMNS=120 tty compare before after same
compare before after same --explain
~ tty compare before after same --explain
compare before after --gate 'value <= +5%'
~ tty compare before after --gate 'value <= +5%'
compare closed scheduled --shift
~ tty compare closed scheduled --shift
tty compare before missing
";
