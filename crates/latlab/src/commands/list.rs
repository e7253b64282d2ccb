//! `latlab list`: lists the recordings and experiments of a store, and removes those that are no longer needed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::Outcome;
use super::observation_groups::settle_directory;
use crate::cli::args::{ListArgs, ListFilterArgs, SortKey};
use crate::console::Console;
use crate::diagnostics::{Explain, Failure};
use crate::experiment::{
    self, ExperimentState, in_store, is_edited, is_experiment, read_state_with_runner, runs_directory, runs_of,
};
use crate::facts::RunOutcome;
use crate::plan::{Experiment, Factors, common_levels, condition_words};
use crate::platform::ownership::quoted;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::recording::{Listing, ListingState, Store, start_in_name};
use crate::report::family_of;
use crate::report::list::{ListedExperiment, ListingView, StoreView, render_json, render_text};
use crate::units::human::{counted, grouped, shell_word};

/// Lists what `typed` asks for, or removes it; a missing store is listed as empty.
pub(super) fn run(typed: &ListArgs, store: &Path, console: &Console) -> Result<Outcome, Failure> {
    let mut found = StoreContents::read(typed, store)?;
    let unmatched = found.unmatched.clone();
    let (removed, mut failure) = (typed.prune.prune.then_some(typed.prune.yes), None);
    if let Some(is_confirmed) = removed {
        expect_outside_experiment(store)?;
        found.report_and_drop_kept(console);
        if is_confirmed {
            failure = found.remove();
        }
    }
    let sort = typed.filter.sort.unwrap_or_default();
    found.sort(sort);
    let view = found.view(store, sort, removed);
    if !store.exists() {
        console.note(&format!("the store `{}` does not exist", view.store));
    }
    unmatched.iter().for_each(|note| console.note(note));
    if typed.json.json {
        console.document(&render_json(&view))?;
    } else {
        console.data(&render_text(&view, console.data_style()))?;
    }
    say_how_to_remove(&view, console);
    failure.map_or(Ok(Outcome::Done), Err)
}

/// After a dry run, says what was not done.
fn say_how_to_remove(view: &StoreView, console: &Console) {
    let count = view.recordings.len() + view.experiments.len();
    if view.removed == Some(false) && count > 0 {
        let them = if count == 1 { "it".to_owned() } else { format!("these {}", grouped(count as u64)) };
        console.note(&format!("nothing was removed: the same command with `--yes` removes {them}"));
    }
}

/// Refuses to remove single runs of an experiment: its comparison would lack them.
fn expect_outside_experiment(store: &Path) -> Result<(), Failure> {
    // The runs of an experiment may be a link to a directory elsewhere.
    let forms = [store.canonicalize().ok(), std::path::absolute(store).ok()];
    let inside = forms.iter().flatten().find_map(|form| form.ancestors().take(2).find(|path| is_experiment(path)));
    inside.map_or(Ok(()), |experiment| {
        Err(Failure::request(format!("cannot remove single runs of the experiment `{}`", experiment.display()))
            .because("a comparison needs all of its runs")
            .hint("name the store above it with `--store`: an experiment is removed as a whole"))
    })
}

/// The listed recordings and experiments of a store.
struct StoreContents {
    recordings: Vec<ListedRecording>,
    experiments: Vec<FoundExperiment>,
    /// What the store has, if the filter passes nothing of it.
    unmatched: Option<String>,
}

struct ListedRecording {
    /// Without its manifest.
    listing: Listing,
    experiment: Option<PathBuf>,
    view: ListingView,
    is_listed: bool,
}

struct FoundExperiment {
    path: PathBuf,
    /// Whether all of its runs began in the time that is asked for.
    is_all_in_time: bool,
    view: ListedExperiment,
}

impl FoundExperiment {
    /// Why it is not removed.
    fn reason_to_keep(&self) -> Option<String> {
        let reason = experiment::reason_to_keep(&self.path).unwrap_or_else(|error| Some(in_full(&error.explain())));
        let other_time = || "not all of its runs began in the given time".to_owned();
        reason.or_else(|| (!self.is_all_in_time).then(other_time))
    }
}

impl StoreContents {
    /// What the filter passes. The directory of an experiment is read as the store of its runs.
    fn read(typed: &ListArgs, store: &Path) -> Result<StoreContents, Failure> {
        let filter = &typed.filter;
        let runs = runs_of(store);
        // Other commands find the recordings of the usual store by name, without `--store`.
        let is_usual = typed.store.store.is_none() && runs.is_none();
        let path = runs.as_deref().unwrap_or(store);
        let mut tags = BTreeSet::new();
        let mut recording = |listing: Listing, experiment: Option<&PathBuf>| {
            let own = listing.manifest.iter().flat_map(|manifest| &manifest.spec.tags);
            tags.extend(own.map(|(key, value)| format!("{key}={value}")));
            let mut view = show_recording(&listing, experiment, is_usual);
            if !typed.json.json {
                view.condition = None;
            }
            let is_listed = is_listed(filter, &listing);
            ListedRecording {
                view,
                experiment: experiment.cloned(),
                is_listed,
                listing: Listing { manifest: None, ..listing },
            }
        };
        let mut recordings = Store::at(path).list_as(|listing| recording(listing, None))?;
        let mut experiments = Vec::new();
        let directories = in_store(path);
        for directory in &directories {
            let mut has_tags = true;
            let listed = Store::at(&runs_directory(directory)).list_as(|run| {
                if run.is_bare() {
                    return None;
                }
                has_tags &= filter.has_tags(run.manifest.as_ref().map(|manifest| &manifest.spec.tags));
                Some(recording(run, Some(directory)))
            });
            // A store of runs that cannot be read makes a damaged experiment without recordings.
            let runs: Vec<ListedRecording> = listed.unwrap_or_default().into_iter().flatten().collect();
            let view = show_experiment(directory, &runs, is_usual);
            has_tags &= !runs.is_empty() || filter.has_tags(None);
            if filter.has_experiments() && has_tags && filter.has_start(view.start) {
                let is_all_in_time = runs.iter().all(|run| filter.has_start(run.view.start));
                experiments.push(FoundExperiment { path: directory.clone(), is_all_in_time, view });
            }
            recordings.extend(runs);
        }
        let is_empty = recordings.is_empty() && directories.is_empty();
        let is_unmatched = experiments.is_empty() && !is_empty && !recordings.iter().any(|one| one.is_listed);
        let unmatched = is_unmatched.then(|| unmatched(&recordings, &tags, directories.len()));
        recordings.retain(|one| one.is_listed);
        Ok(StoreContents { recordings, experiments, unmatched })
    }

    /// Says what is kept in the store and why, and drops it from what is removed.
    fn report_and_drop_kept(&mut self, console: &Console) {
        let whole: BTreeSet<PathBuf> = self.experiments.iter().map(|one| one.path.clone()).collect();
        let is_single_run =
            |one: &&ListedRecording| one.experiment.as_ref().is_some_and(|experiment| !whole.contains(experiment));
        let single = self.recordings.iter().filter(is_single_run).count();
        if single > 0 {
            let runs = if single == 1 { "1 run is".into() } else { format!("{} runs are", grouped(single as u64)) };
            console.note(&format!("{runs} kept: an experiment is removed as a whole, if all of it is listed"));
        }
        self.recordings.retain(|one| one.experiment.is_none());
        let mut reasons = BTreeMap::new();
        for one in &self.recordings {
            let reason = one.listing.reason_to_keep();
            reasons.extend(
                reason.unwrap_or_else(|error| Some(error.to_string())).map(|it| (one.listing.path.clone(), it)),
            );
        }
        for one in &self.experiments {
            reasons.extend(one.reason_to_keep().map(|it| (one.path.clone(), it)));
        }
        for (path, reason) in &reasons {
            console.note(&format!("`{}` is kept: {reason}", path.display()));
        }
        self.recordings.retain(|one| !reasons.contains_key(&one.listing.path));
        self.experiments.retain(|one| !reasons.contains_key(&one.path));
    }

    /// Removes everything, and keeps in the list what was removed. Returns the first failure: the rest is removed all the
    /// same.
    fn remove(&mut self) -> Option<Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        let mut is_removed = |removed: Result<(), Failure>| removed.map_err(|failure| failures.push(failure)).is_ok();
        self.recordings.retain(|one| is_removed(one.listing.remove().map_err(Failure::from)));
        self.experiments.retain(|one| is_removed(experiment::remove(&one.path).map_err(Failure::from)));
        failures.into_iter().next()
    }

    fn sort(&mut self, key: SortKey) {
        self.recordings.sort_by_key(|one| Reverse((one.view.start, one.listing.name())));
        self.experiments.sort_by_key(|one| Reverse((one.view.start, one.path.clone())));
        match key {
            SortKey::Time => {}
            SortKey::Kind => self.recordings.sort_by(|one, other| one.view.kind.cmp(&other.view.kind)),
            SortKey::Rows => {
                self.recordings.sort_by_key(|one| Reverse(one.view.rows));
                self.experiments.sort_by_key(|one| Reverse(one.view.runs_done));
            }
            SortKey::Size => {
                self.recordings.sort_by_key(|one| Reverse(one.view.bytes));
                self.experiments.sort_by_key(|one| Reverse(one.view.bytes));
            }
            SortKey::State => {
                self.recordings.sort_by(|one, other| one.view.state.cmp(&other.view.state));
                self.experiments.sort_by(|one, other| one.view.state.cmp(&other.view.state));
            }
        }
    }

    fn view(self, store: &Path, sort: SortKey, removed: Option<bool>) -> StoreView {
        let path = runs_of(store).unwrap_or_else(|| store.to_owned());
        StoreView {
            store: path.display().to_string(),
            recordings: self.recordings.into_iter().map(|one| one.view).collect(),
            experiments: self.experiments.into_iter().map(|one| one.view).collect(),
            removed,
            with_sizes: removed.is_some() || sort == SortKey::Size,
            by_time: sort == SortKey::Time,
            is_unmatched: self.unmatched.is_some(),
        }
    }
}

/// The most tags of a store that are named.
const TAGS_SHOWN: usize = 5;

/// Says that nothing matches, and what could: kinds, starts and `tags` of the `recordings` in the store.
fn unmatched(recordings: &[ListedRecording], tags: &BTreeSet<String>, experiments: usize) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    recordings.iter().filter_map(|one| one.view.kind.as_deref()).for_each(|kind| *kinds.entry(kind).or_default() += 1);
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{} {kind}", grouped(*count as u64))).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let experiments =
        if experiments == 0 { String::new() } else { format!(" and {}", counted(experiments, "experiment")) };
    let starts: BTreeSet<Timestamp> = recordings.iter().filter_map(|one| one.view.start).collect();
    let minute = |start: &Timestamp| start.strftime("%Y-%m-%dT%H:%MZ").to_string();
    let starts = match (starts.first().map(minute), starts.last().map(minute)) {
        (Some(first), Some(last)) if first == last => format!(" of {first}"),
        (Some(first), Some(last)) => format!(" of {first} to {last}"),
        _ => String::new(),
    };
    let shown: Vec<&str> = tags.iter().take(TAGS_SHOWN).map(String::as_str).collect();
    let others = match tags.len() - shown.len() {
        0 => String::new(),
        others => format!(" and {} more", grouped(others as u64)),
    };
    let tags =
        if tags.is_empty() { "without tags".to_owned() } else { format!("with the tags {}{others}", shown.join(", ")) };
    format!(
        "nothing matches: the store has {}{kinds}{experiments}{starts}, {tags}",
        counted(recordings.len(), "recording")
    )
}

fn is_listed(filter: &ListFilterArgs, listing: &Listing) -> bool {
    let manifest = listing.manifest.as_ref();
    filter.has_kind(manifest.map(|manifest| manifest.kind))
        && filter.has_tags(manifest.map(|manifest| &manifest.spec.tags))
        && filter.has_start(listing.start())
}

/// What is typed behind `latlab summary`: the name where that is enough, else the path.
fn word(path: &Path, is_usual_store: bool) -> String {
    match path.file_name() {
        Some(name) if is_usual_store && !Path::new(name).exists() => shell_word(&name.to_string_lossy()),
        _ => quoted(path),
    }
}

fn show_recording(listing: &Listing, experiment: Option<&PathBuf>, is_usual_store: bool) -> ListingView {
    let manifest = listing.manifest.as_deref();
    let (state, reason) = state(listing);
    ListingView {
        recording: listing.path.display().to_string(),
        experiment: experiment.map(|path| path.display().to_string()),
        kind: manifest.map(|manifest| manifest.kind.word().into()),
        started_at: manifest.map(|manifest| manifest.started_at.clone()),
        heading: manifest.map(heading),
        condition: manifest.map(|manifest| manifest.spec.condition()),
        warmup: manifest.map(|manifest| manifest.experiment.as_ref().is_some_and(|facts| facts.warmup)),
        rows: manifest.and_then(|manifest| manifest.rows),
        bytes: listing.bytes(),
        state: state.into(),
        reason,
        word: word(&listing.path, is_usual_store),
        factors: manifest.and_then(factors),
        start: listing.start(),
    }
}

/// The condition of a run among those of its experiment.
fn factors(manifest: &Manifest) -> Option<String> {
    let facts = manifest.experiment.as_ref().filter(|facts| !facts.factors.is_empty())?;
    Some(condition_words(&facts.factors))
}

/// The experiment in `directory` with these `runs`, whatever its state.
fn show_experiment(directory: &Path, runs: &[ListedRecording], is_usual_store: bool) -> ListedExperiment {
    let settled = settle_directory(directory).map(|job| job.experiment);
    let lost_file = settled.as_ref().err().map(in_full);
    let experiment = settled.ok();
    let named_start = directory.file_name().and_then(|name| start_in_name(&name.to_string_lossy()));
    let start = named_start.or_else(|| runs.iter().filter_map(|run| run.view.start).min());
    let mut view = ListedExperiment {
        experiment: directory.display().to_string(),
        name: experiment.as_ref().map(|experiment| experiment.name.clone()),
        started_at: start.map(|start| start.to_string()),
        runs_done: None,
        runs_planned: experiment.as_ref().and_then(|experiment| planned_runs(experiment, |_| false)),
        bytes: runs.iter().map(|run| run.view.bytes).sum(),
        state: "damaged".into(),
        reason: None,
        what: experiment.as_ref().map(what_varies).unwrap_or_default(),
        word: word(directory, is_usual_store),
        start,
    };
    match read_state_with_runner(directory) {
        Err(error) => view.reason = Some(in_full(&error.explain())),
        Ok((state, runner)) => {
            view.runs_done = Some(state.runs_done());
            view.runs_planned = experiment.and_then(|experiment| planned_runs(&experiment, |it| state.is_dropped(it)));
            let process = |pid: Option<u32>| pid.map_or("by another process".into(), |pid| format!("by process {pid}"));
            let other_file = lost_file.or_else(|| edited(directory, &state));
            let goes_on = || "`latlab run` with its directory continues it".to_owned();
            (view.state, view.reason) = match runner {
                Some(runner) => ("measuring".into(), Some(process(runner.pid))),
                None if state.finished => ("finished".into(), other_file.or_else(|| failures(&state))),
                None => ("unfinished".into(), Some(other_file.unwrap_or_else(goes_on))),
            };
        }
    }
    view
}

/// The kind of `experiment` with the target, if that is the same for all runs, and the factors that vary: `load × size`.
fn what_varies(experiment: &Experiment) -> Vec<String> {
    let runs = experiment.conditions.iter().flat_map(|condition| &condition.plan.runs);
    let targets: BTreeSet<String> = runs.map(|run| run.target.to_string()).collect();
    let what = match targets.first() {
        Some(target) if targets.len() == 1 && experiment.kind.has_target() => {
            format!("{} {target}", experiment.kind.word())
        }
        _ => experiment.kind.word().into(),
    };
    let factors: Vec<&Factors> = experiment.conditions.iter().map(|condition| &condition.factors).collect();
    let common = common_levels(&factors);
    let names: BTreeSet<&str> = factors.iter().flat_map(|factors| factors.keys()).map(String::as_str).collect();
    let varying: Vec<&str> = names.into_iter().filter(|name| !common.contains_key(*name)).collect();
    let varying = (!varying.is_empty()).then(|| varying.join(" × "));
    std::iter::once(what).chain(varying).collect()
}

/// The runs of the conditions of `experiment` that are not dropped; `None` if this latlab or this host can have no condition
/// of its file.
fn planned_runs(experiment: &Experiment, is_dropped: impl Fn(&Factors) -> bool) -> Option<u64> {
    let conditions = experiment.conditions.iter().filter(|condition| !is_dropped(&condition.factors));
    (!experiment.conditions.is_empty()).then(|| experiment.design.runs_at_most(conditions.count()))
}

/// `16 runs failed`, if runs broke off or could not begin. Runs without an answer are judged, with loss 1.
fn failures(state: &ExperimentState) -> Option<String> {
    let over = state.runs_that(RunOutcome::Failed).chain(state.runs_that(RunOutcome::Refused));
    let failed = over.filter(|run| !run.is_unanswered()).count() as u64;
    (failed > 0).then(|| format!("{} {} failed", grouped(failed), if failed == 1 { "run" } else { "runs" }))
}

/// Why the file of an experiment is not the one that its runs were measured by.
fn edited(directory: &Path, state: &ExperimentState) -> Option<String> {
    is_edited(directory, state).is_ok_and(|is_edited| is_edited).then(|| "its file was edited".into())
}

fn in_full(Failure { message, cause, .. }: &Failure) -> String {
    cause.as_ref().map_or_else(|| message.clone(), |cause| format!("{message}: {cause}"))
}

/// What was measured, in one line.
fn heading(manifest: &Manifest) -> String {
    let Manifest { kind, spec, run, .. } = manifest;
    let what = if kind.has_target() { format!("{} {}", kind.word(), spec.target) } else { kind.word().into() };
    let family = run.peer_address.as_deref().map(family_of);
    std::iter::once(what).chain(spec.listed(family)).collect::<Vec<_>>().join(" · ")
}

fn state(listing: &Listing) -> (&'static str, Option<String>) {
    let reason = listing.manifest.as_ref().and_then(|manifest| manifest.reason.clone());
    match &listing.state {
        ListingState::Measuring { pid } => ("measuring", Some(format!("by process {pid}"))),
        ListingState::Unfinished => {
            ("unfinished", Some("its process ended; the next command that opens it finishes it".into()))
        }
        ListingState::Damaged(error) => ("damaged", Some(in_full(&error.explain()))),
        ListingState::Finished => {
            (listing.manifest.as_ref().map_or("damaged", |manifest| ending(manifest.ending)), reason)
        }
    }
}

const fn ending(ending: RunEnding) -> &'static str {
    match ending {
        RunEnding::Measuring => "measuring",
        RunEnding::Completed => "completed",
        RunEnding::Interrupted => "interrupted",
        RunEnding::Failed => "failed",
        RunEnding::Recovered => "recovered",
    }
}
