//! Texts before an experiment begins: its plan (runs, order, duration, disk space), the built-in experiments, and a
//! systemd service that continues an experiment at each boot until it is finished.

use std::path::Path;

use super::published::publication;
use crate::analysis::comparison::impossible_words;
use crate::analysis::experiment::{
    ExperimentCost, LostBaseline, Rehearsal, ShortRuns, experiment_cost, lost_baselines, rehearsal, short_runs,
};
use crate::diagnostics::{Colour, Failure};
use crate::facts::ExcludedCondition;
use crate::heading::planned_heading;
use crate::plan::hooks::BEFORE_BLOCK;
use crate::plan::{
    BetweenBlocks, Design, Experiment, ExperimentCondition, Factors, Kind, RunOrder, RunsRule, common_levels,
    condition_words,
};
use crate::recipe::{Published, Recipe};
use crate::stats::observations_needed;
use crate::text::{Style, draw_table, labelled, path_lines, width, wrap};
use crate::units::Nanos;
use crate::units::human::{about, grouped, quantile, shell_word, span, typed_percent};

/// An experiment before it begins or continues.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentPlan<'a> {
    pub experiment: &'a Experiment,
    /// Conditions that are not measured here, and why.
    pub not_measured: &'a [ExcludedCondition],
    pub done: u64,
    /// Whether the order of each block is shown.
    pub with_order: bool,
    /// The publication that its report repeats.
    pub published: Option<&'static Published>,
    /// Whether its scale gives figures of a publication without verdicts.
    pub is_rehearsal: bool,
    /// The directory, once it has begun.
    pub directory: Option<&'a Path>,
}

impl ExperimentPlan<'_> {
    /// The experiment without the conditions that are not measured.
    pub fn measured(&self) -> Experiment {
        let is_measured = |factors: &Factors| self.not_measured.iter().all(|one| one.factors != *factors);
        let mut experiment = self.experiment.clone();
        experiment.conditions.retain(|condition| is_measured(&condition.factors));
        experiment
    }
}

/// More conditions, runs of a block and blocks than these are cut off; conditions not where their hooks are shown.
const CONDITIONS_SHOWN: usize = 24;
const RUNS_SHOWN: usize = 66;
const BLOCKS_SHOWN: u32 = 12;
/// Columns of the number of a condition.
const NUMBER: usize = 4;

pub fn plan(plan: &ExperimentPlan<'_>, style: Style) -> String {
    let measured = plan.measured();
    let Experiment { name, conditions, design, .. } = &measured;
    let runs = || conditions.iter().flat_map(|condition| &condition.plan.runs);
    let mut lines = wrap(&format!("{name} · {}", planned_heading(runs())), style.width);
    if let Some(first) = lines.first_mut() {
        *first = first.replacen(name, &style.strong(name), 1);
    }
    // The commands of hooks stand below the numbers of their conditions: a dry run shows all of them.
    let has_hooks = conditions.iter().any(|condition| !condition.hooks.is_empty());
    let shown = if plan.with_order && has_hooks { usize::MAX } else { CONDITIONS_SHOWN };
    lines.extend(condition_lines(conditions, shown, plan.published, style));
    let mut push = |label: &str, text: &str| lines.extend(labelled(label, "", text, style));
    let possible: Vec<&Factors> = conditions.iter().map(|condition| &condition.factors).collect();
    if let Some(words) = impossible_words(plan.not_measured, &possible) {
        push("left out", &words);
    }
    push("runs", &runs_line(&measured, plan.done));
    // What a recipe cannot compare here is left out.
    let lost = lost_baselines(plan.experiment, &measured).into_iter().filter(|_| plan.published.is_none());
    let lost = lost.map(without_comparison);
    let verdicts: Vec<String> = lost.chain(rehearsal(&measured).map(without_verdicts)).collect();
    if plan.is_rehearsal {
        push("verdicts", "none: `--quick` is a rehearsal");
    } else if !verdicts.is_empty() {
        push("verdicts", &verdicts.join("; "));
    }
    if let Some(short) =
        plan.published.and_then(|published| short_runs(&measured, published)).filter(|_| !plan.is_rehearsal)
    {
        push("quantiles", &lower_bounds(&short, measured.kind.rows()));
    }
    push("order", &order(design));
    // A random order is not known before the experiment has an id.
    let is_known = design.seed.is_some() || design.order == RunOrder::Listed;
    for block in 1..=design.blocks_at_most().min(if plan.with_order && is_known { BLOCKS_SHOWN } else { 0 }) {
        push(&format!("block {block}"), &block_order(plan.experiment, &measured, block));
    }
    if plan.with_order {
        lines.extend(hook_lines(&measured.conditions, style));
    }
    let mut push = |label: &str, text: &str| lines.extend(labelled(label, "", text, style));
    push("expected", &expected(measured.kind, experiment_cost(&measured, plan.done)));
    if let Some(directory) = plan.directory {
        let path = shell_word(&directory.display().to_string());
        lines.extend(path_lines("directory", &path, Style { colour: Colour::OFF, ..style }));
    }
    lines.join("\n") + "\n"
}

/// The numbers of the conditions `measured` in the order of `block`, which is that of all conditions of `experiment`.
fn block_order(experiment: &Experiment, measured: &Experiment, block: u32) -> String {
    let number = |index: usize| {
        let factors = &experiment.conditions[index].factors;
        measured.conditions.iter().position(|condition| condition.factors == *factors).map(|place| place + 1)
    };
    let order = experiment.design.schedule(experiment.conditions.len(), block);
    let mut numbers = order.iter().filter_map(|run| number(run.condition));
    let shown: Vec<String> = numbers.by_ref().take(RUNS_SHOWN).map(|number| number.to_string()).collect();
    let more = if numbers.next().is_some() { " …" } else { "" };
    format!("{}{more}", shown.join(" "))
}

/// The first `shown` conditions, numbered, each by what distinguishes it, and below them what all have in common.
fn condition_lines(
    conditions: &[ExperimentCondition],
    shown: usize,
    published: Option<&Published>,
    style: Style,
) -> Vec<String> {
    let all: Vec<&Factors> = conditions.iter().map(|condition| &condition.factors).collect();
    let mut common = common_levels(&all);
    if conditions.len() == 1 {
        common.clear();
    }
    let mut lines = Vec::new();
    for (number, condition) in conditions.iter().enumerate().take(shown) {
        let heading = if number == 0 { "conditions" } else { "" };
        let own = condition.factors.clone().into_iter().filter(|(factor, _)| !common.contains_key(factor));
        let label = published.and_then(|published| published.label(&condition.factors));
        let levels = condition_words(&own.collect());
        let words = match label {
            None => levels,
            Some(label) if conditions.len() > shown => label.to_owned(),
            Some(label) => format!("{label}: {levels}"),
        };
        let words = breakable(&words, style);
        lines.extend(labelled(heading, &format!("{:>2}", number + 1), &words, style));
    }
    if conditions.len() > shown {
        let more = format!("and {} more", conditions.len() - shown);
        lines.extend(labelled("", "  ", &more, style));
    }
    if !common.is_empty() {
        lines.extend(labelled("", "", &format!("all with {}", breakable(&condition_words(&common), style)), style));
    }
    lines
}

/// All commands around the runs of a block: those of each condition, below its number.
fn hook_lines(conditions: &[ExperimentCondition], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, condition) in conditions.iter().enumerate() {
        let of_block = |key: &str| key == BEFORE_BLOCK;
        for (key, command) in condition.hooks.in_order().filter(|(key, _)| number == 0 || !of_block(key)) {
            let label = if lines.is_empty() { "hooks" } else { "" };
            let place = if of_block(key) { "  ".to_owned() } else { format!("{:>2}", number + 1) };
            lines.extend(labelled(label, &place, &format!("{key}: {command}"), style));
        }
    }
    lines
}

/// The words of a condition, with a space after each comma of a level that is longer than a line.
fn breakable(words: &str, style: Style) -> String {
    let most = style.width.saturating_sub(style.indent() + NUMBER);
    let word = |word: &str| if width(word) > most { word.replace(',', ", ") } else { word.to_owned() };
    words.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn runs_line(experiment: &Experiment, done: u64) -> String {
    let design = &experiment.design;
    let runs = match &design.runs {
        RunsRule::PerBlock(1) => "1 run".into(),
        RunsRule::PerBlock(runs) => format!("{runs} runs"),
        RunsRule::Until { statistic, half_width, most } => {
            format!("until {statistic} ±{}, at most {most} runs", typed_percent(*half_width))
        }
    };
    let warmup = match design.warmup_runs {
        0 => String::new(),
        1 => ", 1 more to warm up".into(),
        several => format!(", {several} more to warm up"),
    };
    let blocks = design.blocks_at_most();
    let between = match design.between {
        BetweenBlocks::Pause(pause) if blocks > 1 => format!(", a pause of {} between them", span(pause)),
        BetweenBlocks::Reboot if blocks > 1 => ", a reboot between them".into(),
        _ => String::new(),
    };
    let blocks = if blocks == 1 { "1 block".into() } else { format!("{blocks} blocks") };
    let all = match design.runs_at_most(experiment.conditions.len()) {
        1 => "1 run".into(),
        several => format!("{} runs", grouped(several)),
    };
    let done = if done > 0 { format!(", {} of them done", grouped(done)) } else { String::new() };
    format!("{runs} per condition{warmup}; {blocks}{between}: {all} in all{done}")
}

fn without_comparison(LostBaseline { levels, is_measured }: LostBaseline<'_>) -> String {
    let baseline = condition_words(levels);
    if is_measured {
        format!("nothing is compared with `{baseline}`: what differs from it is left out")
    } else {
        format!("nothing is compared with `{baseline}`, which is left out")
    }
}

fn without_verdicts(Rehearsal { runs, comparisons, runs_needed }: Rehearsal) -> String {
    let runs = if runs == 1 { "1 run".into() } else { format!("{runs} runs") };
    let comparisons = if comparisons == 1 { "its comparison".into() } else { format!("its {comparisons} comparisons") };
    let needed = runs_needed.map(|runs| format!("; {runs} could")).unwrap_or_default();
    format!("a rehearsal: {runs} of a condition cannot decide {comparisons}, whatever their values{needed}")
}

/// The quantiles that the report shows as bounds, each with the number of `rows` that would support it.
fn lower_bounds(ShortRuns { singletons, unsupported }: &ShortRuns, rows: &str) -> String {
    let needed = |q: &f64| format!("{} ({})", quantile(*q), grouped(observations_needed(*q)));
    let unsupported = unsupported.iter().map(needed).collect::<Vec<_>>().join(", ");
    format!(
        "{} {rows} a run are too few for {unsupported}: shown as a lower bound; `--full` has more",
        grouped(*singletons)
    )
}

fn order(design: &Design) -> String {
    let order = match design.order {
        RunOrder::Listed => "the conditions in turn",
        _ if design.has_rounds() => "rounds of one run of each condition, in random order",
        RunOrder::Randomized | RunOrder::Shuffled => "random within each block",
    };
    match design.settle {
        Nanos::ZERO => order.into(),
        settle => format!("{order}; {} to settle before each run", span(settle)),
    }
}

fn expected(kind: Kind, cost: ExperimentCost) -> String {
    let trip = if kind == Kind::Command { "an execution" } else { "a round trip" };
    let guess = cost.guessed.map(|time| format!(", if {trip} takes {}", span(time))).unwrap_or_default();
    format!("about {}{guess}; about {}", rough_span(cost.duration), disk_size(cost.bytes))
}

/// `40 s`, `12 min`, `3.5 h`: as exact as an estimate is.
pub fn rough_span(duration: Nanos) -> String {
    let seconds = duration.0 as f64 / 1e9;
    match seconds {
        seconds if seconds < 90.0 => format!("{} s", seconds.ceil().max(1.0)),
        seconds if seconds < 5_400.0 => format!("{} min", (seconds / 60.0).round()),
        seconds => format!("{} h", about(seconds / 3_600.0)),
    }
}

pub(crate) fn disk_size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e6 => format!("{} kB", (bytes / 1e3).ceil().max(1.0)),
        bytes if bytes < 1e9 => format!("{} MB", about(bytes / 1e6)),
        bytes => format!("{} GB", about(bytes / 1e9)),
    }
}

pub fn recipe_list(recipes: &[Recipe], style: Style) -> String {
    let widest = recipes.iter().map(|recipe| width(&recipe.name)).max().unwrap_or_default();
    let lines = |recipe: &Recipe| {
        let gap = " ".repeat(widest - width(&recipe.name) + 2);
        let title = wrap(&recipe.title, style.width.saturating_sub(widest + 2).max(1)).join(&format!(
            "\n{:1$}",
            "",
            widest + 2
        ));
        format!("{}{gap}{title}\n", style.strong(&recipe.name))
    };
    recipes.iter().map(lines).collect()
}

/// `recipe` as the `file` of an experiment; all but the file is in comments, of lines of `columns`.
pub fn recipe(recipe: &Recipe, file: &str, columns: usize) -> String {
    let style = Style { width: columns.saturating_sub(2), ..Style::PLAIN };
    let comment = |text: &str| wrap(text, style.width).into_iter().map(|line| format!("# {line}\n")).collect();
    let mut parts: Vec<String> = vec![comment(&recipe.title), comment(&recipe.origin)];
    if let Some(published) = &recipe.published {
        let lines = draw_table(&publication(published), style).into_iter();
        parts.push(lines.map(|line| format!("# {line}\n")).collect());
    }
    parts.push(comment(&recipe.lesson));
    let file: String = file.lines().map(|line| with_fitting_comment(line, columns)).collect();
    format!("{}\n{file}", parts.join("#\n"))
}

/// `line` of an experiment's file, with its comment above it if it is longer than `columns`.
fn with_fitting_comment(line: &str, columns: usize) -> String {
    let Some((settings, comment)) = line.split_once("# ").filter(|_| width(line) > columns) else {
        return format!("{line}\n");
    };
    let comment = wrap(comment, columns.saturating_sub(2)).into_iter().map(|line| format!("# {line}\n"));
    let settings = Some(settings.trim_end()).filter(|settings| !settings.is_empty());
    comment.chain(settings.map(|settings| format!("{settings}\n"))).collect()
}

/// The parameters of the systemd unit of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct SystemdUnit<'a> {
    pub name: &'a str,
    pub here: &'a Path,
    pub program: &'a Path,
    pub directory: &'a Path,
    /// Whether it continues after failed runs.
    pub keep_going: bool,
}

/// The text of the unit file.
///
/// # Errors
/// A path that no line of a unit can hold.
pub fn systemd_unit(unit: &SystemdUnit<'_>) -> Result<String, Failure> {
    let is_line =
        |path: &Path| path.to_str().is_some_and(|text| !text.contains(char::is_control) && !text.ends_with('\\'));
    if let Some(path) = [unit.program, unit.here, unit.directory].into_iter().find(|path| !is_line(path)) {
        return Err(Failure::request(format!("cannot write `{}` into a unit", path.display()))
            .because("a line of a unit cannot hold this path")
            .hint("rename it, or run from another directory"));
    }
    Ok(format!(
        "[Unit]\n\
         Description=latlab experiment {name}\n\
         After=network-online.target time-sync.target\n\
         Wants=network-online.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         WorkingDirectory={here}\n\
         ExecStart={program} run {directory}{keep_going}\n\
         TimeoutStartSec=infinity\n\
         KillMode=mixed\n\
         KillSignal=SIGINT\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        name = escaped(unit.name),
        // A path by itself is not split into words, and quotes would be part of it.
        here = escaped(&unit.here.display().to_string()),
        program = quoted(unit.program),
        directory = quoted(unit.directory),
        keep_going = if unit.keep_going { " --keep-going" } else { "" },
    ))
}

/// One word of a command line (systemd.service(5)): quoted, with `\`, `"`, `$` and `%` taken literally.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{}\"", escaped(&text))
}

/// A value in a unit (systemd.syntax(7), systemd.unit(5)): `%` begins a specifier, `%%` stands for `%`, and a line that ends
/// in `\` goes on.
fn escaped(text: &str) -> String {
    text.replace(|char: char| char.is_control(), " ").trim_end_matches('\\').replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_of_a_file_stands_above_its_line_if_both_do_not_fit() {
        let line = "size = 40    # an id and four times";
        assert_eq!(with_fitting_comment(line, 40), format!("{line}\n"));
        assert_eq!(with_fitting_comment(line, 16), "# an id and four\n# times\nsize = 40\n");
        assert_eq!(with_fitting_comment("# an id and four times", 16), "# an id and four\n# times\n");
        assert_eq!(
            with_fitting_comment("load = [\"cpu=20%\", \"cpu=50%\"]", 16),
            "load = [\"cpu=20%\", \"cpu=50%\"]\n"
        );
    }

    #[test]
    fn estimates_are_rounded() {
        for (seconds, words) in [(0, "1 s"), (40, "40 s"), (90, "2 min"), (700, "12 min"), (12_600, "3.5 h")] {
            assert_eq!(rough_span(Nanos::from_secs(seconds)), words);
        }
        for (bytes, words) in [(10.0, "1 kB"), (42e6, "42 MB"), (1.2e9, "1.2 GB")] {
            assert_eq!(disk_size(bytes), words);
        }
    }

    #[test]
    fn what_stands_in_a_unit_is_taken_literally_and_makes_no_line() {
        assert_eq!(quoted(Path::new("/a b/50%/$x\"y\\z")), r#""/a b/50%%/$$x\"y\\z""#);
        assert_eq!(escaped("a\nExecStart=/bin/sh %i\\"), "a ExecStart=/bin/sh %%i");
    }
}
