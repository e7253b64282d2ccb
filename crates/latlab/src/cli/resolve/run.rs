//! `latlab run` and `latlab recipes`, settled.

use std::path::PathBuf;

use super::environment::verbosity;
use super::{Environment, RequestError, output, value};
use crate::cli::args::{AmountArgs, RecipesArgs, ResumeArgs, RunArgs};
use crate::console::Verbosity;
use crate::recipe::{self, Between, RECIPES, Recipe, RecipeScale};
use crate::units::human::suggestion;

/// `latlab run`, settled as far as it can be before the file is open.
#[derive(Clone, Debug)]
pub struct RunJob {
    /// What to run.
    pub source: RunSource,
    /// What to go on with, and how far.
    pub going_on: ResumeArgs,
    /// Where experiments are.
    pub store: PathBuf,
    /// One JSON document instead of text.
    pub json: bool,
    /// How much to say on stderr.
    pub verbosity: Verbosity,
}

/// What to run.
#[derive(Clone, Debug)]
pub enum RunSource {
    /// A built-in experiment.
    Recipe(AskedRecipe),
    /// A file, or an experiment's directory: whichever it is.
    Path(PathBuf),
}

/// A built-in experiment, as it was asked for.
#[derive(Clone, Debug)]
pub struct AskedRecipe {
    /// Which.
    pub recipe: &'static Recipe,
    /// Against whom, as typed.
    pub target: String,
    /// How much of it.
    pub scale: RecipeScale,
    /// What lies between its blocks.
    pub between: Between,
}

impl AskedRecipe {
    /// Its file.
    pub fn file(&self) -> String {
        self.recipe.file(&self.target, self.scale, self.between)
    }

    /// What the journal calls its source.
    pub fn source(&self) -> String {
        self.recipe.source(&self.target, self.scale, self.between)
    }
}

/// Settles `typed`.
pub fn run(typed: &RunArgs, surroundings: &Environment) -> Result<RunJob, RequestError> {
    let target = typed.target.as_ref().or(typed.amount.to_target.as_ref());
    let found = typed.what.to_str().and_then(recipe::find);
    let source = match found {
        Some(recipe) => {
            let AmountArgs { quick, full, reboots, .. } = typed.amount;
            RunSource::Recipe(asked(recipe, target, scale(quick, full), reboots)?)
        }
        None => {
            only_of_a_recipe(typed, target)?;
            RunSource::Path(typed.what.clone())
        }
    };
    Ok(RunJob {
        source,
        going_on: typed.going_on,
        store: output::store(&typed.store, surroundings),
        json: typed.json.json,
        verbosity: verbosity(&typed.verbosity),
    })
}

/// The recipe to show; none: all of them are listed.
pub fn recipes(typed: &RecipesArgs) -> Result<Option<AskedRecipe>, RequestError> {
    let Some(name) = typed.name.as_deref().filter(|_| typed.show.is_some()) else { return Ok(None) };
    let recipe = recipe::find(name).ok_or_else(|| {
        let hint = suggestion(name, &RECIPES.map(|recipe| recipe.name));
        value::unusable("latlab recipes show", name, "there is no such recipe", hint)
    })?;
    asked(recipe, typed.target.as_ref(), scale(typed.quick, typed.full), typed.reboots).map(Some)
}

fn asked(
    recipe: &'static Recipe,
    target: Option<&String>,
    scale: RecipeScale,
    reboots: bool,
) -> Result<AskedRecipe, RequestError> {
    let target = target.map_or_else(|| recipe.usual_target.into(), Clone::clone);
    let between = if reboots { Between::Reboots } else { Between::AsItsFileSays };
    match recipe.has_target() || target == recipe.usual_target {
        true => Ok(AskedRecipe { recipe, target, scale, between }),
        false => Err(RequestError::OutOfPlace {
            option: "TARGET",
            with: recipe.name.into(),
            cause: "this recipe measures the host that it is typed on",
            hint: "leave it out, or type it on the other host",
        }),
    }
}

const fn scale(quick: bool, full: bool) -> RecipeScale {
    match (quick, full) {
        (true, _) => RecipeScale::Quick,
        (_, true) => RecipeScale::Full,
        _ => RecipeScale::Usual,
    }
}

/// A file says itself what it measures against, and how often.
fn only_of_a_recipe(typed: &RunArgs, target: Option<&String>) -> Result<(), RequestError> {
    let AmountArgs { quick, full, reboots, .. } = typed.amount;
    let option = match (target, quick, full) {
        (Some(_), ..) => "TARGET",
        (_, true, _) => "--quick",
        (_, _, true) => "--full",
        _ if reboots => "--reboots",
        _ => return Ok(()),
    };
    let what = typed.what.display().to_string();
    if let Some(meant) = recipe::meant(&what) {
        let hint = format!("did you mean `{meant}`?");
        return Err(value::unusable("FILE|RECIPE|DIR", what, "there is no such recipe", hint));
    }
    Err(RequestError::OutOfPlace {
        option,
        with: what,
        cause: "the file of an experiment says so itself",
        hint: "it is for recipes: `latlab recipes` lists them",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn settle(line: &str) -> Result<RunJob, RequestError> {
        let typed = ["latlab", "run"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Run(args) => run(&args, &Environment::default()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_recipe_has_a_target_and_a_scale() {
        for (line, target, scale) in [
            ("pi-udp-load", "local", RecipeScale::Usual),
            ("pi-udp-load lab --quick", "lab", RecipeScale::Quick),
            ("aa --full --target ssh:pi3", "ssh:pi3", RecipeScale::Full),
            ("udp-loopback-matrix", "lab", RecipeScale::Usual),
            ("udp-loopback-matrix local --quick", "local", RecipeScale::Quick),
        ] {
            let RunSource::Recipe(asked) = settle(line).expect(line).source else { panic!("{line}") };
            assert_eq!((asked.target.as_str(), asked.scale), (target, scale), "{line}");
            assert_eq!(asked.between, Between::AsItsFileSays, "{line}");
        }
        let RunSource::Recipe(asked) = settle("aa --full --reboots").expect("typed well").source else {
            panic!("a recipe")
        };
        assert!(
            asked.file().contains("between-blocks = \"reboot\"") && asked.source() == "recipe:aa full reboots local"
        );
        assert!(matches!(settle("./aa").expect("a path").source, RunSource::Path(_)));
        assert!(matches!(settle("x.toml --new").expect("a path").source, RunSource::Path(_)));
    }

    #[test]
    fn what_a_file_says_itself_is_not_typed() {
        for (line, value, hint) in [
            ("x.toml lab", "TARGET", "recipes"),
            ("x.toml --quick", "--quick", "recipes"),
            ("x.toml --full", "--full", "recipes"),
            ("x.toml --reboots", "--reboots", "recipes"),
            ("wakeup-governor lab", "TARGET", "leave it out"),
            ("pi-udp-laod --quick", "pi-udp-laod", "did you mean `pi-udp-load`?"),
        ] {
            let error = settle(line).expect_err(line);
            assert!(error.to_string().contains(value), "{error}");
            assert!(error.hint().is_some_and(|told| told.contains(hint)), "{error:?}");
        }
    }
}
