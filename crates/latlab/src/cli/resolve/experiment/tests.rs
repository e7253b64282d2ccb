use super::*;
use crate::analysis::experiment::experiment_cost;
use crate::cli::resolve::Environment;
use crate::plan::{
    BetweenBlocks, Experiment, Factors, HookAddress, Hooks, Kind, ReadyWhen, RunOrder, RunsRule, Target, Via,
    WakeupCpus,
};
use crate::recipe::{Between, RECIPES, RecipeScale};
use crate::units::Nanos;

const FULL: &str = r#"
name = "pi4 to pi3 under load"
kind = "ping"
target = "ssh:pi@pi3"
[base]
count = 50_000
size = 24
[factors]
load = ["none", "net=90Mbit/s@both", ["cpu=80%@both", "mem=1GB/s"]]
wait = ["block", "spin"]
[design]
runs = 10
warmup-runs = 1
blocks = 3
between-blocks = "pause 10m"
order = "listed"
seed = 7
settle = "2s"
[[compare]]
metric = "round_trip_delay"
statistic = "p99"
baseline = { load = "none" }
equivalence = "3%"
"#;

fn settle(text: &str) -> Result<ExperimentJob, FileError> {
    experiment("some.toml", text, ConditionSelection::All, &Environment::default())
}

#[test]
fn every_key_reaches_the_experiment() {
    let job = settle(FULL).expect("well typed");
    let Experiment { name, conditions, design, contrasts, .. } = job.experiment;
    assert_eq!((name.as_str(), conditions.len(), job.keys.len()), ("pi4 to pi3 under load", 6, 6));
    assert_eq!((design.runs, design.warmup_runs, design.blocks), (RunsRule::PerBlock(10), 1, 3));
    assert_eq!(design.between, BetweenBlocks::Pause(Nanos::from_secs(600)));
    assert_eq!((design.order, design.seed, design.settle), (RunOrder::Listed, Some(7), Nanos::from_secs(2)));
    let [contrast] = contrasts.as_slice() else { panic!("{contrasts:?}") };
    assert_eq!((contrast.statistic.as_str(), contrast.equivalence), ("p99", Some(0.03)));
    assert_eq!(contrast.baseline.get("load").map(String::as_str), Some("none"));
    let [first, second, .., last] = conditions.as_slice() else { panic!("{conditions:?}") };
    assert_eq!((first.factors["load"].as_str(), first.factors["wait"].as_str()), ("none", "block"));
    assert_eq!((second.factors["load"].as_str(), second.factors["wait"].as_str()), ("none", "spin"));
    assert_eq!(last.factors["load"], "cpu=80%@both,mem=1GB/s");
    let run = &last.plan.runs[0];
    assert_eq!((run.loads.len(), run.stop.count, run.expect_ping().size_bytes), (2, Some(50_000), 24));
    assert_eq!(run.target, Target::Ssh { host: "pi@pi3".into() });
}

#[test]
fn missing_keys_have_defaults() {
    let job = settle("kind = \"ping\"").expect("the least experiment");
    let Experiment { name, conditions, design, contrasts, .. } = job.experiment;
    assert_eq!((name.as_str(), conditions.len(), contrasts.len()), ("some", 1, 2));
    assert_eq!(conditions[0].plan.runs[0].target, Target::Local);
    assert_eq!((design.runs, design.blocks, design.seed), (RunsRule::PerBlock(10), 1, None));
    assert_eq!((design.between, design.order), (BetweenBlocks::Nothing, RunOrder::Randomized));
    assert_eq!(design.settle, Nanos::from_secs(1));
}

#[test]
fn options_are_strings_numbers_and_booleans() {
    let text = "kind='ping'\n[base]\ninterval='1ms'\npoisson=true\nmlock=false\nquantiles=[0.5, '0.9']\n\
                tag=['a=1','b=-2']\n[factors]\ntarget=['local','lab']\nipv6=[true,false]\ncpu=[0, 1]\n";
    let conditions = settle(text).expect("well typed").experiment.conditions;
    assert_eq!(conditions.len(), 8);
    let run = &conditions[0].plan.runs[0];
    assert_eq!((run.expect_ping().schedule.word(), run.here.mlock, run.here.cpu), ("poisson", false, Some(0)));
    assert_eq!((run.tags["b"].as_str(), run.judging.quantiles.as_slice()), ("-2", &[0.5, 0.9][..]));
    assert_eq!(conditions[0].factors["ipv6"], "true");
}

#[test]
fn options_of_wakeup_are_those_of_its_experiments() {
    let text = "kind='wakeup'\n[base]\ncount=100\nrelative=true\ncpu='all'\nmlock=false\n[factors]\n\
                via=['select','clock_nanosleep']\ninterval=['10ms','1s']\nload=['none','heaters=2']\n\
                set=['governor=as-found',['governor=performance','timer-slack=1ns']]\n";
    let job = settle(text).expect("well typed");
    let Experiment { kind, conditions, contrasts, .. } = job.experiment;
    assert_eq!((kind, conditions.len()), (Kind::Wakeup, 16));
    assert!(contrasts.iter().all(|contrast| contrast.metric == Kind::Wakeup.metric()), "{contrasts:?}");
    let (first, last) = (&conditions[0].plan.runs[0], &conditions[15].plan.runs[0]);
    let slept = first.wakeup().expect("wake-ups");
    assert_eq!((slept.via, slept.interval_ns, slept.relative), (Via::Select, Nanos::from_millis(10), true));
    assert_eq!((slept.cpus.clone(), slept.break_ns), (WakeupCpus::All, None));
    assert_eq!((first.settings.len(), first.loads.len(), last.settings.len(), last.loads.len()), (0, 0, 2, 1));
    assert_eq!(last.wakeup().map(|slept| slept.via), Some(Via::ClockNanosleep));
}

#[test]
fn an_option_that_is_left_out_is_a_level() {
    let text = "kind='ping'\n[base]\ntag=[]\n[factors]\nset=['none',['mtu=1500','timer-slack=1ns']]\ncpu=[[],0]\n\
                interval=['closed','1ms']\n[[compare]]\nstatistic='p50'\nbaseline={cpu=[],interval='closed'}\n";
    let job = settle(text).expect("well typed").experiment;
    let runs: Vec<_> = job.conditions.iter().map(|condition| &condition.plan.runs[0]).collect();
    let seen = |of: fn(&crate::plan::RunSpec) -> bool| runs.iter().map(|run| of(run)).collect::<Vec<_>>();
    assert_eq!(seen(|run| run.settings.is_empty()), [true, true, true, true, false, false, false, false]);
    assert_eq!(seen(|run| run.here.cpu.is_none()), [true, true, false, false, true, true, false, false]);
    assert_eq!(seen(|run| run.schedule().interval().is_none()), [true, false, true, false, true, false, true, false]);
    let first = &job.conditions[0].factors;
    assert_eq!(["set", "cpu", "interval"].map(|factor| first[factor].as_str()), ["none", "none", "closed"]);
    assert_eq!(job.contrasts[0].baseline["cpu"], "none");
}

/// The hooks of each condition of a ping with these `factors` and `hooks`.
fn hooks(factors: &str, hooks: &str) -> Vec<Hooks> {
    let job = settle(&format!("kind='ping'\n[factors]\n{factors}\n[hooks]\n{hooks}\n")).expect("well typed");
    job.experiment.conditions.into_iter().map(|condition| condition.hooks).collect()
}

/// The words of each `service` of [`hooks`].
fn services(factors: &str, text: &str) -> Vec<Vec<String>> {
    hooks(factors, text).into_iter().map(|hooks| hooks.service.map_or_else(Vec::new, |command| command.0)).collect()
}

#[test]
fn levels_of_a_hook_have_placeholders_too() {
    let factors = "service=['./old {port}','./new {port}']\nport=[7000,7001]\nready=['udp:127.0.0.1:{port}']";
    let filled = [["./old", "7000"], ["./old", "7001"], ["./new", "7000"], ["./new", "7001"]];
    assert_eq!(services(factors, ""), filled);
    let address = |port| Some(ReadyWhen::Udp(HookAddress { host: "127.0.0.1".into(), port }));
    assert_eq!(hooks(factors, "")[1].ready, address(7001));
    let spaced = services("service=['./a x{build}','./b']\nbuild=['new one']", "");
    assert_eq!(spaced, [vec!["./a", "xnew one"], vec!["./b"]]);
}

#[test]
fn a_hook_can_be_left_out_of_a_condition() {
    for left_out in ["'none'", "[]"] {
        let services = services(&format!("service=[{left_out},'./new']"), "");
        assert_eq!(services, [vec![], vec!["./new"]], "{left_out}");
    }
}

#[test]
fn braces_that_are_not_around_a_name_are_text() {
    for (word, filled) in [
        (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
        ("{if ($1) {x=1}}", "{if ($1) {x=1}}"),
        ("}} {{ {} {{}} ${1} {a b} {-a}", "}} {{ {} {{}} ${1} {a b} {-a}"),
        ("{build}", "old"),
        ("${build}}{build}", "$old}old"),
        ("{{build}}", "{build}"),
        ("{{any.name}}", "{any.name}"),
        ("{{{build}}}", "{{build}}"),
        ("{{build}", "{old"),
        ("{{build} }", "{old }"),
    ] {
        let text = format!("before-run='x {{build}}'\nservice='''x '{word}''''");
        assert_eq!(services("build=['old']", &text), [["x", filled]], "{word}");
    }
}

#[test]
fn braces_in_a_target_that_do_not_name_a_factor_are_text() {
    let words = |target: &str, factors: &str| {
        let job = settle(&format!("kind='ping'\ntarget='''{target}'''\n[base]\npeer-addr='127.0.0.1'\n{factors}"))
            .expect(target);
        match job.experiment.conditions[0].plan.runs[0].target.clone() {
            Target::Command { words } => words,
            other => panic!("{other:?}"),
        }
    };
    for factors in ["", "[factors]\nsize=[64,65]\n", "[factors]\nbuild=['old']\n[hooks]\nbefore-run='x {build}'"] {
        let docker = words("cmd:docker run F={{.Id}} {{Id}}  'a b'", factors);
        assert_eq!(docker, ["docker", "run", "F={{.Id}}", "{{Id}}", "a b"], "{factors}");
        assert_eq!(words("cmd:sh -c \"ssh x ${HOST}\"", factors), ["sh", "-c", "ssh x ${HOST}"], "{factors}");
    }
    let one = "[factors]\nbuild=['new one']\n";
    let filled = words("cmd:sh -c \"x {build} {{build}} ${HOST} {{.Id}} {{HOST}}\"", one);
    assert_eq!(filled, ["sh", "-c", "x new one {build} ${HOST} {{.Id}} {{HOST}}"]);
}

#[test]
fn a_copy_is_named_after_its_source() {
    let environment = Environment::default();
    let called = |text: &str| {
        let job = experiment_from("/srv/kg.toml", "runs/experiment.toml", text, ConditionSelection::All, &environment);
        job.expect("well typed").experiment.name
    };
    assert_eq!([called("kind='ping'"), called("kind='ping'\nname='x'")], ["kg", "x"]);
    let error = experiment_from("/srv/kg.toml", "a/experiment.toml", "", ConditionSelection::All, &environment)
        .expect_err("no kind");
    assert_eq!(error.file, "a/experiment.toml");
}

#[test]
fn impossible_conditions_are_left_out_if_only_possible_ones_are_selected() {
    let text = "kind='ping'\ntarget='127.0.0.1'\n[factors]\nload=['none','cpu=50%@peer']\n";
    let error = settle(text).expect_err("no agent there");
    assert_eq!(error.line, 4);
    let job = experiment("r", text, ConditionSelection::Possible, &Environment::default()).expect("one row is left");
    assert_eq!((job.experiment.conditions.len(), job.impossible.len()), (1, 1));
    assert!(job.impossible[0].reason.contains("latlab serve"), "{:?}", job.impossible);
}

#[test]
fn left_out_combinations_are_no_conditions() {
    let text = "kind='wakeup'\n[factors]\nvia=['select','poll']\ninterval=['1ms','2ms','3ms']\n\
                [[leave-out]]\nvia='poll'\ninterval='3ms'\n[[leave-out]]\ninterval='2ms'\n";
    let conditions = settle(text).expect("well typed").experiment.conditions;
    let words = |factors: &Factors| factors.values().cloned().collect::<Vec<_>>().join(" ");
    let left: Vec<_> = conditions.iter().map(|condition| words(&condition.factors)).collect();
    assert_eq!(left, ["1ms select", "3ms select", "1ms poll"]);
}

#[test]
fn ten_million_conditions_are_refused_before_they_are_made() {
    let values = (0..10).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let factors = ["count", "duration", "interval", "timeout", "cpu", "dscp", "size"];
    let lines: Vec<_> = factors.iter().map(|factor| format!("{factor} = [{values}]")).collect();
    let error = settle(&format!("kind='ping'\n[factors]\n{}", lines.join("\n"))).expect_err("too many");
    assert!(error.cause.contains("10,000,000 conditions"), "{error:?}");
    assert_eq!(error.line, 3);
}

/// A quick recipe takes at most a minute, a usual one at most half an hour, and a full one longer.
#[test]
fn recipes_keep_to_the_time_limits_of_their_scales() {
    for recipe in RECIPES.iter() {
        for target in ["local", "lab", "127.0.0.1"] {
            let seconds = [RecipeScale::Quick, RecipeScale::Usual, RecipeScale::Full].map(|scale| {
                let text = recipe.file(target, scale, Between::AsItsFileSays);
                let job = experiment(&recipe.name, &text, ConditionSelection::Possible, &Environment::default());
                experiment_cost(&job.expect(&recipe.name).experiment, 0).duration.0 as f64 / 1e9
            });
            let [quick, usual, full] = seconds;
            assert!(quick <= 60.0 && usual <= 1_800.0, "{} {target}: {seconds:?} s", recipe.name);
            assert!(quick < usual && usual < full, "{} {target}: {seconds:?} s", recipe.name);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(128))]

    /// A file that was cut and extended anywhere is settled, or refused with one of its lines.
    #[test]
    fn a_damaged_file_is_settled_or_refused(
        from in 0..FULL.len(),
        length in 0..40_usize,
        put in "[ -~\n±é]{0,12}|\\[\\[?[a-z]{1,8}\\]?\\]?\n|[a-z-]{1,9} = [0-9\\[\\]\"{}',.e+-]{0,9}\n",
    ) {
        let start = (0..=from).rev().find(|at| FULL.is_char_boundary(*at)).unwrap_or(0);
        let end = (from + length..FULL.len()).find(|at| FULL.is_char_boundary(*at)).unwrap_or(FULL.len());
        let text = format!("{}{put}{}", &FULL[..start], &FULL[end..]);
        match settle(&text) {
            Ok(job) => proptest::prop_assert!(!job.experiment.conditions.is_empty()),
            Err(error) => {
                let lines = text.matches('\n').count() + 1;
                proptest::prop_assert!((1..=lines).contains(&error.line), "{error:?} of {lines} lines");
            }
        }
    }
}
