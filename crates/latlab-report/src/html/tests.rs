use super::{PageView, TextBlock, page};
use crate::diagnostics::Severity;
use crate::report::comparison::{ChangeView, ComparisonView, ContrastView};
use crate::report::figure::axis::{Axis, AxisUnit, Scale};
use crate::report::figure::{Figure, Mark, Series, Shape};
use crate::report::html::HostFactsView;
use crate::report::view::{CaveatView, ColumnView, GroupView, RemarkView, RowView, TableView};

const HOSTILE: &str = "</title><script>alert('1')</script>\" onload=\"x";

fn column(heading: &str, cells: &[&str]) -> ColumnView {
    ColumnView { heading: heading.into(), cells: cells.iter().map(|cell| (*cell).to_owned()).collect() }
}

fn table(title: &str, rows: &[(&str, bool)], columns: Vec<ColumnView>) -> TableView {
    let row = |(label, quiet): &(&str, bool)| RowView { label: (*label).into(), quiet: *quiet };
    TableView {
        title: title.into(),
        rows: rows.iter().map(row).collect(),
        groups: vec![GroupView { heading: String::new(), columns }],
        ..TableView::default()
    }
}

fn caveat(message: &str, severity: Severity) -> CaveatView {
    CaveatView { severity, is_routine: false, message: message.into(), effect: "wide".into(), hint: "wait".into() }
}

fn figure(title: &str) -> Figure {
    let axis = |label: &str| Axis::new(label, Scale::Linear(0.0, 2.0), AxisUnit::Count);
    Figure {
        name: "tail".into(),
        title: title.into(),
        caption: title.into(),
        x: axis(title),
        y: axis("y"),
        series: vec![Series::new(title, 0, Shape::Points, vec![Mark::point(1.0, 1.0)])],
    }
}

fn comparison(text: &str) -> ComparisonView {
    let change = ChangeView {
        label: vec![text.into()],
        baseline: text.into(),
        candidate: text.into(),
        change: text.into(),
        verdict: text.into(),
        p: text.into(),
        reason: Some(text.into()),
        runs_needed: None,
        explanation: Some(text.into()),
    };
    ComparisonView {
        heading: text.into(),
        common: Some(text.into()),
        contrasts: vec![ContrastView { title: text.into(), rows: vec![change] }],
        shifts: Vec::new(),
        gates: vec![text.into()],
        means: None,
        footnotes: vec![text.into()],
        caveats: vec![caveat(text, Severity::Warning)],
    }
}

/// A page on which every text is `text`.
fn full(text: &str) -> PageView {
    let block = || vec![TextBlock { title: text.into(), text: text.into() }];
    let remark = || vec![RemarkView { label: text.into(), text: text.into() }];
    let table = || vec![table(text, &[(text, false)], vec![column(text, &[text])])];
    PageView {
        title: text.into(),
        question: text.into(),
        verdict: text.into(),
        gates: vec![text.into()],
        tables: table(),
        every_run: table(),
        texts: block(),
        comparisons: vec![comparison(text)],
        metric_of_tables: text.into(),
        metric_of_plots: text.into(),
        figures: vec![figure(text), figure(text)],
        without_plots: text.into(),
        caveats: vec![caveat(text, Severity::Warning), caveat("a note", Severity::Note)],
        remarks: remark(),
        hosts: vec![HostFactsView { name: text.into(), rows: remark() }],
        loads: table(),
        methods: vec![text.into()],
        reproduce: block(),
        recordings: vec![text.into()],
        made: text.into(),
    }
}

#[test]
fn texts_of_recordings_are_not_markup() {
    let page = page(&full(HOSTILE));
    let of_data = page.matches("<script type=\"application/json\"").count();
    assert_eq!(page.matches("<script").count(), 1 + of_data);
    assert!(page.contains("&lt;script&gt;alert('1')&lt;/script&gt;"));
    // The values for the script are JSON, in which a quotation mark ends nothing.
    let outside_of_json = page.replace("\\\" onload", "");
    assert!(!page.contains("alert('1')</script>") && !outside_of_json.contains("\" onload"));
}

#[test]
fn the_parts_are_in_order_and_each_has_an_entry_in_the_contents() {
    let page = page(&full("text"));
    let ids = ["results", "comparison", "plots", "caveats", "conditions", "methods", "reproduce"];
    let places = |form: fn(&str) -> String| ids.map(|id| page.find(&form(id)).unwrap_or(0));
    for places in [places(|id| format!("<section id=\"{id}\"")), places(|id| format!("href=\"#{id}\""))] {
        assert!(places[0] > 0 && places.is_sorted(), "{places:?}");
    }
    let first = |text: &str| page.find(text).unwrap_or(0);
    assert!(first("class=\"question\"") < first("class=\"verdict\"") && first("class=\"verdict\"") < first("<nav"));
}

#[test]
fn parts_without_content_are_left_out() {
    let page = page(&PageView { title: "empty".into(), ..PageView::default() });
    assert!(!page.contains("<section") && !page.contains("<footer") && !page.contains("class=\"verdict\""));
}

#[test]
fn a_page_without_plots_says_why() {
    let page = page(&PageView { without_plots: "all were lost".into(), ..PageView::default() });
    assert!(page.contains("<section id=\"plots\"") && page.contains("<p>all were lost</p>"));
}

#[test]
fn a_caveat_of_page_and_comparison_is_one_footnote_and_is_linked_from_the_verdict_unless_it_is_a_note() {
    let page = page(&full("slow"));
    assert_eq!(page.matches("id=\"caveat-").count(), 2);
    assert_eq!(page.matches("href=\"#caveat-").count(), 1);
}

#[test]
fn caveats_of_page_and_comparison_are_together_most_severe_first() {
    let caveats = vec![caveat("a note", Severity::Note), caveat("damage", Severity::Fatal)];
    let page = page(&PageView { caveats, ..full("slow") });
    let places =
        ["damage", "slow", "a note"].map(|text| page.find(&format!("{text}<div><span class=\"label\">effect")));
    assert!(places[0].is_some() && places.is_sorted(), "{places:?}");
    for (severity, number) in [("fatal", 1), ("warning", 2), ("note", 3)] {
        assert!(page.contains(&format!("<li id=\"caveat-{number}\" class=\"{severity}\">")), "{number}");
    }
}

#[test]
fn decimal_points_and_parentheses_are_aligned() {
    let cells = column("p50", &["48.71", "±0.2", "(5)", "none", "1210"]);
    let rows = [("a", false), ("", true), ("b", false), ("c", false), ("d", false)];
    let page = page(&PageView { tables: vec![table("t", &rows, vec![cells])], ..PageView::default() });
    for expected in [
        "<td data-pad=\")\">48.71</td>",
        "<td data-pad=\"0)\">±0.2</td>",
        "<td data-pad=\".00\">(5)</td>",
        "<td>none</td>",
        "<td data-pad=\".00)\">1210</td>",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
}

#[test]
fn every_run_is_in_a_closed_part_below_the_conditions() {
    let tables = |title: &str| vec![table(title, &[("row", false)], vec![column("p50", &["48.7"])])];
    let texts = vec![TextBlock { title: "spread".into(), text: "text".into() }];
    let page =
        page(&PageView { tables: tables("conditions"), every_run: tables("runs"), texts, ..PageView::default() });
    let places = ["conditions</strong>", "<details><summary>Every run</summary>", "runs</strong>", "spread"];
    let places = places.map(|part| page.find(part).unwrap_or_else(|| panic!("no {part}")));
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn each_line_of_a_legend_is_a_paragraph() {
    let lines = TableView { legend: "one\ntwo".into(), ..table("t", &[("row", false)], vec![column("p50", &["1"])]) };
    let page = page(&PageView { tables: vec![lines], ..PageView::default() });
    assert!(page.contains("<p class=\"note\">one</p><p class=\"note\">two</p>"));
}

#[test]
fn figures_of_the_same_name_have_different_ids() {
    let page = page(&full("text"));
    assert!(page.contains("id=\"figure-tail\"") && page.contains("id=\"figure-tail-2\""));
}

#[test]
fn ten_thousand_conditions_are_bounded_and_the_omission_is_said() {
    let rows = [("a condition with a name of ordinary length", false)].repeat(10_000);
    let columns = (0..12).map(|_| column("p50", &["48.7"].repeat(10_000))).collect();
    let view = PageView {
        tables: vec![table("conditions", &rows, columns)],
        caveats: (0..10_000).map(|number| caveat(&number.to_string(), Severity::Note)).collect(),
        recordings: vec!["path".into(); 10_000],
        methods: vec!["y".repeat(1_000_000)],
        ..PageView::default()
    };
    let page = page(&view);
    assert!(page.contains("The first 400 of 10,000 rows.") && page.contains("The first 200 of 10,000 recordings."));
    assert!(page.contains("The first 200 of 10,000 caveats."));
    assert!(page.len() < 300_000, "{}", page.len());
}

#[test]
fn rows_that_are_left_out_as_empty_are_not_counted() {
    let rows = [("a", false), ("", true)].repeat(300);
    let mut cells = ["4", ""].repeat(300);
    let of = |cells: &[&str]| {
        page(&PageView { tables: vec![table("t", &rows, vec![column("p50", cells)])], ..PageView::default() })
    };
    let whole = of(&cells);
    assert!(!whole.contains("The first ") && whole.matches("<th scope=\"row\">a</th>").count() == 300);
    // The alignment is that of the rows that are shown, of which this is the last one.
    cells[598] = "4.25";
    assert!(of(&cells).contains("<td data-pad=\".00\">4</td>"));
    cells[1..].fill("±0.2");
    assert!(of(&cells).contains("The first 400 of 600 rows."));
}

#[test]
fn the_note_about_means_stands_in_the_caption_alone() {
    let comparisons = vec![ComparisonView {
        means: Some("figures: means".into()),
        footnotes: vec!["figures: other".into(), "figures: means".into()],
        ..comparison("text")
    }];
    let page = page(&PageView { comparisons, ..PageView::default() });
    assert_eq!(page.matches("figures: means").count(), 1);
    assert!(page.contains("<span class=\"note\">figures: means</span>"));
    assert!(page.contains("<p class=\"note\">figures: other</p>"));
}

#[test]
fn many_tables_have_fewer_rows_each() {
    let columns = vec![column("p50", &["48.7"; 100])];
    let tables = vec![table("t", &[("row", false); 100], columns); 1_000];
    let page = page(&PageView { tables, ..PageView::default() });
    assert!(page.contains("The first 60 of 1,000 tables.") && page.contains("The first 20 of 100 rows."));
}
