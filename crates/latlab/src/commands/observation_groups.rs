//! Groups of observations: resolves paths and globs to recordings, stores, experiments and files of numbers, and reads
//! the figures of the runs or the numbers of the files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::analysis::Estimand;
use crate::analysis::comparison::{
    GroupingError, Lines, NumberFiles, ObservedRun, RunGroups, RunsOfKind, expect_one_kind,
};
use crate::analysis::experiment::compared_conditions;
use crate::cli::args::StoreArgs;
use crate::cli::resolve::{self, ConditionSelection, Environment, ExperimentJob, Grouping, Sources};
use crate::cli::value::NamedGlob;
use crate::console::Console;
use crate::diagnostics::{Explain, Failure, in_words};
use crate::experiment::{
    ExperimentState, can_be_of, file_path, file_text, gone_runs, in_store, is_edited, is_experiment, observe,
    read_state, runs_directory, runs_of,
};
use crate::facts::ExcludedCondition;
use crate::formats::numbers::{self, NumbersError, TextColumn};
use crate::metric::Metric;
use crate::plan::{Factors, Kind};
use crate::platform::ownership::quoted;
use crate::recipe::{self, Published};
use crate::recording::{Listing, ListingState, Recording, Store, start_in_name};
use crate::units::human;

const DASH: &str = "-";

/// A group whose members are not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnreadGroup<T> {
    pub(super) name: String,
    pub(super) members: Vec<T>,
}

/// A group of paths, of which it has at least one.
pub(super) type PathGroup = UnreadGroup<PathBuf>;

/// Whether `path` is a file of numbers; otherwise it is a recording or a directory of them.
fn is_text(path: &Path) -> bool {
    !path.is_dir()
}

/// Whether `path` exists; standard input always does.
fn is_there(path: &Path) -> bool {
    path.as_os_str() == DASH || path.exists()
}

/// The groups of paths and globs. Under `--by`, which depends on the recordings, all paths are one group.
pub(super) fn path_groups(sources: &Sources) -> Result<Vec<PathGroup>, Failure> {
    let paths = &sources.paths;
    match &sources.grouping {
        Grouping::By(_) if paths.is_empty() => Ok(Vec::new()),
        Grouping::By(factor) => {
            let members = paths.iter().map(|path| located(path)).collect::<Result<_, _>>()?;
            Ok(vec![PathGroup { name: factor.clone(), members }])
        }
        Grouping::Paths => {
            let group = |path: &PathBuf| {
                let path = located(path)?;
                Ok(PathGroup { name: path_name(&path), members: vec![path] })
            };
            paths.iter().map(group).collect()
        }
        Grouping::Globs(globs) => glob_groups(globs),
    }
}

/// What `typed` means in the usual store, as [`located_in`].
pub(super) fn located(typed: &Path) -> Result<PathBuf, Failure> {
    if is_there(typed) {
        Ok(typed.to_owned())
    } else {
        located_in(typed, &resolve::store(&StoreArgs::default(), &Environment::of_this_process()?))
    }
}

/// The path that `typed` means: itself, or else the recording or experiment of this name in `store`, as `latlab list`
/// shows it, or with this short id, the end of its name after a hyphen.
///
/// # Errors
/// If several have this name, or this short id.
pub(super) fn located_in(typed: &Path, store: &Path) -> Result<PathBuf, Failure> {
    if is_there(typed) || typed.components().count() != 1 {
        return Ok(typed.to_owned());
    }
    let experiments = in_store(store);
    let own = experiments.iter().map(|experiment| runs_directory(experiment));
    let stores: Vec<PathBuf> = own.chain([store.to_owned()]).collect();
    let mut found: Vec<PathBuf> = stores.iter().map(|store| store.join(typed)).filter(|path| path.is_dir()).collect();
    if found.is_empty() {
        let end = format!("-{}", typed.display());
        let has_id = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&end));
        let recordings = stores.iter().flat_map(|store| Store::at(store).recordings().collect::<Vec<_>>());
        found = recordings.chain(experiments).filter(has_id).collect();
        found.sort();
    }
    match found.len() {
        0 => Ok(typed.to_owned()),
        1 => Ok(found.remove(0)),
        count => {
            let paths = found.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
            Err(Failure::request(format!("{count} recordings have the name or short id `{}`", typed.display()))
                .because(paths)
                .hint("give the path of one of them"))
        }
    }
}

fn glob_groups(globs: &[NamedGlob]) -> Result<Vec<PathGroup>, Failure> {
    let mut groups: Vec<PathGroup> = Vec::new();
    for glob in globs {
        let members = matched(glob)?;
        match groups.iter_mut().find(|group| group.name == glob.name) {
            Some(group) => group.members.extend(members),
            None => groups.push(PathGroup { name: glob.name.clone(), members }),
        }
    }
    Ok(groups)
}

/// Removes what is in one of `groups` more than once, and notes it.
///
/// # Errors
/// If something is in two groups: it would be beside itself in a report, or compared with itself.
pub(super) fn once_each<T: AsRef<Path>>(groups: &mut [UnreadGroup<T>], console: &Console) -> Result<(), Failure> {
    let (mut owners, mut repeated) = (BTreeMap::<PathBuf, String>::new(), BTreeMap::new());
    for UnreadGroup { name, members } in groups {
        let mut own = BTreeSet::new();
        for member in std::mem::take(members) {
            let path = member.as_ref();
            // A pipe has no canonical path.
            let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            match owners.entry(identity.clone()) {
                Entry::Occupied(owner) if !own.contains(&identity) => {
                    return Err(in_two_groups(path, owner.get(), name));
                }
                Entry::Occupied(_) => _ = repeated.insert(identity, path_name(path)),
                Entry::Vacant(place) => {
                    place.insert(name.clone());
                    own.insert(identity);
                    members.push(member);
                }
            }
        }
    }
    if let Some(first) = repeated.values().next() {
        let what = match repeated.len() {
            1 => format!("`{first}` is"),
            count => format!("{count} paths, the first `{first}`, are"),
        };
        console.note(&format!("{what} named more than once, and used once"));
    }
    Ok(())
}

fn in_two_groups(path: &Path, one: &str, other: &str) -> Failure {
    let cause = if one == other {
        "two of the paths lead to it".to_owned()
    } else {
        format!("it is in the group `{one}` and in the group `{other}`")
    };
    Failure::request(format!("`{}` is named twice", path_name(path))).because(cause).hint("name each run or file once")
}

/// The numbers in the files of each of `groups`. There is memory to compare them.
pub(super) fn all_numbers(groups: &[PathGroup], column: &TextColumn) -> Result<Vec<NumberFiles>, NumbersError> {
    let read = groups.iter().map(|group| numbers(group, column)).collect::<Result<Vec<_>, _>>()?;
    let files = || read.iter().flat_map(|group| &group.files);
    let largest = files().max_by_key(|(_, values)| values.len());
    let count = files().map(|(_, values)| values.len()).sum();
    largest.map_or(Ok(()), |(name, _)| numbers::expect_memory(name, count))?;
    Ok(read)
}

/// The numbers in the files of `group`.
fn numbers(group: &PathGroup, column: &TextColumn) -> Result<NumberFiles, NumbersError> {
    let read = |path: &PathBuf| {
        let values = if path.as_os_str() == DASH {
            numbers::read_numbers(numbers::STDIN, io::stdin().lock(), column)
        } else {
            numbers::read_file(path, column)
        };
        Ok((path_name(path), values?))
    };
    Ok(NumberFiles { name: group.name.clone(), files: group.members.iter().map(read).collect::<Result<_, _>>()? })
}

fn path_name(path: &Path) -> String {
    if path.as_os_str() == DASH { numbers::STDIN.into() } else { path.display().to_string() }
}

/// The paths that a `--group` glob matches, in alphabetical order.
fn matched(NamedGlob { name, glob }: &NamedGlob) -> Result<Vec<PathBuf>, Failure> {
    let failure = || Failure::request(format!("cannot make the group `{name}` of `{glob}`"));
    Pattern::new(glob).map_err(|error| failure().because(error.msg).hint("patterns are `*`, `?`, `[abc]` and `**`"))?;
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::new() };
    let found = glob::glob_with(glob, options).map_err(|error| failure().because(error.msg))?;
    let paths = found.collect::<Result<Vec<_>, _>>().map_err(|error| {
        Failure { exit_code: 3, ..failure() }.because(format!(
            "{}: {}",
            error.path().display(),
            in_words(error.error())
        ))
    })?;
    match paths.as_slice() {
        [] => Err(failure()
            .because("nothing matches")
            .hint("see its directory; in quotes the shell leaves the pattern to latlab")),
        _ => Ok(paths),
    }
}

/// Whether all paths are files of numbers; a mixture with recordings is refused.
pub(super) fn are_numbers(groups: &[PathGroup]) -> Result<bool, Failure> {
    let mut paths = groups.iter().flat_map(|group| &group.members);
    let texts = paths.clone().filter(|path| is_text(path)).count();
    if let Some(path) = paths.clone().find(|path| !is_there(path)) {
        return Err(Failure::request(format!("cannot read `{}`", path.display()))
            .because("there is no such file or directory")
            .hint("check the path; `latlab list` shows the recordings of a store"));
    }
    let recorded = paths.find(|path| !is_text(path));
    match (texts, recorded) {
        (0, _) => Ok(false),
        (_, None) => Ok(true),
        (_, Some(path)) => Err(Failure::request("cannot compare numbers of files with recordings")
            .because(format!("`{}` is a directory, and other paths are files", path.display()))
            .hint("compare files with files, or recordings with recordings")),
    }
}

pub(super) fn of_numbers(paths: &[PathGroup], sources: &Sources, lines: Option<Lines>) -> Result<RunGroups, Failure> {
    let named = all_numbers(paths, &sources.column)?;
    for group in &named {
        if group.files.iter().all(|(_, values)| values.is_empty()) {
            return Err(Failure::request(format!("cannot compare `{}`", group.name))
                .because(format!("it has no number in column {}", sources.column.number))
                .hint("`-C N` picks another column, `-d DELIMS` splits otherwise"));
        }
    }
    Ok(RunGroups::of_numbers(named, lines)?)
}

/// Groups of recordings that are not read yet.
pub(super) struct FoundRecordings {
    groups: Vec<UnreadGroup<FoundRun>>,
    /// The directories of the experiments that they belong to.
    pub(super) experiments: BTreeSet<PathBuf>,
    /// The conditions of those of them that were named as a whole.
    conditions: ExperimentConditions,
    /// Finished runs of these or of a store that are gone or damaged.
    missing: BTreeSet<String>,
}

impl FoundRecordings {
    pub(super) fn runs(&self) -> impl Iterator<Item = &FoundRun> {
        self.groups.iter().flat_map(|group| &group.members)
    }

    /// Whether there are several groups, and one of them has several recordings.
    pub(super) fn has_groups_of_runs(&self) -> bool {
        self.groups.len() > 1 && self.groups.iter().any(|group| group.members.len() > 1)
    }
}

#[derive(Default)]
struct ExperimentConditions {
    /// Those that take part in the comparison, with or without runs.
    compared: Vec<Factors>,
    /// Those that could not be measured.
    impossible: Vec<ExcludedCondition>,
    /// Where they have their names.
    published: Option<&'static Published>,
}

/// The recordings in `paths` that are of `kind`, or all of them; reports those that are left out.
pub(super) fn find(paths: &[PathGroup], kind: Option<Kind>, console: &Console) -> Result<FoundRecordings, Failure> {
    // A recording whose kind is not known is an error of its reader.
    let is_asked = |run: &FoundRun| kind.is_none_or(|kind| run.kind().is_none_or(|own| own == kind));
    let (mut groups, mut experiments, mut missing) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut others: Vec<Kind> = Vec::new();
    for group in paths {
        let mut found = UnreadGroup { name: group.name.clone(), members: Vec::new() };
        for path in &group.members {
            let FoundRuns { runs, damaged } = runs_in(path, console)?;
            let (runs, left_out): (Vec<_>, Vec<_>) = runs.into_iter().partition(is_asked);
            others.extend(left_out.iter().filter_map(FoundRun::kind));
            experiments.extend(experiments_of(path, &runs));
            found.members.extend(runs);
            missing.extend(damaged);
        }
        groups.push(found);
    }
    if let Some(kind) = kind.filter(|_| groups.iter().all(|group| group.members.is_empty()) && missing.is_empty()) {
        expect_no_others(kind, &others)?;
    }
    once_each(&mut groups, console)?;
    // Recordings declare the metrics that their commands printed, which a request may name.
    groups.iter().flat_map(|group| &group.members).for_each(|run| _ = run.kind());
    experiments.iter().for_each(|directory| missing.extend(gone(directory)));
    let named = paths.iter().flat_map(|group| &group.members).filter_map(|path| path.canonicalize().ok());
    let is_whole =
        |directory: &&PathBuf| named.clone().any(|path| [*directory, &runs_directory(directory)].contains(&&path));
    let mut conditions = ExperimentConditions::default();
    for directory in experiments.iter().filter(is_whole) {
        match conditions_of(directory) {
            Some(own) => {
                conditions.compared.extend(own.compared);
                conditions.impossible.extend(own.impossible);
                conditions.published = own.published;
            }
            // Without its file a condition that never ran would vanish; a journal that cannot be read is named above.
            None if read_state(directory).is_err() => {}
            None if missing.iter().any(|name: &String| name.starts_with(&file_of(directory))) => {}
            None => _ = missing.insert(file_of(directory)),
        }
    }
    Ok(FoundRecordings { groups, experiments, conditions, missing })
}

/// Refuses a comparison of runs of `kind`, of which there is not one, if there are runs of the kinds of `others`.
fn expect_no_others(kind: Kind, others: &[Kind]) -> Result<(), Failure> {
    let count = |kind: Kind| others.iter().filter(|other| **other == kind).count();
    let found: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| count(*kind) > 0).collect();
    if found.is_empty() {
        return Ok(());
    }
    let counts: Vec<String> = found.iter().map(|kind| format!("{} of {}", count(*kind), kind.word())).collect();
    let options: Vec<String> = found.iter().map(|kind| format!("`--kind {}`", kind.word())).collect();
    Err(Failure::request(format!("cannot compare runs of `{}`", kind.word()))
        .because(format!("no run of `{}`: {}", kind.word(), counts.join(", ")))
        .hint(options.join(" or ")))
}

/// The experiment in `directory`, settled as far as that is possible on this host.
pub(super) fn settle_directory(directory: &Path) -> Result<ExperimentJob, Failure> {
    let (file, text) = (file_path(directory), file_text(directory)?);
    let environment = Environment::of_this_process()?;
    Ok(resolve::experiment(&file.display().to_string(), &text, ConditionSelection::Possible, &environment)?)
}

/// The conditions of the experiment in `directory`; `None` if its file or journal cannot be read.
fn conditions_of(directory: &Path) -> Option<ExperimentConditions> {
    let (job, state) = (settle_directory(directory).ok()?, read_state(directory).ok()?);
    // A recipe leaves out what its host cannot measure, without an entry in the journal.
    let excluded = |factors: &Factors| job.impossible.iter().find(|condition| condition.factors == *factors);
    let is_impossible = |factors: &Factors| {
        let has_begun = || state.runs.iter().any(|run| run.key.factors == *factors);
        state.recipe.is_some() && !has_begun() && (state.finished || excluded(factors).is_some())
    };
    let (impossible, possible) = job.combinations.iter().cloned().partition::<Vec<_>, _>(is_impossible);
    let is_dropped = |factors: &Factors| state.is_dropped(factors);
    let compared = compared_conditions(&possible, &impossible, &job.experiment.contrasts, is_dropped);
    let with_reason = |factors: Factors| {
        let reason = excluded(&factors).map(|condition| condition.reason.clone());
        ExcludedCondition { factors, reason: reason.unwrap_or_else(|| "the host of the experiment could not".into()) }
    };
    let published = state.recipe.as_ref().and_then(|facts| recipe::find(&facts.name)?.published.as_ref());
    let impossible = state.dropped.into_iter().chain(impossible.into_iter().map(with_reason)).collect();
    Some(ExperimentConditions { compared, impossible, published })
}

/// The experiments of the runs in `path`, which need not be named by it: a link may lead to a run.
fn experiments_of(path: &Path, runs: &[FoundRun]) -> BTreeSet<PathBuf> {
    // An absolute path has all of its ancestors: the runs of an experiment are two levels below it.
    let paths = std::iter::once(path).chain(runs.iter().map(|run| run.path.as_path()));
    let absolute = paths.filter_map(|path| path.canonicalize().ok());
    let of = |path: PathBuf| path.ancestors().take(3).find(|it| is_experiment(it)).map(Path::to_owned);
    absolute.filter_map(of).collect()
}

/// The metric to compare if none is named; `None` for round trips.
pub(super) fn usual_metric(found: &FoundRecordings) -> Option<&'static str> {
    let first = found.runs().next()?;
    let metric = match first.kind()? {
        // The recording says what its values, or those that a command printed, are.
        Kind::Values | Kind::Command => Recording::open(&first.path).ok()?.manifest().spec.compared().first()?.0,
        kind => kind.metric(),
    };
    (metric != Metric::RoundTripDelay).then(|| metric.name())
}

/// Groups in which each run is an observation with the figures of `estimands`.
pub(super) fn of_recordings(
    found: FoundRecordings,
    sources: &Sources,
    estimands: &[Estimand],
    console: &Console,
) -> Result<RunGroups, Failure> {
    let FoundRecordings { groups: found, conditions, missing, .. } = found;
    let paths: Vec<PathBuf> = found.iter().flat_map(|group| &group.members).map(|run| run.path.clone()).collect();
    let observed = observe(&paths, estimands, &|text| console.note(text))?;
    expect_one_kind(&observed, estimands).map_err(|error| with_commands(&error, sources))?;
    let mut observed = observed.into_iter();
    let own = |group: UnreadGroup<FoundRun>| (group.name, observed.by_ref().take(group.members.len()).collect());
    let groups: Vec<(String, Vec<ObservedRun>)> = found.into_iter().map(own).collect();
    let missing: Vec<String> = missing.into_iter().collect();
    let mut groups = grouped(groups, &conditions.compared, sources).map_err(|error| error.beside_missing(&missing))?;
    (groups.missing, groups.impossible) = (missing, conditions.impossible);
    let published = conditions.published.filter(|_| sources.grouping == Grouping::Paths && groups.factor.is_some());
    published.into_iter().for_each(|published| groups.name_by(|levels| published.label(levels)));
    Ok(groups)
}

/// The failure of `error`. Runs of several kinds in one path get a command for each kind that can be compared.
fn with_commands(error: &GroupingError, sources: &Sources) -> Failure {
    let failure = error.explain();
    let (GroupingError::Kinds { kinds }, [path]) = (error, sources.paths.as_slice()) else { return failure };
    let command = |of: &RunsOfKind| {
        let factor = match &sources.grouping {
            Grouping::By(factor) => factor,
            _ => of.varying.first()?,
        };
        let by = human::shell_word(factor);
        Some(format!("`latlab compare {} --kind {} --by {by}`", quoted(path), of.kind.word()))
    };
    match kinds.iter().filter_map(command).reduce(|all, one| format!("{all} or {one}")) {
        Some(commands) => failure.hint(commands),
        None => failure,
    }
}

fn grouped(
    groups: Vec<(String, Vec<ObservedRun>)>,
    conditions: &[Factors],
    sources: &Sources,
) -> Result<RunGroups, GroupingError> {
    match &sources.grouping {
        Grouping::By(factor) => {
            let groups = RunGroups::by(factor, groups.into_iter().flat_map(|(_, runs)| runs).collect())?;
            let groups = groups.with_conditions(conditions);
            sources.baseline.iter().try_fold(groups, |groups, name| groups.with_baseline(name))
        }
        Grouping::Paths => {
            let groups = RunGroups::of_paths(groups)?.with_conditions(conditions);
            let have_ids = groups.groups.iter().all(|group| start_in_name(&group.name).is_some());
            Ok(if have_ids { groups.labelled() } else { groups })
        }
        Grouping::Globs(_) => RunGroups::of_globs(groups),
    }
}

/// A recording whose rows are not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundRun {
    pub(super) path: PathBuf,
    /// The kind, if the listing of the store says it.
    kind: Option<Kind>,
}

impl AsRef<Path> for FoundRun {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl FoundRun {
    /// The kind of the run; `None` if it cannot be opened, which its reader reports.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind.or_else(|| Some(Recording::open(&self.path).ok()?.manifest().kind))
    }
}

pub(super) struct FoundRuns {
    pub(super) runs: Vec<FoundRun>,
    pub(super) damaged: Vec<String>,
}

/// The runs of the recording, store or experiment at `path`, oldest first. Reports those that cannot be read; of them it
/// returns a run outside of an experiment, which is an error of its reader.
pub(super) fn runs_in(path: &Path, console: &Console) -> Result<FoundRuns, Failure> {
    let store = runs_of(path).unwrap_or_else(|| path.to_owned());
    let is_in_experiment = !experiments_of(&store, &[]).is_empty();
    let mut found: Vec<FoundRun> = Vec::new();
    let mut damaged = Vec::new();
    let kind = |listing: &Listing| listing.manifest.as_ref().map(|manifest| manifest.kind);
    for (kind, listing) in Store::at(&store).list_as(|it| (kind(&it), Listing { manifest: None, ..it }))? {
        let name = listing.name();
        match &listing.state {
            ListingState::Finished | ListingState::Unfinished => found.push(FoundRun { path: listing.path, kind }),
            ListingState::Measuring { pid } => {
                console.note(&format!("`{}` is skipped: process {pid} still measures", listing.path.display()));
            }
            ListingState::Damaged(_) if is_in_experiment && listing.is_bare() => {}
            ListingState::Damaged(error) => {
                // The journal of an experiment says which runs count.
                damaged.extend((!is_in_experiment).then(|| format!("`{name}`")));
                console.left_out(&error.explain());
            }
        }
    }
    // the store lists the newest first
    found.reverse();
    if found.is_empty() && damaged.is_empty() && store == path {
        found.push(FoundRun { path: path.to_owned(), kind: None });
    }
    let mut journals = BTreeMap::new();
    found.retain(|run| {
        let experiment = experiments_of(&run.path, &[]).pop_first();
        experiment.is_none_or(|directory| {
            let journal = journals.entry(directory).or_insert_with_key(|directory| read_state(directory).ok());
            is_of_experiment(&run.path, journal.as_ref(), console)
        })
    });
    Ok(FoundRuns { runs: found, damaged })
}

/// Whether the recording at `path` can be opened and can be of the experiment with this journal, if that can be read; reports
/// why not, or what opening it changed.
fn is_of_experiment(path: &Path, journal: Option<&ExperimentState>, console: &Console) -> bool {
    let recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(error) => {
            console.left_out(&error.explain());
            return false;
        }
    };
    recording.note().into_iter().for_each(|note| console.note(note));
    let name = path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let is_own = journal.is_none_or(|state| can_be_of(state, &name.unwrap_or_default(), recording.manifest()));
    if !is_own {
        let why = "it is not a run of this experiment, or it is a copy of one";
        console.note(&format!("`{}` is skipped: {why}", path_name(path)));
    }
    is_own
}

/// What is gone or damaged of the experiment in `directory`: recordings of judged runs that cannot be opened, and its file if
/// it is not the one that the journal names. A journal that cannot be read does not say which these are, and is named itself.
pub(super) fn gone(directory: &Path) -> Vec<String> {
    let Ok(state) = read_state(directory) else {
        return vec![format!("the journal of `{}`", directory.display())];
    };
    let file = match is_edited(directory, &state) {
        Ok(is_edited) => is_edited.then(|| format!("{}, which was edited", file_of(directory))),
        Err(error) => {
            let cause = error.explain().cause.unwrap_or_else(|| error.to_string());
            Some(format!("{} ({cause})", file_of(directory)))
        }
    };
    gone_runs(directory, &state).into_iter().map(|name| format!("`{name}`")).chain(file).collect()
}

fn file_of(directory: &Path) -> String {
    format!("the file of `{}`", directory.display())
}
