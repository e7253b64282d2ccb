//! Rendering of checked publications as text and as `latlab.check-published/1` (docs/schemas/check-published-1.json).

use serde::Serialize;
use serde_json::{Value, json};

use super::comparison::{quantity_change, undecided_reason};
use super::json::pretty;
use super::text::{Style, draw_table, labelled, wrap};
use super::view::{ColumnView, GroupView, RowView, TableView};
use crate::analysis::comparison::{Comparison, Effect, UndecidedReason};
use crate::analysis::published::{
    CheckedClaim, CheckedOrder, ClaimVerdict, ExplainedGroup, FigureCheck, PublishedUnit, StretchPlace, UndecidedClaim,
};
use crate::units::human::{ABSENT, counted, grouped, listed, percent, signed, significant, span};

#[derive(Debug)]
pub struct PublicationReport {
    /// Path of the sample, or the names of the groups.
    pub source: String,
    /// The figures of a sample; `None` if orders of groups were checked.
    pub figures: Option<FigureCheck>,
    pub orders: Vec<CheckedOrder>,
}

impl PublicationReport {
    /// Whether everything that is published holds.
    pub fn all_hold(&self) -> bool {
        self.figures.iter().all(FigureCheck::all_hold) && self.orders.iter().all(|order| order.holds == Some(true))
    }

    /// Renders what is judged as text, each line with its newline.
    pub fn text(&self, style: Style) -> String {
        let mut lines: Vec<String> = Vec::new();
        if let Some(check) = self.figures.as_ref().filter(|check| !check.claims.is_empty()) {
            lines.extend(draw_table(&figure_table(check, &self.source), style));
            lines.extend(remarks(check).iter().flat_map(|(label, text)| labelled(label, "", text, style)));
        }
        if !self.orders.is_empty() {
            lines.extend(wrap(&format!("published orders of {}", self.source), style.width));
            lines.extend(
                self.orders.iter().flat_map(|order| labelled(order_verdict(order), "", &order_words(order), style)),
            );
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Renders the JSON document with a final newline.
    pub fn json(&self) -> String {
        let figures = self.figures.as_ref();
        pretty(&PublicationDocument {
            schema: "latlab.check-published/1",
            source: &self.source,
            all_hold: self.all_hold(),
            answered: figures.map(|check| check.answered),
            lost: figures.filter(|check| check.knows_losses).map(|check| check.lost),
            figures: figures.map_or(&[], |check| &check.claims),
            mistakes: figures.map_or(&[], |check| &check.groups),
            undecided: figures.map_or(&[], |check| &check.undecided),
            hypotheses: figures.map(|check| check.tried),
            stretch_ns: figures.and_then(|check| check.stretch).map(|stretch| stretch.0),
            rounded: figures.map(|check| check.is_rounded),
            orders: self.orders.iter().map(order_document).collect(),
        })
    }
}

#[derive(Serialize)]
struct PublicationDocument<'a> {
    schema: &'static str,
    source: &'a str,
    all_hold: bool,
    answered: Option<u64>,
    lost: Option<u64>,
    figures: &'a [CheckedClaim],
    mistakes: &'a [ExplainedGroup],
    undecided: &'a [UndecidedClaim],
    hypotheses: Option<usize>,
    stretch_ns: Option<i64>,
    rounded: Option<bool>,
    orders: Vec<Value>,
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
        title: format!("published figures of {source}"),
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

/// What is said below the table: each mistake, what is contradicted, quantiles without support, and a time-out's stretch.
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
    let is_unexplained =
        |claim: &CheckedClaim| claim.verdict == ClaimVerdict::Contradicted && claim.explanations.is_empty();
    let tried = counted(check.tried, "combination");
    let within = named(&|claim| claim.stretch == Some(StretchPlace::Values));
    let between = named(&|claim| claim.stretch == Some(StretchPlace::Difference));
    let stretch = check.stretch.map(span).unwrap_or_default();
    let cause = format!("select(2) may wake {stretch} late, 0.1 % of the interval, and clock_nanosleep(2) does not");
    let rounded =
        "the values of the log have digits below 1 ns, which latlab rounds: that may decide the last digit of a claim";
    let sections = [
        ("no mistake", named(&is_unexplained).map(|names| format!("{names}: not one of {tried} has these digits"))),
        ("cut off", named(&|claim| claim.truncated).map(|names| format!("{names}: digits were cut off, not rounded"))),
        ("rounded", check.is_rounded.then(|| rounded.to_owned())),
        ("time-out", within.map(|names| format!("every value is so long that it can be a part of {names}: {cause}"))),
        ("time-out", between.map(|names| format!("{names} exceed the data by about a time-out's stretch: {cause}"))),
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
    let claims = || group.figures.iter().map(|claim| &check.claims[*claim]);
    let figure =
        |claim: &CheckedClaim| Some(format!("{} {}", claim.figure, shown(claim, claim.explanations.first()?.value)));
    let figures: Vec<String> = claims().filter_map(figure).collect();
    let against: Vec<String> = group.against.iter().map(|claim| check.claims[*claim].figure.clone()).collect();
    let beside =
        if against.is_empty() { String::new() } else { format!("; {} would not hold with it", listed(&against)) };
    let chance =
        if group.chance < 0.001 { "less than 0.1 %".to_owned() } else { format!("about {}", percent(group.chance)) };
    let doubt = if is_decisive(check, group) { "" } else { ", too much for a verdict" };
    let mut others: Vec<String> = claims()
        .flat_map(|claim| claim.explanations.iter().skip(1))
        .map(|other| other.mistakes.join(" with "))
        .collect();
    others.dedup();
    let others =
        if others.is_empty() { String::new() } else { format!("; the same digits come from: {}", others.join("; ")) };
    format!(
        "{}: {}{beside}; that one of {} fits by chance has a probability of {chance}{doubt}{others}",
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

const fn order_verdict(order: &CheckedOrder) -> &'static str {
    match order.holds {
        Some(true) => "holds",
        Some(false) => "contradicted",
        None => "undecided",
    }
}

/// The order with its difference, what the medians show, and why it is not decided.
fn order_words(order: &CheckedOrder) -> String {
    let claim = &order.claim;
    let difference = match order.comparison.difference {
        Some(_) => format!("{} is {} against {}", claim.greater, quantity_change(&order.comparison), claim.lesser),
        None => "no difference can be computed".into(),
    };
    let because = match order.holds {
        Some(true) => String::new(),
        Some(false) => "; the proven difference has the other direction".into(),
        None => {
            let reason = reason_words(&order.comparison).map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("; these data do not decide{reason}")
        }
    };
    let medians = match order.medians_agree() {
        Some(false) => "; the medians have the other order",
        _ => "",
    };
    format!("{}: {difference}{because}{medians}", claim.text)
}

/// Why a comparison is undecided. What the options of `latlab compare` could add is left out.
fn reason_words(row: &Comparison) -> Option<String> {
    match row.undecided? {
        UndecidedReason::Unsure { .. } => Some("no difference is proven".into()),
        _ => undecided_reason(row),
    }
}

fn order_document(order: &CheckedOrder) -> Value {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let effect = |effect: Effect| {
        let (low, high) = (effect.interval.low.and_then(finite), effect.interval.high.and_then(finite));
        json!({ "value": finite(effect.value), "low": low, "high": high, "confidence": effect.interval.confidence })
    };
    let row = &order.comparison;
    json!({
        "claim": order.claim.text,
        "greater": order.claim.greater,
        "lesser": order.claim.lesser,
        "verdict": order_verdict(order),
        "difference": row.difference.map(effect),
        "relative": row.relative.map(effect),
        "p_value": row.p_value,
        "reason": row.undecided.map(|reason| reason.code()),
        "medians_agree": order.medians_agree(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::comparison::{ComparisonRequest, NumberFiles, RunGroups};
    use crate::analysis::published::{Halving, PublishedData, StatedClaims, check_figures, check_orders};
    use crate::schemas;
    use crate::units::Nanos;

    fn stated(text: &str) -> StatedClaims {
        let mut stated = StatedClaims::default();
        stated.add(text).expect(text);
        stated
    }

    fn report(data: &PublishedData, claims: &str) -> PublicationReport {
        let figures = check_figures(data, &stated(claims).figures, None).expect("units");
        PublicationReport { source: "a.txt".into(), figures: Some(figures), orders: Vec::new() }
    }

    /// Round trips of 100,001 ns and so on, of which each third is the smallest.
    fn data() -> PublishedData {
        let value = |step: u32| if step.is_multiple_of(3) { 100_001 } else { 100_001 + step * 37 };
        let values = PublishedData::of_values((1..=3_000).map(|step| f64::from(value(step))), true);
        PublishedData { halving: Halving::Whole, knows_losses: true, ..values }
    }

    fn text(report: &PublicationReport) -> String {
        let text = report.text(Style::PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_table_has_each_figure_with_its_verdict_and_a_sentence_for_each_mistake() {
        let said = text(&report(&data(), "min=50.001us mean=68.5005us n=3000 p99.99=1ms max=210.964us"));
        for part in [
            "published figures of a.txt n 3,000",
            "n 3000 3000 holds",
            "min 50.001 µs 100.0010 µs −50.0 % explained by 1",
            "mistake 1 the figures are of half the round trip, which is not a delay of one way: min 50.0005 µs and mean",
            "; max would not hold with it; that one of ",
            "p99.99 at n = 3,000 rests on 0.3 singletons, and 10 are needed: it is an extreme value, or next to one",
            "no mistake p99.99: not one of ",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let lossy = PublishedData { lost: 4, ..PublishedData::of_values((1..=496).map(f64::from), true) };
        let said = text(&report(&lossy, "p99.9=50us"));
        assert!(said.contains("needed: it lies among the lost probes (4), and is infinite"), "{said}");
        let said = text(&report(&PublishedData::of_values([1_000.0, 99_990.0], true), "max=99us"));
        assert!(said.contains("99.99 µs holds") && said.contains("cut off max: digits"), "{said}");
    }

    #[test]
    fn the_document_conforms_to_its_schema() {
        schemas::check("check-published", &report(&data(), "min=50.001us mean=68us n=3000 p99.99=1ms").json());
        let asleep = PublishedData { sleep: Some(Nanos::from_millis(60)), halving: Halving::NotRoundTrip, ..data() };
        let slept = report(&asleep, "mean=137.004us max=1us loss=0%");
        schemas::check("check-published", &slept.json());
        assert!(slept.text(Style::PLAIN).contains("select(2) may wake 60 µs late"));
        let empty = PublishedData::of_values([], false);
        schemas::check("check-published", &report(&empty, "mean=1 n=0 lost=1").json());
        schemas::check("check-published", &orders().json());
    }

    fn orders() -> PublicationReport {
        let group =
            |name: &str, values: &[f64]| NumberFiles { name: name.into(), files: vec![(name.into(), values.to_vec())] };
        let groups = RunGroups::of_numbers(vec![
            group("a", &[5.0, 6.0, 5.5, 5.7, 6.1, 5.2]),
            group("b", &[5.1, 6.2, 5.4, 5.9, 6.3, 5.3]),
            group("c", &[9.0, 9.9, 9.3, 9.1, 9.8, 9.7]),
        ]);
        let claims = stated("a > b c > a a > c").orders;
        let orders = check_orders(&groups.expect("groups"), &ComparisonRequest::of_values(None), &claims, 0.95);
        PublicationReport { source: "a, b and c".into(), figures: None, orders: orders.expect("groups") }
    }

    #[test]
    fn an_order_is_shown_with_its_difference() {
        let report = orders();
        let said = text(&report);
        for part in
            ["undecided a > b: a is", "the medians have the other order", "holds c > a: c is", "contradicted a > c"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!report.all_hold());
    }
}
