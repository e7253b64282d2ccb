//! Rendering of checked publications as text and as `latlab.check-published/1` (docs/schemas/check-published-1.json).

use std::collections::BTreeMap;

use serde::Serialize;

use super::json::pretty;
use super::text::{Style, draw_table, labelled};
use super::view::{ColumnView, GroupView, RowView, TableView};
use crate::analysis::published::{CheckedClaim, ClaimVerdict, ExplainedGroup, FigureCheck, PublishedUnit};
use crate::units::human::{ABSENT, counted, grouped, listed, percent, signed, significant};

/// Renders what is judged of the sample `source` as text, each line with its newline.
pub fn text(check: &FigureCheck, source: &str, style: Style) -> String {
    let mut lines = draw_table(&figure_table(check, source), style);
    lines.extend(remarks(check).iter().flat_map(|(label, text)| labelled(label, "", text, style)));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Renders the JSON document with a final newline.
pub fn json(check: &FigureCheck, source: &str) -> String {
    pretty(&PublicationDocument { schema: "latlab.check-published/1", source, all_hold: check.all_hold(), check })
}

#[derive(Serialize)]
struct PublicationDocument<'a> {
    schema: &'static str,
    source: &'a str,
    all_hold: bool,
    #[serde(flatten)]
    check: &'a FigureCheck,
}

fn figure_table(check: &FigureCheck, source: &str) -> TableView {
    let rows = &check.claims;
    let column = |heading: &str, cell: &dyn Fn((usize, &CheckedClaim)) -> String| {
        ColumnView::figures(heading, rows.iter().enumerate().map(cell))
    };
    let verdict = |(at, claim): (usize, &CheckedClaim)| {
        let number = check.groups.iter().position(|group| group.figures.contains(&at));
        match (claim.verdict, number) {
            (ClaimVerdict::Explained, Some(number)) => format!("explained by {}", number + 1),
            (verdict, _) => verdict.word().to_owned(),
        }
    };
    let off = |(_, claim): (usize, &CheckedClaim)| match (claim.off, claim.recomputed) {
        (Some(off), Some(recomputed)) if recomputed != 0.0 => format!("{} %", signed(off / recomputed * 100.0)),
        _ => String::new(),
    };
    let columns = vec![
        column("published", &|(_, claim)| figure_words(claim, claim.published, 0)),
        column("recomputed", &|(_, claim)| claim.recomputed.map_or_else(|| ABSENT.into(), |value| shown(claim, value))),
        column("off", &off),
        column("verdict", &verdict),
    ];
    let lost = if check.lost > 0 { format!(", {} lost", grouped(check.lost)) } else { String::new() };
    TableView {
        title: format!("published values of {source}"),
        note: format!("n {}{lost}", grouped(check.answered)),
        rows: rows.iter().map(|claim| RowView::of(&claim.figure)).collect(),
        groups: vec![GroupView::plain(columns)],
        ..TableView::default()
    }
}

/// A value in the unit of its claim, with the published decimals and `more`, unless it is a count.
fn figure_words(claim: &CheckedClaim, value: f64, more: usize) -> String {
    let stated = &claim.stated;
    let is_count = claim.scale == 1.0 && value.fract() == 0.0 && stated.decimals == 0;
    let decimals = stated.decimals + if is_count { 0 } else { more };
    let number = format!("{:.decimals$}", value / claim.scale).replace('-', "−");
    match stated.unit {
        None => number,
        Some(PublishedUnit::Percent) => format!("{number} %"),
        Some(PublishedUnit::Time(unit)) => format!("{number} {}", unit.symbol()),
    }
}

/// A computed value, with a digit more than is published, and a second one where digits are cut off.
fn shown(claim: &CheckedClaim, value: f64) -> String {
    let last_digits = (value - claim.published).abs() / claim.scale * 10_f64.powi(claim.stated.decimals as i32);
    figure_words(claim, value, if (0.500_001..1.0).contains(&last_digits) { 2 } else { 1 })
}

/// What is said below the table: each mistake, quantiles without support, and what is contradicted or inexact.
fn remarks(check: &FigureCheck) -> Vec<(String, String)> {
    let mut remarks: Vec<(String, String)> = Vec::new();
    for (number, group) in check.groups.iter().enumerate() {
        let label = if is_decisive(check, group) { format!("mistake {}", number + 1) } else { "possible".into() };
        remarks.push((label, group_words(check, group)));
    }
    let named = |is: &dyn Fn(&CheckedClaim) -> bool| {
        let names: Vec<String> = check.claims.iter().filter(|claim| is(claim)).map(|one| one.figure.clone()).collect();
        (!names.is_empty()).then(|| listed(&names))
    };
    let mut by_convention: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (claim, rule) in check.claims.iter().filter_map(|claim| Some((claim, claim.convention?))) {
        by_convention.entry(rule.sentence).or_default().push(claim.figure.clone());
    }
    let words = |(sentence, names): (&str, Vec<String>)| {
        ("convention".to_owned(), format!("{}: {sentence}, as in other tools", listed(&names)))
    };
    remarks.extend(by_convention.into_iter().map(words));
    let is_unexplained =
        |claim: &CheckedClaim| claim.verdict == ClaimVerdict::Contradicted && claim.reproduced.is_none();
    let tried = counted(check.tried, "combination");
    let rounded =
        "the values of the log have digits below 1 ns, which latlab rounds: that may decide the last digit of a claim";
    let sections = [
        ("no mistake", named(&is_unexplained).map(|names| format!("{names}: not one of {tried} has these digits"))),
        ("cut off", named(&|claim| claim.truncated).map(|names| format!("{names}: digits were cut off, not rounded"))),
        ("rounded", check.is_rounded.then(|| rounded.to_owned())),
    ];
    let support = check.claims.iter().filter_map(|claim| Some(("support", support_words(claim, check)?)));
    let said = sections.into_iter().filter_map(|(label, text)| Some((label, text?)));
    remarks.extend(support.chain(said).map(|(label, text)| (label.to_owned(), text)));
    remarks
}

/// Whether the claims of `group` have the verdict that it explains them, or that they lack support.
fn is_decisive(check: &FigureCheck, group: &ExplainedGroup) -> bool {
    group.figures.iter().any(|claim| check.claims[*claim].verdict != ClaimVerdict::Contradicted)
}

/// What was computed, with the figures that it reproduces, those that speak against it, and chance.
fn group_words(check: &FigureCheck, group: &ExplainedGroup) -> String {
    let sentences: Vec<&str> = group.mistakes.iter().map(|mistake| mistake.sentence).collect();
    let claims = group.figures.iter().map(|claim| &check.claims[*claim]);
    let figure = |claim: &CheckedClaim| Some(format!("{} {}", claim.figure, shown(claim, claim.reproduced?)));
    let figures: Vec<String> = claims.filter_map(figure).collect();
    let against: Vec<String> = group.against.iter().map(|claim| check.claims[*claim].figure.clone()).collect();
    let beside =
        if against.is_empty() { String::new() } else { format!("; {} would not hold with it", listed(&against)) };
    let chance =
        if group.chance < 0.001 { "less than 0.1 %".to_owned() } else { format!("about {}", percent(group.chance)) };
    let doubt = if is_decisive(check, group) { "" } else { ", too much for a verdict" };
    format!(
        "{}: {}{beside}; that one of {} fits by chance has a probability of {chance}{doubt}",
        sentences.join(", and "),
        listed(&figures),
        counted(check.tried, "combination"),
    )
}

/// On how few values a quantile rests.
fn support_words(claim: &CheckedClaim, check: &FigureCheck) -> Option<String> {
    let beyond = claim.beyond.filter(|_| !claim.supported)?;
    let place = match claim.recomputed {
        None if check.lost > 0 => format!(": it lies among the lost probes ({}), and is infinite", grouped(check.lost)),
        Some(_) if beyond < 1.0 => ": it is an extreme value, or next to one".into(),
        _ => String::new(),
    };
    let figure = significant(beyond);
    let beyond = if figure.contains('.') { figure.trim_end_matches('0').trim_end_matches('.') } else { &figure };
    let n = grouped(check.answered + check.lost);
    Some(format!("{} at n = {n} rests on {beyond} singletons, and 10 are needed{place}", claim.figure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::published::{Halving, PublishedData, check_figures, parse_claims};
    use crate::schemas;

    fn checked(data: &PublishedData, claims: &str) -> FigureCheck {
        check_figures(data, &parse_claims(claims).expect(claims), None).expect("units")
    }

    /// Round trips of 100,001 ns and so on, of which each third is the smallest.
    fn data() -> PublishedData {
        let value = |step: u32| if step.is_multiple_of(3) { 100_001 } else { 100_001 + step * 37 };
        let values = PublishedData::of_values((1..=3_000).map(|step| f64::from(value(step))), true);
        PublishedData { halving: Halving::Whole, knows_losses: true, ..values }
    }

    fn words(check: &FigureCheck) -> String {
        let text = text(check, "a.txt", Style::PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_table_has_each_figure_with_its_verdict_and_a_sentence_for_each_mistake() {
        let said = words(&checked(&data(), "min=50.001us mean=68.5005us n=3000 p99.99=1ms max=210.964us"));
        for part in [
            "published values of a.txt n 3,000",
            "n 3000 3000 holds",
            "min 50.001 µs 100.0010 µs −50.0 % explained by 1",
            "mistake 1 the values are of half the round trip, which is not a delay of one way: min 50.0005 µs and mean",
            "; max would not hold with it; that one of ",
            "p99.99 at n = 3,000 rests on 0.3 singletons, and 10 are needed: it is an extreme value, or next to one",
            "no mistake p99.99: not one of ",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let lossy = PublishedData { lost: 4, ..PublishedData::of_values((1..=496).map(f64::from), true) };
        let said = words(&checked(&lossy, "p99.9=50us"));
        assert!(said.contains("needed: it lies among the lost probes (4), and is infinite"), "{said}");
        let said = words(&checked(&data(), "p90=194.314us p95=202.639us"));
        let rule = "convention p90 and p95: quantiles are of type 1 (⌈qn⌉), as in other tools";
        assert!(said.contains("holds") && said.contains(rule) && !said.contains("mistake"), "{said}");
        let said = words(&checked(&PublishedData::of_values([1_000.0, 99_990.0], true), "max=99us"));
        assert!(said.contains("99.99 µs holds") && said.contains("cut off max: digits"), "{said}");
    }

    #[test]
    fn the_document_conforms_to_its_schema() {
        let conforms = |check: &FigureCheck| schemas::check("check-published", &json(check, "a.txt"));
        conforms(&checked(&data(), "min=50.001us mean=68us n=3000 p99.99=1ms p90=194.314us loss=0%"));
        let numbers = PublishedData { knows_losses: true, ..PublishedData::of_values([], false) };
        conforms(&checked(&numbers, "mean=1 n=0 lost=1"));
    }
}
