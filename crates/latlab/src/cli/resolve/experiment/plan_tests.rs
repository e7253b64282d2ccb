//! What the plan of an experiment file says before its first run.

use std::path::Path;

use super::{ConditionSelection, ExperimentJob, experiment};
use crate::cli::resolve::Environment;
use crate::facts::ExcludedCondition;
use crate::report::experiment::{ExperimentPlan, plan};
use crate::report::text::Style;

fn settle(text: &str) -> ExperimentJob {
    experiment("x.toml", text, ConditionSelection::Possible, &Environment::default()).expect("well typed")
}

#[test]
fn a_plan_shows_conditions_order_and_cost() {
    let job = settle(
        "name='udp under load'\nkind='ping'\ntarget='127.0.0.1'\n[factors]\n\
         load=['none','cpu=80%','net=1Mbit/s@peer']\n[design]\nruns=2\nwarmup-runs=1\nblocks=3\n\
         between-blocks='reboot'\norder='listed'\nsettle='2s'\n",
    );
    let mut view = ExperimentPlan {
        experiment: &job.experiment,
        not_measured: &job.impossible,
        done: 4,
        with_order: true,
        published: None,
        directory: None,
    };
    let text = plan(&view, Style::PLAIN);
    for line in [
        "udp under load · ping 127.0.0.1:9862 · udp ipv4 · 64 B · closed loop · 10 s\n",
        "conditions    1  load=none\n              2  load=cpu=80%\n",
        "left out     `net=1Mbit/s@peer` (a load at the peer",
        "runs         2 runs per condition, 1 more to warm up; 3 blocks, a reboot between\n             them: 18 runs",
        " in all, 4 of them done\n",
        "order        the conditions in turn; 2 s to settle at each switch\n",
        "block 3      1 2 1 2 1 2\n",
        "expected     about 3 min, if a round trip takes 100 µs; about ",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    (view.with_order, view.directory) = (false, Some(Path::new("a b")));
    let text = plan(&view, Style::PLAIN);
    assert!(text.ends_with("\ndirectory    'a b'\n") && !text.contains("block 1"), "{text}");
}

#[test]
fn a_dry_run_shows_the_commands_of_all_conditions() {
    let levels = (1..=30).map(|build| format!("'b{build}'")).collect::<Vec<_>>().join(",");
    let job = settle(&format!("kind='ping'\n[factors]\nbuild=[{levels}]\n[hooks]\nservice='./{{build}}'\n"));
    let shown = |with_order| {
        let (experiment, not_measured) = (&job.experiment, &[][..]);
        let view = ExperimentPlan { experiment, not_measured, done: 0, with_order, published: None, directory: None };
        plan(&view, Style::PLAIN)
    };
    let text = shown(true);
    for build in 1..=30 {
        for line in [format!("{build:>2}  build=b{build}\n"), format!("{build:>2}  service: ./b{build}\n")] {
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
    let text = shown(false);
    assert!(text.contains("and 6 more\n") && !text.contains("service"), "{text}");
}

#[test]
fn a_plan_names_baselines_with_which_nothing_is_compared() {
    let job = settle(
        "name='x'\nkind='ping'\n[factors]\nsize=[64,128,256]\n[design]\nruns=3\n[[compare]]\nstatistic='p50'\n\
         baseline={size=64}\n[[compare]]\nstatistic='p99'\nbaseline={size=128}\n",
    );
    let dropped: Vec<ExcludedCondition> = job
        .experiment
        .conditions
        .iter()
        .map(|condition| ExcludedCondition { factors: condition.factors.clone(), reason: "not here".into() })
        .collect();
    let shown = |not_measured: &[ExcludedCondition]| {
        let view = ExperimentPlan {
            experiment: &job.experiment,
            not_measured,
            done: 0,
            with_order: false,
            published: None,
            directory: None,
        };
        plan(&view, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = shown(&dropped[..1]);
    let words = "verdicts nothing is compared with `size=64`, which is left out; a rehearsal: 3 runs of a \
                 condition cannot decide its comparison, whatever their values; 4 could";
    assert!(text.contains(words), "{text}");
    assert!(!shown(&[]).contains("nothing is compared"), "{}", shown(&[]));
}

#[test]
fn a_plan_names_quantiles_of_the_publication_that_its_runs_do_not_support() {
    let published = crate::recipe::find("pi-udp-load").and_then(|recipe| recipe.published.as_ref());
    let shown = |base: &str| {
        let job = settle(&format!("name='x'\nkind='ping'\n[base]\n{base}\n[factors]\nload=['none','cpu=80%']\n"));
        let (experiment, not_measured) = (&job.experiment, job.impossible.as_slice());
        let view = ExperimentPlan { experiment, not_measured, done: 0, with_order: false, published, directory: None };
        let text = plan(&view, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
        text.split_once("quantiles ").map(|(_, rest)| rest.split(" order ").next().unwrap_or_default().to_owned())
    };
    let expected = "14,000 probes a run are too few for p99.99 (100,000): shown as a lower bound, and so is p99.9 if \
                    delays depend on each other, as under load";
    assert_eq!(shown("count=14_000").as_deref(), Some(expected));
    assert_eq!(shown("interval='1ms'\nduration='14s'").as_deref(), Some(expected));
    let expected =
        "500 probes a run are too few for p99 (1,000), p99.9 (10,000), p99.99 (100,000): shown as a lower bound";
    assert_eq!(shown("interval='1ms'\nduration='14s'\ncount=500").as_deref(), Some(expected));
    assert_eq!((shown("count=100_000"), shown("duration='1s'")), (None, None), "enough, and not known");
}
