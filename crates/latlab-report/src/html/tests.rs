use super::{PageSection, PageView, page};
use crate::diagnostics::Severity;
use crate::figure::axis::{Axis, AxisUnit, Scale};
use crate::figure::{Figure, Mark, Series, Shape};
use crate::view::{CaveatView, ColumnView, Part, RemarkView, RowView, TableView, TextBlock};

const HOSTILE: &str = "</title><script>alert('1')</script>\" onload=\"x";

fn column(cells: &[&str]) -> ColumnView {
    ColumnView::figures("p50", cells.iter().map(|cell| (*cell).to_owned()))
}

fn table(title: &str, rows: &[(&str, bool)], cells: &[&str]) -> TableView {
    let row = |(label, quiet): &(&str, bool)| RowView { quiet: *quiet, ..RowView::of(*label) };
    TableView::of(title, rows.iter().map(row).collect(), vec![column(cells)])
}

fn caveat(message: &str, severity: Severity) -> CaveatView {
    CaveatView { severity, effect: "wide".into(), hint: "wait".into(), ..CaveatView::warning(message.into()) }
}

fn figure(title: &str) -> Figure {
    let axis = |label: &str| Axis::new(label, Scale::Linear(0.0, 2.0), AxisUnit::Count);
    Figure {
        name: "tail".into(),
        title: title.into(),
        panels: Vec::new(),
        caption: title.into(),
        x: axis(title),
        y: axis("y"),
        series: vec![Series::new(title, 0, Shape::Points, vec![Mark::point(1.0, 1.0)])],
    }
}

fn of_parts(parts: Vec<Part>) -> String {
    let sections = vec![PageSection { id: "results", title: "Results", parts }];
    page(&PageView { sections, ..PageView::default() })
}

/// A page on which every text is `text`.
fn full(text: &str) -> String {
    let row =
        RowView { section: text.into(), levels: vec![text.into()], notes: vec![text.into()], ..RowView::of(text) };
    let words = TableView {
        note: text.into(),
        corner: text.into(),
        legend: text.into(),
        ..TableView::of(text, vec![row], vec![ColumnView::words(text, [text.to_owned()]), column(&[text])])
    };
    let parts = vec![
        Part::Heading(text.into()),
        Part::Notes(vec![text.into()]),
        Part::Table(words),
        Part::Text(TextBlock { title: text.into(), text: text.into() }),
        Part::Figure(figure(text)),
        Part::Figure(figure(text)),
        Part::Remarks(vec![RemarkView { label: text.into(), text: text.into() }]),
        Part::Caveats(vec![caveat(text, Severity::Warning), caveat("a note", Severity::Note)]),
        Part::Recordings { paths: vec![text.into()], of_store: false },
        Part::Details(text.into(), vec![Part::Table(table(text, &[(text, false)], &[text]))]),
    ];
    let section = |id, parts| PageSection { id, title: "title", parts };
    page(&PageView {
        title: text.into(),
        question: text.into(),
        verdict: text.into(),
        gates: vec![text.into()],
        sections: vec![
            section("results", parts),
            section("plots", Vec::new()),
            section("methods", vec![Part::Notes(vec![text.into()])]),
        ],
        made: text.into(),
    })
}

#[test]
fn texts_of_recordings_are_not_markup() {
    let page = full(HOSTILE);
    let of_data = page.matches("<script type=\"application/json\"").count();
    assert_eq!(page.matches("<script").count(), 1 + of_data);
    assert!(page.contains("&lt;script&gt;alert('1')&lt;/script&gt;"));
    // The values for the script are JSON, in which a quotation mark ends nothing.
    let outside_of_json = page.replace("\\\" onload", "");
    assert!(!page.contains("alert('1')</script>") && !outside_of_json.contains("\" onload"));
}

#[test]
fn sections_with_content_have_an_entry_in_the_contents() {
    let page = full("text");
    let places = |form: fn(&str) -> String| ["results", "methods"].map(|id| page.find(&form(id)).unwrap_or(0));
    for places in [places(|id| format!("<section id=\"{id}\"")), places(|id| format!("href=\"#{id}\""))] {
        assert!(places[0] > 0 && places.is_sorted(), "{places:?}");
    }
    assert!(!page.contains("id=\"plots\""));
    assert!(page.contains("id=\"figure-tail\"") && page.contains("id=\"figure-tail-2\""));
    assert_eq!(page.matches("href=\"#caveat-").count(), 1, "a note is not linked from the verdict");
}

#[test]
fn decimal_points_and_parentheses_are_aligned() {
    let rows = [("a", false), ("", true), ("b", false), ("c", false), ("d", false)];
    let page = of_parts(vec![Part::Table(table("t", &rows, &["48.71", "±0.2", "(5)", "none", "1210"]))]);
    for expected in [
        "style=\"--columns:13\"",
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
fn ten_thousand_conditions_are_bounded_and_the_omission_is_said() {
    let mut conditions =
        table("conditions", &[("a condition with a name of ordinary length", false)].repeat(10_000), &[]);
    conditions.groups[0].columns = vec![column(&["48.7"; 10_000]); 12];
    let page = of_parts(vec![
        Part::Table(conditions),
        Part::Caveats((0..10_000).map(|number| caveat(&number.to_string(), Severity::Note)).collect()),
        Part::Recordings { paths: vec!["path".into(); 10_000], of_store: true },
        Part::Notes(vec!["y".repeat(1_000_000)]),
    ]);
    for omitted in ["400 of 10,000 rows", "200 of 10,000 recordings", "200 of 10,000 caveats"] {
        assert!(page.contains(&format!("The first {omitted}.")), "{omitted}");
    }
    assert!(page.len() < 300_000, "{}", page.len());
    assert!(of_parts(vec![Part::Heading("a".into()); 100]).contains("The first 60 of 100 parts."));
}

#[test]
fn rows_that_are_left_out_as_empty_are_not_counted() {
    let rows = [("a", false), ("", true)].repeat(300);
    let mut cells = ["4", ""].repeat(300);
    let of = |cells: &[&str]| of_parts(vec![Part::Table(table("t", &rows, cells))]);
    let whole = of(&cells);
    assert!(!whole.contains("The first ") && whole.matches("<th scope=\"row\">a</th>").count() == 300);
    // The alignment is that of the rows that are shown, of which this is the last one.
    cells[598] = "4.25";
    assert!(of(&cells).contains("<td data-pad=\".00\">4</td>"));
    cells[1..].fill("±0.2");
    assert!(of(&cells).contains("The first 400 of 600 rows."));
}
