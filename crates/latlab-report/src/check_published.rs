//! Rendering of checked publications as text and as `latlab.check-published/1` (docs/schemas/check-published-1.json).

use serde::Serialize;
use serde_json::{Value, json};

use super::comparison::{quantity_change, undecided_reason};
use super::json::pretty;
use super::text::{Style, draw_table, labelled, wrap};
use super::view::{ColumnView, GroupView, RowView, TableView};
use crate::analysis::comparison::{Comparison, Effect, UndecidedReason};
use crate::analysis::published::{
    CheckedClaim, CheckedOrder, ClaimVerdict, ExplainedGroup, Explanation, FigureCheck, OrderVerdict, PublishedFigure,
    StretchPlace, UndecidedClaim, ValueScale,
};
use crate::units::human::{ABSENT, TimeUnit, counted, grouped, listed, percent, signed, significant, span};

#[derive(Clone, Debug, PartialEq)]
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
        self.figures.iter().all(FigureCheck::all_hold)
            && self.orders.iter().all(|order| order.verdict == OrderVerdict::Holds)
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
                self.orders.iter().flat_map(|order| labelled(order.verdict.word(), "", &order_words(order), style)),
            );
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Renders the JSON document with a final newline.
    pub fn json(&self) -> String {
        let figures = self.figures.as_ref();
        let scale = figures.map_or(ValueScale::NANOS, |check| check.scale);
        pretty(&PublicationDocument {
            schema: "latlab.check-published/1",
            source: &self.source,
            all_hold: self.all_hold(),
            answered: figures.map(|check| check.answered),
            lost: figures.filter(|check| check.knows_losses).map(|check| check.lost),
            figures: figures.iter().flat_map(|check| &check.claims).map(|claim| claim_document(claim, scale)).collect(),
            mistakes: figures.iter().flat_map(|check| &check.groups).map(group_document).collect(),
            undecided: figures.iter().flat_map(|check| &check.undecided).map(undecided_document).collect(),
            hypotheses: figures.map(|check| check.tried),
            stretch_ns: figures.and_then(|check| check.stretch).map(|stretch| stretch.0),
            orders: self.orders.iter().map(order_document).collect(),
        })
    }
}

fn figure_table(check: &FigureCheck, source: &str) -> TableView {
    let rows = &check.claims;
    let column = |heading: &str, cell: &dyn Fn(&CheckedClaim) -> String| ColumnView {
        heading: heading.into(),
        cells: rows.iter().map(cell).collect(),
    };
    let verdict = |claim: &CheckedClaim| {
        let number = check.groups.iter().position(|group| is_explained_by(claim, group));
        match (claim.verdict, number) {
            (ClaimVerdict::Explained, Some(number)) => format!("explained by {}", number + 1),
            (verdict, _) => verdict.word().to_owned(),
        }
    };
    let columns = vec![
        column("published", &|claim| figure_words(claim, claim.published, 0)),
        column("recomputed", &|claim| claim.recomputed.map_or_else(|| ABSENT.into(), |value| shown(claim, value))),
        column("off", &off_words),
        column("verdict", &verdict),
    ];
    let lost = if check.lost > 0 { format!(", {} lost", grouped(check.lost)) } else { String::new() };
    TableView {
        title: format!("published figures of {source}"),
        note: format!("n {}{lost}", grouped(check.answered)),
        rows: rows.iter().map(|claim| RowView { label: claim.claim.figure.name(), quiet: false }).collect(),
        groups: vec![GroupView { heading: String::new(), columns }],
        ..TableView::default()
    }
}

/// Whether the figures of `group` are of this claim.
fn is_explained_by(claim: &CheckedClaim, group: &ExplainedGroup) -> bool {
    claim.explanations.first().is_some_and(|explanation| explanation.hypothesis == group.hypothesis)
}

/// A value in the unit of its claim, with the published decimals and `more`, unless it is a count.
fn figure_words(claim: &CheckedClaim, value: f64, more: u32) -> String {
    let published = &claim.claim.published;
    let is_count = claim.ticks == 1.0 && value.fract() == 0.0 && published.decimals == 0;
    let decimals = published.decimals + if is_count { 0 } else { more };
    let number = format!("{:.*}", decimals as usize, value / claim.ticks).replace('-', "−");
    let unit = published.text.trim_start_matches(|char: char| !char.is_alphabetic() && char != '%');
    format!("{number} {unit}").trim_end().replace("us", "µs")
}

/// A computed value, with the decimals that show whether it has the published digits.
fn shown(claim: &CheckedClaim, value: f64) -> String {
    figure_words(claim, value, claim.further_decimals(value))
}

/// By how much the published figure is off, if it does not have the right digits.
fn off_words(claim: &CheckedClaim) -> String {
    let Some(recomputed) = claim.recomputed.filter(|_| is_off(claim)) else { return String::new() };
    match recomputed == 0.0 {
        true => String::new(),
        false => format!("{} %", signed((claim.published / recomputed - 1.0) * 100.0)),
    }
}

fn is_off(claim: &CheckedClaim) -> bool {
    match claim.verdict {
        ClaimVerdict::Holds => false,
        ClaimVerdict::Unsupported => !claim.explanations.is_empty(),
        ClaimVerdict::Explained | ClaimVerdict::Contradicted => true,
    }
}

/// What is said below the table: each mistake, what is contradicted, quantiles without support, and a time-out's stretch.
fn remarks(check: &FigureCheck) -> Vec<(String, String)> {
    let mut remarks: Vec<(String, String)> = Vec::new();
    for (number, group) in check.groups.iter().enumerate() {
        let label = if is_decisive(check, group) { format!("mistake {}", number + 1) } else { "possible".into() };
        remarks.push((label, group_words(check, group)));
    }
    let mut say = |label: &str, texts: Vec<String>| {
        remarks.extend(
            texts.into_iter().enumerate().map(|(at, text)| (if at == 0 { label.into() } else { String::new() }, text)),
        );
    };
    let unexplained = check
        .claims
        .iter()
        .filter(|claim| claim.verdict == ClaimVerdict::Contradicted && claim.explanations.is_empty());
    say("no mistake", unexplained.map(|claim| unexplained_words(claim, check.tried)).collect());
    say("support", check.claims.iter().filter_map(|claim| support_words(claim, check)).collect());
    let cut: Vec<String> =
        check.claims.iter().filter(|claim| claim.is_truncated).map(|claim| claim.claim.figure.name()).collect();
    say(
        "cut off",
        (!cut.is_empty())
            .then(|| format!("{}: digits were cut off instead of rounded", listed(&cut)))
            .into_iter()
            .collect(),
    );
    say("time-out", stretch_words(check).into_iter().collect());
    remarks
}

/// Whether the claims of `group` have the verdict that it explains them, or that they lack support.
fn is_decisive(check: &FigureCheck, group: &ExplainedGroup) -> bool {
    group.claims.iter().any(|claim| check.claims[*claim].verdict != ClaimVerdict::Contradicted)
}

fn names(check: &FigureCheck, claims: &[usize]) -> String {
    listed(&claims.iter().map(|claim| check.claims[*claim].claim.figure.name()).collect::<Vec<_>>())
}

/// What was computed, with the figures that it reproduces, those that speak against it, and chance.
fn group_words(check: &FigureCheck, group: &ExplainedGroup) -> String {
    let sentences: Vec<String> = group.hypothesis.mistakes.iter().map(|mistake| mistake.sentence()).collect();
    let evidence: Vec<String> = group
        .claims
        .iter()
        .filter_map(|claim| {
            let claim = &check.claims[*claim];
            let own = claim.explanations.iter().find(|one| one.hypothesis == group.hypothesis)?;
            Some(format!("{} {}", claim.claim.figure.name(), shown(claim, own.computed)))
        })
        .collect();
    let holding = check.claims.iter().filter(|claim| claim.verdict == ClaimVerdict::Holds).count();
    let beside = match (group.against.as_slice(), holding) {
        ([], 0) => String::new(),
        ([], _) => "; the figures that hold are the same with it".into(),
        (against, _) => format!("; {} would not hold with it", names(check, against)),
    };
    let chance = match group.chance {
        chance if chance < 0.001 => "less than 0.1 %".to_owned(),
        chance => format!("about {}", percent(chance)),
    };
    let doubt = if is_decisive(check, group) { "" } else { ", too much for a verdict" };
    let uncounted = match group.uncounted.as_slice() {
        [] => String::new(),
        uncounted => format!(", counted without {}", names(check, uncounted)),
    };
    let others: Vec<String> = group.claims.iter().flat_map(|claim| other_titles(&check.claims[*claim])).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!("; the same digits come from: {}", others.join("; ")),
    };
    format!(
        "{}: {}{beside}; that one of {} fits by chance has a probability of {chance}{uncounted}{doubt}{others}",
        sentences.join(", and "),
        listed(&evidence),
        counted(check.tried, "combination"),
    )
}

/// The titles of the hypotheses that also reproduce a claim.
fn other_titles(claim: &CheckedClaim) -> Vec<String> {
    claim.explanations.iter().skip(1).map(|other| other.hypothesis.title()).collect()
}

fn unexplained_words(claim: &CheckedClaim, tried: usize) -> String {
    let name = claim.claim.figure.name();
    let nearest = |nearest: &Explanation| {
        format!("; the nearest, {}, gives {}", nearest.hypothesis.title(), shown(claim, nearest.computed))
    };
    let nearest = claim.nearest.as_ref().map(nearest).unwrap_or_default();
    let lost = if claim.recomputed.is_none() { "; the correct figure does not exist, or is infinite" } else { "" };
    format!("{name}: not one of {} has its digits{lost}{nearest}", counted(tried, "combination"))
}

/// On how few values a quantile rests, and where it lies.
fn support_words(claim: &CheckedClaim, check: &FigureCheck) -> Option<String> {
    let beyond = claim.beyond.filter(|_| !claim.is_supported)?;
    let is_upper = matches!(claim.claim.figure, PublishedFigure::Quantile(q) if q > 0.5);
    let place = match claim.recomputed {
        None if check.lost > 0 => {
            format!(": it lies among the lost probes ({}), and is infinite", grouped(check.lost))
        }
        Some(_) if beyond < 1.0 && is_upper => ": it is the maximum, or lies between the two largest".into(),
        Some(_) if beyond < 1.0 => ": it is the minimum, or lies between the two smallest".into(),
        _ => String::new(),
    };
    let name = claim.claim.figure.name();
    let figure = significant(beyond);
    let beyond = if figure.contains('.') { figure.trim_end_matches('0').trim_end_matches('.') } else { &figure };
    let n = grouped(check.answered + check.lost);
    Some(format!("{name} at n = {n} rests on {beyond} singletons, and 10 are needed{place}"))
}

fn stretch_words(check: &FigureCheck) -> Option<String> {
    let stretch = span(check.stretch?);
    let at = |place| {
        let own = check.claims.iter().enumerate().filter(|(_, claim)| claim.stretch == Some(place));
        own.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (within, between) = (at(StretchPlace::InValues), at(StretchPlace::InDifference));
    let cause = format!("select(2) may wake {stretch} late, 0.1 % of the interval, and clock_nanosleep(2) does not");
    Some(match (within.as_slice(), between.as_slice()) {
        (within, []) => {
            format!("every value is that long or longer, so that it can be a part of {}: {cause}", names(check, within))
        }
        (_, between) => {
            format!("{} exceed the data by about as much as a time-out is stretched: {cause}", names(check, between))
        }
    })
}

/// The order with its difference, what the medians show, and why it is not decided.
fn order_words(order: &CheckedOrder) -> String {
    let claim = &order.claim;
    let difference = match order.comparison.difference {
        Some(_) => format!("{} is {} against {}", claim.greater, quantity_change(&order.comparison), claim.lesser),
        None => "no difference can be computed".into(),
    };
    let because = match order.verdict {
        OrderVerdict::Holds => String::new(),
        OrderVerdict::Contradicted => "; the proven difference has the other direction".into(),
        OrderVerdict::Undecided => {
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

#[derive(Serialize)]
struct PublicationDocument<'a> {
    schema: &'static str,
    source: &'a str,
    all_hold: bool,
    answered: Option<u64>,
    lost: Option<u64>,
    figures: Vec<Value>,
    mistakes: Vec<Value>,
    undecided: Vec<Value>,
    hypotheses: Option<usize>,
    stretch_ns: Option<i64>,
    orders: Vec<Value>,
}

/// A figure in ns, or in the unit of plain numbers; counts and shares as they are.
fn in_unit(claim: &CheckedClaim, value: f64, scale: ValueScale) -> f64 {
    match claim.claim.figure.is_of_values() {
        true => value / scale.ticks(TimeUnit::Nanos),
        false => value,
    }
}

fn claim_document(claim: &CheckedClaim, scale: ValueScale) -> Value {
    let value = |value: f64| in_unit(claim, value, scale);
    let explanation = |one: &Explanation| {
        let codes: Vec<String> = one.hypothesis.mistakes.iter().map(|mistake| mistake.code()).collect();
        json!({ "mistakes": codes, "value": value(one.computed) })
    };
    let off = claim.recomputed.filter(|_| is_off(claim)).map(|recomputed| value(claim.published) - value(recomputed));
    json!({
        "claim": claim.claim.text,
        "figure": claim.claim.figure.name(),
        "unit": match (claim.claim.figure.is_of_values(), scale) {
            (true, ValueScale::Time(_)) => Some("ns"),
            _ => None,
        },
        "published": value(claim.published),
        "recomputed": claim.recomputed.map(value),
        "off": off,
        "verdict": claim.verdict.word(),
        "truncated": claim.is_truncated,
        "supported": claim.is_supported,
        "beyond": claim.beyond,
        "explanations": claim.explanations.iter().map(explanation).collect::<Vec<_>>(),
        "nearest": claim.nearest.as_ref().map(explanation),
        "stretch": claim.stretch.map(|place| match place {
            StretchPlace::InValues => "values",
            StretchPlace::InDifference => "difference",
        }),
    })
}

fn undecided_document(undecided: &UndecidedClaim) -> Value {
    let ([reason, sentence, _], claim) = (undecided.reason.words(), &undecided.claim);
    json!({ "claim": claim.text, "figure": claim.figure.name(), "reason": reason, "sentence": sentence })
}

fn group_document(group: &ExplainedGroup) -> Value {
    let mistakes = group.hypothesis.mistakes.iter().map(|mistake| {
        json!({ "code": mistake.code(), "convention": mistake.is_convention(), "sentence": mistake.sentence() })
    });
    json!({
        "mistakes": mistakes.collect::<Vec<_>>(),
        "figures": group.claims,
        "against": group.against,
        "chance": group.chance,
        "uncounted": group.uncounted,
    })
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
        "verdict": order.verdict.word(),
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
    use crate::report::schemas;
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
        let values = (1..=3_000_i64).map(|step| if step % 3 == 0 { 100_001 } else { 100_001 + step * 37 });
        let values = PublishedData::of_values(values.collect(), ValueScale::NANOS);
        PublishedData { halving: Halving::Whole, knows_losses: true, ..values }
    }

    fn lines(report: &PublicationReport) -> Vec<String> {
        let text = report.text(Style::PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_has_each_figure_with_its_verdict_and_a_sentence_for_each_mistake() {
        let report = report(&data(), "min=50.001us mean=68.5005us n=3000 p99.99=1ms max=210.964us");
        let text = lines(&report);
        assert_eq!(text[0], "published figures of a.txt                                               n 3,000");
        let row = |label: &str| {
            let found = text.iter().find(|line| line.trim_start().starts_with(label));
            found.unwrap_or_else(|| panic!("{label}: {text:#?}")).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("n "), "n 3000 3000 holds");
        assert_eq!(row("min "), "min 50.001 µs 100.0010 µs −50.0 % explained by 1", "{text:#?}");
        assert!(row("mean ").ends_with("−50.0 % explained by 1"), "{text:#?}");
        assert!(row("p99.99 ").ends_with("contradicted"));
        let all = text.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "mistake 1 the figures are of half the round trip, which is not a delay of one way: min 50.0005 µs and mean",
            "; max would not hold with it; that one of 127 combinations",
            "p99.99 at n = 3,000 rests on 0.3 singletons, and 10 are needed: it is the maximum, or lies between",
            "no mistake p99.99: not one of",
        ] {
            assert!(all.contains(part), "{part}: {text:#?}");
        }
    }

    fn text(report: &PublicationReport) -> String {
        lines(report).join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_quantile_without_support_has_its_place() {
        let lossy = PublishedData { lost: 4, ..PublishedData::of_values((1..=496).collect(), ValueScale::NANOS) };
        let said = text(&report(&lossy, "p99.9=50us"));
        assert!(said.contains("needed: it lies among the lost probes (4), and is infinite"), "{said}");
        assert!(!said.contains("maximum, or lies"), "{said}");
        let said = text(&report(&lossy, "p98.5=490ns"));
        assert!(said.contains("rests on 7.5 singletons, and 10 are needed"), "{said}");
        let said = text(&report(&data(), "p0.01=100.001us p99.99=210us"));
        for place in ["it is the minimum, or lies between the two smallest", "it is the maximum, or lies between"] {
            assert!(said.contains(place), "{said}");
        }
    }

    #[test]
    fn an_explanation_shows_the_digits_that_it_explains() {
        let steps = |n: i64| PublishedData {
            halving: Halving::NotRoundTrip,
            ..PublishedData::of_values((1..=n).map(|step| 1_000 * step).collect(), ValueScale::NANOS)
        };
        let said = text(&report(&steps(100), "max=99us"));
        assert!(said.contains("p99: max 99.0 µs"), "{said}");
        // p99.9 is 99.901, which is cut off to 99.90.
        let said = text(&report(&steps(100), "max=99.90us"));
        assert!(said.contains("p99.9: max 99.901 µs"), "{said}");
        let said = text(&report(&PublishedData::of_values(vec![1_000, 99_990], ValueScale::NANOS), "max=99us"));
        assert!(said.contains("99.99 µs holds"), "{said}");
    }

    #[test]
    fn the_document_conforms_to_its_schema() {
        schemas::check("check-published", &report(&data(), "min=50.001us mean=68us n=3000 p99.99=1ms").json());
        let asleep = PublishedData { sleep: Some(Nanos::from_millis(60)), halving: Halving::NotRoundTrip, ..data() };
        let slept = report(&asleep, "mean=137.004us max=1us loss=0%");
        schemas::check("check-published", &slept.json());
        assert!(slept.text(Style::PLAIN).contains("select(2) may wake 60 µs late"));
        let empty = PublishedData::of_values(Vec::new(), ValueScale::Plain(3));
        schemas::check("check-published", &report(&empty, "mean=1 n=0").json());
        let unstated = PublishedData { knows_losses: false, ..data() };
        for (data, lost) in [(data(), json!(0)), (unstated, Value::Null)] {
            let document = report(&data, "n=3000").json();
            schemas::check("check-published", &document);
            assert_eq!(serde_json::from_str::<Value>(&document).expect("a document")["lost"], lost, "{document}");
        }
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
        let text = lines(&report).join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for part in
            ["undecided a > b: a is", "the medians have the other order", "holds c > a: c is", "contradicted a > c"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!report.all_hold());
    }
}
