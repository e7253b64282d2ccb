//! Rust files: which of their lines are compiled for tests only.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A Rust file below `crates/`.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) lines: usize,
    /// The lines of the file that are compiled into the product: comments and empty lines count.
    pub(crate) shipped_lines: usize,
    pub(crate) syntax: syn::File,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut items = TestItems::default();
        items.visit_file(&syntax);
        let lines = text.lines().count();
        let tested: usize = items.lines.iter().map(|lines| lines.end() - lines.start() + 1).sum();
        let shipped_lines = if is_shipped(path) { lines - tested } else { 0 };
        Source { path: path.to_owned(), lines, shipped_lines, syntax }
    }

    /// The crate and the module of a file of `crates/CRATE/src`: `latlab` and `stats::order`.
    pub(crate) fn module(&self) -> Option<(&str, String)> {
        let (package, inside) = self.path.strip_prefix("crates/")?.split_once("/src/")?;
        let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        let inside = if matches!(inside, "lib" | "main" | "mod") { "" } else { inside };
        Some((package, inside.replace('/', "::")))
    }
}

fn is_shipped(path: &str) -> bool {
    path.contains("/src/")
}

/// Every Rust file below `crates/`; a file whose module is declared for tests only has no shipped lines.
pub(crate) fn sources() -> Vec<Source> {
    let paths = crate::files("crates", &[".rs"]);
    without_test_modules(paths.iter().map(|path| Source::new(path, &crate::read(path))).collect())
}

pub(crate) fn without_test_modules(mut sources: Vec<Source>) -> Vec<Source> {
    let mut for_tests = BTreeSet::new();
    for source in &sources {
        let mut items = TestItems::default();
        items.visit_file(&source.syntax);
        if let Some((package, module)) = source.module() {
            for_tests.extend(items.modules.iter().map(|name| (package.to_owned(), inner(&module, name))));
        }
    }
    for source in &mut sources {
        let is_for_tests = source.module().is_some_and(|(package, module)| {
            let below = |test: &str| module == test || module.starts_with(&format!("{test}::"));
            for_tests.iter().any(|(of, test)| of == package && below(test))
        });
        if is_for_tests {
            source.shipped_lines = 0;
        }
    }
    sources
}

/// The module `name` in `module`.
pub(crate) fn inner(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// Whether an item with `attributes` is compiled for tests only.
pub(crate) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => {
            let condition = list.tokens.to_string();
            list.path.is_ident("cfg")
                && (condition == "test" || ["all (test", "any (test"].iter().any(|it| condition.starts_with(it)))
        }
        syn::Meta::NameValue(_) => false,
    })
}

#[derive(Default)]
struct TestItems {
    /// None lies within another.
    lines: Vec<RangeInclusive<usize>>,
    /// Modules in files of their own.
    modules: Vec<String>,
}

impl<'a> Visit<'a> for TestItems {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !is_for_tests(attributes(item)) {
            return visit::visit_item(self, item);
        }
        self.lines.push(lines_of(item));
        if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            self.modules.push(module.ident.to_string());
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if is_for_tests(&function.attrs) {
            self.lines.push(lines_of(function));
        }
    }
}

/// The lines of `node` with its attributes.
fn lines_of(node: &impl Spanned) -> RangeInclusive<usize> {
    node.span().start().line..=node.span().end().line
}

pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[test]
fn lines_compiled_for_tests_only_are_not_shipped() {
    let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nimpl C {\n    #[cfg(test)]\n    fn d() {}\n}\n\
        #[cfg(all(test, unix))]\nuse e;\n#[cfg(any(test, feature = \"x\"))]\nmod k {}\n#[cfg(not(test))]\nfn f() {}\n#[cfg(test)]\nmod g;\n#[test]\nfn h() {}\n";
    let file = |path: &str, text: &str| Source::new(&format!("crates/latlab/src/{path}"), text);
    let test = Source::new("crates/latlab/tests/i.rs", "fn i() {}");
    let sources = [file("x/mod.rs", text), file("x/g.rs", "mod h;"), file("x/g/h.rs", "fn j() {}"), test];
    let shipped = without_test_modules(sources.into()).iter().map(|source| source.shipped_lines).collect::<Vec<_>>();
    assert_eq!(shipped, [6, 0, 0, 0]);
}
