//! Resolution of `latlab run` and `latlab recipes`.

use std::path::{Path, PathBuf};

use super::experiment::{MeasuringCommand, RecipePart, TypedExperiment, typed_experiment};
use super::{ConditionSelection, Environment, environment};
use crate::cli::args::{AbArgs, AmountArgs, RecipesArgs, RunArgs};
use crate::cli::value::{alone, out_of_place, unusable};
use crate::diagnostics::Failure;
use crate::recipe::{self, Between, RECIPES, Recipe, RecipeScale};
use crate::units::human::{shell_word, suggestion};

/// The resolved `latlab run`; the experiment file is not yet read.
#[derive(Clone, Debug)]
pub struct RunJob {
    pub source: RunSource,
    pub store: PathBuf,
    /// How it goes on, what must hold and what is printed.
    pub typed: RunArgs,
}

#[derive(Clone, Debug)]
pub enum RunSource {
    Recipe(AskedRecipe),
    /// An experiment file or directory.
    Path(PathBuf),
    /// Two commands; with the recipe that they are measured by.
    Typed(TypedExperiment, Option<AskedRecipe>),
}

/// A built-in experiment with its parameters.
#[derive(Clone, Debug)]
pub struct AskedRecipe {
    pub recipe: &'static Recipe,
    pub target: String,
    /// Number of blocks and runs.
    pub scale: RecipeScale,
    pub between: Between,
}

impl AskedRecipe {
    /// Text of the experiment file.
    pub fn file(&self) -> String {
        self.recipe.file(&self.target, self.scale, self.between)
    }

    /// Name of the source in the journal.
    pub fn source(&self) -> String {
        self.recipe.source(&self.target, self.scale, self.between)
    }
}

/// Resolves the arguments and checks them against each other.
pub fn run(typed: &RunArgs, environment: &Environment) -> Result<RunJob, Failure> {
    let target = typed.target.as_ref().or(typed.amount.to_target.as_ref());
    let found = typed.what.as_deref().and_then(Path::to_str).and_then(recipe::find);
    expect_of_two_commands(typed, found)?;
    let AmountArgs { quick, full, reboots, .. } = typed.amount;
    let asked = found.map(|recipe| recipe_source(recipe, target, scale(quick, full), reboots)).transpose()?;
    let source = match (typed_source(typed, asked.as_ref(), environment)?, asked) {
        (Some(source), _) => source,
        (None, Some(asked)) => RunSource::Recipe(asked),
        (None, None) => {
            let path = typed.what.clone().unwrap_or_default();
            only_of_a_recipe(typed, &path, target)?;
            RunSource::Path(path)
        }
    };
    Ok(RunJob { source, store: environment::store(&typed.store, environment), typed: typed.clone() })
}

/// The experiment of `--ab`, measured as the recipe `asked` measures; `None` without `--ab`.
fn typed_source(
    typed: &RunArgs,
    asked: Option<&AskedRecipe>,
    environment: &Environment,
) -> Result<Option<RunSource>, Failure> {
    if typed.ab.ab.is_empty() {
        return Ok(None);
    }
    let measuring = MeasuringCommand::of(&typed.ab.measuring)?;
    let part = asked.map(|asked| RecipePart { file: asked.file(), options: options_of(&typed.amount) });
    let experiment = typed_experiment(&typed.ab, &measuring, part.as_ref())?;
    if typed.ab.print_file {
        // A file that cannot be run is not printed. Without this option it is resolved when it is run.
        let selection = if asked.is_some() { ConditionSelection::Possible } else { ConditionSelection::All };
        super::experiment("--ab", &experiment.text, selection, environment)?;
    }
    Ok(Some(RunSource::Typed(experiment, asked.cloned())))
}

/// The typed options of a recipe but its target.
fn options_of(amount: &AmountArgs) -> Vec<&'static str> {
    let AmountArgs { to_target: _, quick, full, reboots } = amount;
    let given = [("--quick", *quick), ("--full", *full), ("--reboots", *reboots)];
    given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect()
}

/// Refuses what has no effect on the experiment of two commands, and what is not one. `found` is the recipe that was named.
fn expect_of_two_commands(typed: &RunArgs, found: Option<&'static Recipe>) -> Result<(), Failure> {
    let [a, b] = typed.ab.ab.as_slice() else { return Ok(()) };
    let refuse = |option, with: &str, cause, hint| Err(out_of_place(option, with, cause, hint));
    let AbArgs { runs, max_runs, blocks, .. } = &typed.ab;
    match (found, &typed.what) {
        (Some(recipe), _) if recipe.name == AA => {
            let designed =
                [("--runs", runs.is_some()), ("--max-runs", max_runs.is_some()), ("--blocks", blocks.is_some())];
            if let Some((option, _)) = designed.into_iter().find(|(_, is_given)| *is_given) {
                return refuse(option, AA, "the recipe sets this itself", "`--quick` and `--full` are its scales");
            }
            if a != b {
                let cause = format!("`aa` compares a command with itself, and A is `{a}`");
                let (a, b) = (shell_word(a), shell_word(b));
                let hint = format!("A twice; or without `aa`, to compare both: `latlab run --ab {a} {b} -- …`");
                return Err(unusable("--ab", b, cause, hint));
            }
            Ok(())
        }
        (_, Some(what)) => {
            let cause = "two commands are an experiment of their own";
            refuse("--ab", &what.display().to_string(), cause, "leave it out; `aa --ab` compares a command with itself")
        }
        (_, None) => match options_of(&typed.amount).first() {
            Some(option) => {
                let hint = "`--runs N` and `--blocks N` set how much is measured; `aa --ab` is a recipe";
                refuse(option, "--ab", "it is for recipes", hint)
            }
            None => Ok(()),
        },
    }
}

/// The recipe that measures one command under two names.
const AA: &str = "aa";

/// Resolves the recipe to show; `None` to list all recipes.
pub fn recipes(typed: &RecipesArgs) -> Result<Option<AskedRecipe>, Failure> {
    let words: Vec<&str> = [&typed.name, &typed.name_after_show].into_iter().flatten().map(String::as_str).collect();
    let name = match *words.as_slice() {
        [] => return Ok(None),
        ["show"] => {
            let hint = "such as `latlab recipes pi-udp-load`; `latlab recipes` lists all names";
            return Err(alone("show", "NAME", "it is about one recipe", hint));
        }
        ["show", name] | [name] => name,
        [_, second, ..] => {
            let cause = "one recipe is shown at a time";
            return Err(unusable("NAME", second, cause, "leave it out: `latlab recipes NAME`"));
        }
    };
    let recipe = recipe::find(name).ok_or_else(|| {
        let hint = suggestion(name, &RECIPES.iter().map(|recipe| recipe.name.as_str()).collect::<Vec<_>>());
        unusable("NAME", name, "there is no such recipe", hint)
    })?;
    recipe_source(recipe, typed.target.as_ref(), scale(typed.quick, typed.full), typed.reboots).map(Some)
}

fn recipe_source(
    recipe: &'static Recipe,
    target: Option<&String>,
    scale: RecipeScale,
    reboots: bool,
) -> Result<AskedRecipe, Failure> {
    let target = target.map_or_else(|| recipe.usual_target.clone(), Clone::clone);
    let between = if reboots { Between::Reboots } else { Between::AsItsFileSays };
    if recipe.has_target() || target == recipe.usual_target {
        Ok(AskedRecipe { recipe, target, scale, between })
    } else {
        let cause = "this recipe measures the host that it is typed on";
        Err(out_of_place("TARGET", recipe.name.as_str(), cause, "leave it out, or type it on the other host"))
    }
}

const fn scale(quick: bool, full: bool) -> RecipeScale {
    match (quick, full) {
        (true, _) => RecipeScale::Quick,
        (_, true) => RecipeScale::Full,
        _ => RecipeScale::Usual,
    }
}

/// Refuses options that an experiment file sets itself.
fn only_of_a_recipe(typed: &RunArgs, what: &Path, target: Option<&String>) -> Result<(), Failure> {
    let AmountArgs { quick, full, reboots, .. } = typed.amount;
    let option = match (target, quick, full) {
        (Some(_), ..) => "TARGET",
        (_, true, _) => "--quick",
        (_, _, true) => "--full",
        _ if reboots => "--reboots",
        _ => return Ok(()),
    };
    let what = what.display().to_string();
    if let Some(hint) = recipe::meant(&what) {
        return Err(unusable("FILE|RECIPE|DIR", what, "there is no such recipe", hint));
    }
    let cause = "the file of an experiment sets this itself";
    Err(out_of_place(option, what, cause, "it is for recipes: `latlab recipes` lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn resolve_words(words: &[&str]) -> Result<RunJob, Failure> {
        let typed = ["latlab", "run"].iter().chain(words).map(Into::into);
        match crate::cli::parse(typed).unwrap_or_else(|page| panic!("{words:?}: {page:?}")).command {
            Command::Run(args) => run(&args, &Environment::default()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_source_of_two_commands_makes_the_same_file_again() {
        let typed = |words: &[&str]| match resolve_words(words).expect("typed well").source {
            RunSource::Typed(experiment, asked) => (experiment, asked),
            other => panic!("{other:?}"),
        };
        for words in [
            &["--ab", "./a 1", "./b", "--", "ping", "local", "-n", "5"][..],
            &["--ab", "./a 'x y'", "./a 'x y'", "--ab-deploy", "--blocks", "2", "--", "wakeup", "--tag", "host=pi"],
            &["--ready", "udp:h:1", "--runs", "until p50 ±5%", "--max-runs", "30", "--ab", "a", "b", "--", "ping"],
            &["--ab", "a", "b", "--equivalence", "3%", "--", "ping", "127.0.0.1:1", "--tag", "x=$y"],
            &["aa", "--quick", "--ab", "a", "a", "--equivalence", "3%", "--", "ping", "127.0.0.1:1"],
            &["aa", "--full", "--reboots", "--ab", "a", "a", "--", "stream"],
        ] {
            let (experiment, asked) = typed(words);
            let recipe = asked.map_or_else(String::new, |asked| format!("{} ", asked.recipe.name));
            let source = recipe + &experiment.source;
            let pasted = shlex::split(&source).expect("words of a shell");
            let (again, _) = typed(&pasted.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!((&again.text, &again.source), (&experiment.text, &experiment.source), "{source}");
            let environment = Environment::default();
            let settled = crate::cli::resolve::experiment("--ab", &again.text, ConditionSelection::All, &environment);
            assert!(settled.is_ok(), "{settled:?}\n{}", again.text);
        }
    }
}
