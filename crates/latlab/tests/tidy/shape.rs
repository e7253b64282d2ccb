//! The shape of the code in numbers, each held by a ceiling. `just shape` prints them.
//!
//! A number that rises above its ceiling fails the test; a commit that lowers a number lowers its ceiling. The largest
//! contributions stand below the table.

use std::collections::BTreeMap;
use std::fmt::Write;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::circles::circles;
use crate::expect_none;
use crate::source::{self, Source};

/// The most that each measure may be. Lower these as the numbers fall; a ceiling that rises needs a reason in the commit.
const CEILINGS: [(Measure, usize); 9] = [
    (Measure::ShippedLines, 99_692),
    (Measure::ImportLines, 4_499),
    (Measure::TestLines, 53_207),
    (Measure::GoldenLines, 28_922),
    (Measure::ShortDocs, 73),
    (Measure::MarkdownWords, 74_931),
    (Measure::FilesInCircles, 0),
    (Measure::LongFunctions, 0),
    (Measure::LongFiles, 0),
];

const FUNCTION_LINES: usize = 70;
/// Shipped lines of a file, or all lines of a file of tests.
const FILE_LINES: usize = 600;
/// Words up to which a doc comment is short: it repeats the name of its item.
const SHORT_DOC: usize = 4;
/// The rest of the product is measured without it: readers of foreign formats.
const IMPORT: &str = "latlab-formats/src/import/";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Measure {
    ShippedLines,
    ImportLines,
    TestLines,
    GoldenLines,
    ShortDocs,
    MarkdownWords,
    FilesInCircles,
    LongFunctions,
    LongFiles,
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Measure::ShippedLines => "shipped lines, without latlab-formats/src/import",
            Measure::ImportLines => "shipped lines of latlab-formats/src/import",
            Measure::TestLines => "lines of tests",
            Measure::GoldenLines => "lines of goldens",
            Measure::ShortDocs => "public docs of at most four words",
            Measure::MarkdownWords => "words of Markdown without the CHANGELOG",
            Measure::FilesInCircles => "files in import circles",
            Measure::LongFunctions => "functions over 70 lines",
            Measure::LongFiles => "files over 600 lines",
        }
    }
}

/// What each place (a crate, a folder, a file) adds to each measure.
#[derive(Default)]
struct Shape(BTreeMap<Measure, BTreeMap<String, usize>>);

impl Shape {
    fn of(sources: &[Source]) -> Shape {
        let mut shape = Shape::default();
        let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
        for source in sources {
            let package = source.path.split('/').nth(1).unwrap_or_default();
            let tested = source.lines - source.shipped_lines;
            match source.path.split_once(IMPORT) {
                Some((_, file)) => shape.add(Measure::ImportLines, file, source.shipped_lines),
                None => shape.add(Measure::ShippedLines, package, source.shipped_lines),
            }
            if source.module().is_some() || source.path.contains("/tests/") {
                shape.add(Measure::TestLines, package, tested);
            }
            let long = if source.shipped_lines > 0 { source.shipped_lines } else { source.lines };
            shape.add(Measure::LongFiles, &source.path, usize::from(long > FILE_LINES));
            let mut functions = Functions(&source.path, &mut shape);
            functions.visit_file(&source.syntax);
            if source.shipped_lines > 0 {
                let mut docs = Docs::default();
                docs.visit_file(&source.syntax);
                shape.add(Measure::ShortDocs, &source.path, docs.short);
                crates.entry(package).or_default().push(source);
            }
        }
        for files in crates.values() {
            for circle in circles(files) {
                shape.add(Measure::FilesInCircles, &circle.join(", "), circle.len());
            }
        }
        shape
    }

    fn of_repository() -> Shape {
        let mut shape = Shape::of(&source::sources());
        for path in crate::files("testdata/goldens", &[".txt"]) {
            let folder = path.split('/').nth(2).unwrap_or_default();
            shape.add(Measure::GoldenLines, folder, crate::read(&path).lines().count());
        }
        for path in crate::files("", &[".md"]).iter().filter(|path| !path.contains("CHANGELOG")) {
            shape.add(Measure::MarkdownWords, path, crate::read(path).split_whitespace().count());
        }
        shape
    }

    fn add(&mut self, measure: Measure, place: &str, value: usize) {
        let places = self.0.entry(measure).or_default();
        if value > 0 {
            *places.entry(place.to_owned()).or_default() += value;
        }
    }

    fn value(&self, measure: Measure) -> usize {
        self.0.get(&measure).map_or(0, |places| places.values().sum())
    }

    /// The measures, then the largest contributions to each.
    fn table(&self) -> String {
        let mut text = format!("\n{:<50}{:>9}{:>9}\n", "measure", "value", "ceiling");
        for (measure, ceiling) in CEILINGS {
            let _ = writeln!(text, "{:<50}{:>9}{ceiling:>9}", measure.title(), self.value(measure));
        }
        for (measure, places) in &self.0 {
            let mut places: Vec<_> = places.iter().collect();
            places.sort_by_key(|(_, value)| std::cmp::Reverse(**value));
            let shown = places.iter().take(12).map(|(place, value)| format!("\n{value:>9}  {place}"));
            let _ = writeln!(text, "\n{}{}", measure.title(), shown.collect::<String>());
        }
        text
    }

    /// The measures above their ceilings.
    fn breaches(&self, ceilings: &[(Measure, usize)]) -> Vec<String> {
        let risen = ceilings.iter().filter(|(measure, ceiling)| self.value(*measure) > *ceiling);
        let breach = |(measure, ceiling): &(Measure, usize)| {
            format!("{}: {}, the ceiling is {ceiling}; see `just shape`", measure.title(), self.value(*measure))
        };
        risen.map(breach).collect()
    }
}

/// Adds the functions of a file that are too long.
struct Functions<'a>(&'a str, &'a mut Shape);

impl Functions<'_> {
    fn read(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let lines = body.span().end().line - signature.fn_token.span().start().line + 1;
        let place = format!("{}: {}, {lines} lines", self.0, signature.ident);
        self.1.add(Measure::LongFunctions, &place, usize::from(lines > FUNCTION_LINES));
    }
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.read(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.read(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.read(&function.sig, body);
        }
    }
}

/// Counts short docs of public items.
#[derive(Default)]
struct Docs {
    short: usize,
}

impl Docs {
    fn read(&mut self, attributes: &[syn::Attribute]) {
        let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
        let words: usize = lines.map(|line| line.split_whitespace().count()).sum();
        self.short += usize::from((1..=SHORT_DOC).contains(&words));
    }
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// Whether clap makes help texts of the docs in a type with `attributes`.
fn is_help(attributes: &[syn::Attribute]) -> bool {
    let derives = attributes.iter().filter_map(|attribute| attribute.meta.require_list().ok());
    let derives = derives.filter(|list| list.path.is_ident("derive")).map(|list| list.tokens.to_string());
    derives.flat_map(|names| names.split(", ").map(str::to_owned).collect::<Vec<_>>()).any(|name| {
        let name = name.trim_start_matches("clap :: ");
        matches!(name, "Args" | "Parser" | "Subcommand" | "ValueEnum")
    })
}

impl<'a> Visit<'a> for Docs {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = source::attributes(item);
        if source::is_for_tests(attributes) || is_help(attributes) {
            return;
        }
        let visibility = match item {
            syn::Item::Const(item) => &item.vis,
            syn::Item::Enum(item) => &item.vis,
            syn::Item::Fn(item) => &item.vis,
            syn::Item::Mod(item) => &item.vis,
            syn::Item::Static(item) => &item.vis,
            syn::Item::Struct(item) => &item.vis,
            syn::Item::Trait(item) => &item.vis,
            syn::Item::Type(item) => &item.vis,
            syn::Item::Impl(_) => return visit::visit_item(self, item),
            _ => return,
        };
        if is_public(visibility) {
            self.read(attributes);
            visit::visit_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if is_public(&field.vis) {
            self.read(&field.attrs);
        }
    }

    fn visit_variant(&mut self, variant: &'a syn::Variant) {
        self.read(&variant.attrs);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if is_public(&function.vis) {
            self.read(&function.attrs);
        }
    }

    fn visit_impl_item_const(&mut self, constant: &'a syn::ImplItemConst) {
        if is_public(&constant.vis) {
            self.read(&constant.attrs);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        self.read(&function.attrs);
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "`just shape` shows the table")]
fn no_measure_is_above_its_ceiling() {
    let shape = Shape::of_repository();
    println!("{}", shape.table());
    expect_none(&shape.breaches(&CEILINGS));
}

#[test]
fn every_measure_counts() {
    let body = "\n".repeat(70);
    let files = [
        ("latlab/src/lib.rs", "mod a;\nmod b;\n".to_owned()),
        (
            "latlab/src/a.rs",
            format!("use crate::b::B;\n/// A.\npub struct A(/** one */ pub u8, /** two */ u8);\nfn f() {{{body}}}\n"),
        ),
        (
            "latlab/src/b.rs",
            "use crate::a::A;\n/// One two three four five.\npub enum B {\n    /// C.\n    C,\n}\n".to_owned(),
        ),
        (
            "latlab-formats/src/import/mod.rs",
            "/// Read.\n#[derive(Debug, clap::Args)]\npub struct D {\n    /// E.\n    pub e: u8,\n}\n".to_owned(),
        ),
        ("latlab-stats/src/lib.rs", "fn g() {}\n#[cfg(test)]\nmod tests {\n    fn h() {}\n}\n".to_owned()),
        ("latlab-stats/tests/x.rs", "\n".repeat(601)),
        ("latlab-stats/benches/x.rs", "fn main() {}\n".to_owned()),
    ];
    let shape = Shape::of(&files.map(|(path, text)| Source::new(&format!("crates/{path}"), &text)));
    let expected = [
        (Measure::ShippedLines, 2 + 74 + 6 + 1),
        (Measure::ImportLines, 6),
        (Measure::TestLines, 4 + 601),
        (Measure::ShortDocs, 3),
        (Measure::FilesInCircles, 2),
        (Measure::LongFunctions, 1),
        (Measure::LongFiles, 1),
    ];
    for (measure, value) in expected {
        assert_eq!(shape.value(measure), value, "{measure:?}: {}", shape.table());
        assert_eq!(shape.breaches(&[(measure, value)]), [""; 0]);
        assert_eq!(shape.breaches(&[(measure, value - 1)]).len(), 1);
    }
}
