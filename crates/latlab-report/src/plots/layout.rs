//! How conditions share colours and panels, so that a figure of several factors shows all of them: the levels of some factors
//! are colours, and those of the others are panels with the same axes.

use std::collections::{BTreeMap, BTreeSet};

use super::input::PlotCondition;
use crate::figure::draw::LOOKS;
use crate::recipe::Pictures;
use crate::units::human;

/// Most lines of a panel, whose bands cover each other, where other panels can have the rest.
pub(super) const LINES: usize = 5;
pub(super) const PANELS: usize = 24;
/// More factors, or conditions, are shown in their order.
const SPLIT_FACTORS: usize = 8;
const SPLIT_CONDITIONS: usize = PANELS * LOOKS;

/// The levels of a condition, by factor.
pub(super) type Levels<'a> = BTreeMap<&'a str, &'a str>;

/// What is drawn in one colour: a condition, or those of a line.
pub(super) struct Drawn<'a> {
    pub(super) name: &'a str,
    pub(super) levels: Levels<'a>,
}

impl<'a> Drawn<'a> {
    pub(super) fn of(condition: &'a PlotCondition) -> Drawn<'a> {
        Drawn { name: &condition.name, levels: levels(condition) }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) panel: usize,
    pub(super) colour: usize,
    pub(super) name: String,
}

#[derive(Default)]
pub(super) struct Layout<'a> {
    /// Their names; none of a single one.
    pub(super) panels: Vec<String>,
    /// The places of the first ones; the others are left out.
    pub(super) places: Vec<Place>,
    /// The levels that are colours, and those that are panels.
    split: Option<Split<'a>>,
}

struct Split<'a> {
    colours: Distinct<'a>,
    panels: Distinct<'a>,
}

/// The levels of some factors that occur, and for each of all conditions which of them it has.
struct Distinct<'a> {
    levels: Vec<Levels<'a>>,
    numbers: Vec<usize>,
}

pub(super) fn levels(condition: &PlotCondition) -> Levels<'_> {
    condition.levels.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect()
}

/// The factors with more than one level, absent ones included.
fn varied<'a>(all: &[Levels<'a>]) -> Vec<&'a str> {
    let factors: BTreeSet<&str> = all.iter().flat_map(|levels| levels.keys().copied()).collect();
    let differs = |factor: &&str| all.iter().any(|levels| levels.get(*factor) != all[0].get(*factor));
    factors.into_iter().filter(differs).collect()
}

impl<'a> Layout<'a> {
    /// The layout of `drawn` with the fewest panels of at most so many `lines`, or as many as there are colours. Of more levels
    /// of one factor, and of names without levels, each panel has the next ones.
    pub(super) fn of(drawn: &[Drawn<'a>], lines: usize, pictures: &Pictures) -> Layout<'a> {
        let all: Vec<Levels> = drawn.iter().take(SPLIT_CONDITIONS + 1).map(|one| one.levels.clone()).collect();
        let factors = varied(&all);
        let is_split = all.len() <= SPLIT_CONDITIONS && (1..=SPLIT_FACTORS).contains(&factors.len());
        let split = |mask: u32| {
            let [colours, panels] = [1, 0].map(|bit| {
                let is_its = |(index, factor): (usize, &&'a str)| (mask >> index & 1 == bit).then_some(*factor);
                Distinct::of(&all, &factors.iter().enumerate().filter_map(is_its).collect())
            });
            Split { colours, panels }
        };
        let masks = (1..1_u32 << factors.len().min(SPLIT_FACTORS)).rev().filter(|_| is_split);
        let mut splits: Vec<Split> = masks.map(split).filter(|it| it.panels.levels.len() <= PANELS).collect();
        splits.sort_by_key(|split| split.panels.levels.len());
        let first = |most: usize| splits.iter().position(|it| it.colours.levels.len() <= most);
        let are_distinct = all.iter().collect::<BTreeSet<_>>().len() == all.len();
        match first(lines).or_else(|| first(LOOKS)).filter(|_| are_distinct) {
            Some(index) => Layout::split(splits.swap_remove(index), pictures),
            None => Layout::in_order(drawn),
        }
    }

    fn split(split: Split<'a>, pictures: &Pictures) -> Layout<'a> {
        let name = |levels: &Levels| match words(levels, pictures) {
            empty if empty.is_empty() => words(levels, &Pictures::default()),
            name => name,
        };
        let Split { colours, panels } = &split;
        let place = |(panel, colour): (&usize, &usize)| Place {
            panel: *panel,
            colour: *colour,
            name: name(&colours.levels[*colour]),
        };
        let places = panels.numbers.iter().zip(&colours.numbers).map(place).collect();
        let panels = panels.levels.iter().filter(|_| panels.levels.len() > 1).map(name).collect();
        Layout { panels, places, split: Some(split) }
    }

    fn in_order(drawn: &[Drawn<'a>]) -> Layout<'a> {
        let shown = &drawn[..drawn.len().min(PANELS * LOOKS)];
        let size = shown.len().div_ceil(shown.len().div_ceil(LOOKS).max(1)).max(1);
        let place = |(index, one): (usize, &Drawn)| Place {
            panel: index / size,
            colour: index % size,
            name: one.name.to_owned(),
        };
        let name = |part: &[Drawn]| match part {
            [first, .., last] => format!("{} to {}", first.name, last.name),
            _ => part[0].name.to_owned(),
        };
        let panels = if shown.len() > size { shown.chunks(size).map(name).collect() } else { Vec::new() };
        Layout { panels, places: shown.iter().enumerate().map(place).collect(), split: None }
    }

    /// Whether levels of `factor` are colours or panels.
    pub(super) fn has(&self, factor: &str) -> bool {
        let mut all = self.split.iter().flat_map(|split| split.colours.levels.iter().chain(&split.panels.levels));
        all.any(|levels| levels.contains_key(factor))
    }

    /// Where something else with these `levels` belongs, which may be of more factors; `None` if nothing else is there.
    pub(super) fn place(&self, levels: &Levels) -> Option<Place> {
        let Some(Split { colours, panels }) = &self.split else { return self.places.first().cloned() };
        let is_its = |own: &Levels| own.iter().all(|(factor, level)| levels.get(factor) == Some(level));
        let [panel, colour] = [panels, colours].map(|all| all.levels.iter().position(is_its));
        let (panel, colour) = panel.zip(colour)?;
        let name = self.places.iter().find(|place| place.colour == colour).map(|place| place.name.clone());
        Some(Place { panel, colour, name: name.unwrap_or_default() })
    }
}

impl<'a> Distinct<'a> {
    fn of(all: &[Levels<'a>], factors: &BTreeSet<&str>) -> Distinct<'a> {
        let mut distinct = Distinct { levels: Vec::new(), numbers: Vec::new() };
        for levels in all {
            let own: Levels = levels
                .iter()
                .filter(|(factor, _)| factors.contains(*factor))
                .map(|(factor, level)| (*factor, *level))
                .collect();
            let number = distinct.levels.iter().position(|known| *known == own).unwrap_or(distinct.levels.len());
            if number == distinct.levels.len() {
                distinct.levels.push(own);
            }
            distinct.numbers.push(number);
        }
        distinct
    }
}

/// The `levels` in the words of the recipe; others as `load=none`.
pub(super) fn words(levels: &Levels, pictures: &Pictures) -> String {
    let word = |(factor, level): (&&str, &&str)| {
        let known = pictures.levels.get(&format!("{factor}={level}"));
        known.cloned().unwrap_or_else(|| match (*factor, level.parse()) {
            ("size", Ok(bytes)) => human::bytes(bytes),
            // What differs of a pair.
            ("", _) => (*level).to_owned(),
            _ => format!("{factor}={level}"),
        })
    };
    let mut levels: Vec<_> = levels.iter().collect();
    levels.sort_by_key(|(factor, _)| pictures.order.iter().position(|known| known == *factor));
    levels.into_iter().map(word).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Names of the `conditions` that say what distinguishes them: in the words of the recipe, where it has some.
pub(super) fn names(conditions: &[&PlotCondition], pictures: &Pictures) -> Vec<String> {
    let all: Vec<Levels> = conditions.iter().map(|condition| levels(condition)).collect();
    let of_varied = Distinct::of(&all, &varied(&all).into_iter().collect());
    let name = |number: &usize| words(&of_varied.levels[*number], pictures);
    let names: Vec<String> = of_varied.numbers.iter().map(name).collect();
    let are_distinct = names.iter().collect::<BTreeSet<_>>().len() == names.len();
    if are_distinct && !pictures.levels.is_empty() {
        return names;
    }
    conditions.iter().map(|condition| condition.name.clone()).collect()
}
