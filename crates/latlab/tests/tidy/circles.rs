//! Import circles: files of which none can be read without the others.
//!
//! A file imports the file that defines what it names in a `use` declaration, in a path or within a macro. A name is
//! followed through re-exports; a re-export is an import only if the file's own code uses the name. Methods are not
//! followed. A circle is a strongly connected component of more than one file.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::source::{Source, attributes, inner, is_for_tests};

/// The paths of the files of each circle among the shipped files of one crate.
pub(crate) fn circles(files: &[&Source]) -> Vec<Vec<String>> {
    let mut modules = Modules::default();
    for (index, file) in files.iter().enumerate() {
        let (_, name) = file.module().expect("a file of a crate");
        if !file.path.ends_with("main.rs") {
            let mut reader = Reader { file: index, module: name, modules: &mut modules.0 };
            reader.module().file = index;
            reader.visit_file(&file.syntax);
        }
    }
    let imports = modules.imports();
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(|file| reached(file, &imports)).collect();
    let mut placed = BTreeSet::new();
    let mut circles = Vec::new();
    for file in 0..files.len() {
        let circle: Vec<usize> =
            reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
        if !circle.is_empty() && placed.insert(circle.clone()) {
            circles.push(circle.iter().map(|file| files[*file].path.clone()).collect());
        }
    }
    circles
}

/// The files that the imports lead to from `start`; with `start` if it is in a circle.
fn reached(start: usize, imports: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        let next = imports.range((file, 0)..(file + 1, 0)).map(|(_, to)| *to);
        open.extend(next.filter(|to| seen.insert(*to)));
    }
    seen
}

#[derive(Default)]
struct Module {
    file: usize,
    items: BTreeSet<String>,
    uses: Vec<Use>,
    paths: BTreeSet<Vec<String>>,
}

/// One name of a `use` declaration; `*` for a glob.
struct Use {
    name: String,
    path: Vec<String>,
    is_exported: bool,
}

/// The modules of a crate by name.
#[derive(Default)]
struct Modules(BTreeMap<String, Module>);

/// Re-exports that lead to re-exports; more are taken for a loop.
const STEPS: usize = 16;

impl Modules {
    /// Pairs of files of which the first imports the second.
    fn imports(&self) -> BTreeSet<(usize, usize)> {
        let mut found = BTreeSet::new();
        for (name, module) in &self.0 {
            let uses = module.uses.iter().filter(|import| !import.is_exported).map(|import| &import.path);
            let files = uses.chain(&module.paths).filter_map(|path| self.definition(name, path, 0));
            found.extend(files.filter(|file| *file != module.file).map(|file| (module.file, file)));
        }
        found
    }

    /// The file of the item that `path` stands for in `module`; `None` for a module, and outside of the crate.
    fn definition(&self, module: &str, path: &[String], steps: usize) -> Option<usize> {
        let here = self.0.get(module).filter(|_| steps < STEPS)?;
        let (name, rest) = path.split_first()?;
        match name.as_str() {
            "crate" => return self.definition("", rest, steps),
            "self" => return self.definition(module, rest, steps),
            "super" => return self.definition(module.rsplit_once("::").map_or("", |(outer, _)| outer), rest, steps),
            "*" => return None,
            _ => {}
        }
        let child = inner(module, name);
        if here.items.contains(name) && (rest.is_empty() || !self.0.contains_key(&child)) {
            return Some(here.file);
        }
        if self.0.contains_key(&child) {
            return self.definition(&child, rest, steps);
        }
        if let Some(import) = here.uses.iter().find(|import| import.name == *name) {
            return self.definition(module, &[&import.path, rest].concat(), steps + 1);
        }
        let mut globs = here.uses.iter().filter(|import| import.name == "*");
        globs.find_map(|glob| self.definition(module, &[&glob.path, path].concat(), steps + 1))
    }
}

/// Reads items, `use` declarations and paths of a file and its inline modules.
struct Reader<'a> {
    file: usize,
    module: String,
    modules: &'a mut BTreeMap<String, Module>,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        self.modules.entry(self.module.clone()).or_default()
    }

    fn read_use(&mut self, tree: &syn::UseTree, stem: &[String], is_exported: bool) {
        let with = |name: &syn::Ident| [stem, &[name.to_string()]].concat();
        let (name, path) = match tree {
            syn::UseTree::Path(path) => return self.read_use(&path.tree, &with(&path.ident), is_exported),
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.read_use(tree, stem, is_exported));
            }
            syn::UseTree::Glob(_) => ("*".to_owned(), stem.to_vec()),
            syn::UseTree::Name(name) if name.ident == "self" => {
                (stem.last().cloned().unwrap_or_default(), stem.to_vec())
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), with(&name.ident)),
            syn::UseTree::Rename(name) => (name.rename.to_string(), with(&name.ident)),
        };
        self.module().uses.push(Use { name, path, is_exported });
    }

    /// The paths among the tokens of a macro, and the enum that it declares.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut text = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if text.ends_with("::") => text.push_str(&ident.to_string()),
                TokenTree::Ident(ident) => text.push_str(&format!(" {ident}")),
                TokenTree::Punct(mark) if mark.as_char() == ':' => text.push(':'),
                TokenTree::Group(group) => {
                    self.read_tokens(group.stream());
                    text.push(' ');
                }
                _ => text.push(' '),
            }
        }
        self.module().items.extend(text.split("enum ").skip(1).filter_map(|it| Some(it.split_once(':')?.0.into())));
        let paths = text.split(' ').map(|path| path.split("::").map(str::to_owned).collect());
        self.module().paths.extend(paths);
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        let name = match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            self.module().items.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if module.content.is_some() {
            let name = inner(&self.module, &module.ident.to_string());
            let outer = std::mem::replace(&mut self.module, name);
            self.module().file = self.file;
            visit::visit_item_mod(self, module);
            self.module = outer;
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'a syn::ItemExternCrate) {
        if item.ident == "self"
            && let Some((_, name)) = &item.rename
        {
            self.module().uses.push(Use { name: name.to_string(), path: vec!["crate".into()], is_exported: true });
        }
    }

    fn visit_item_use(&mut self, import: &'a syn::ItemUse) {
        self.read_use(&import.tree, &[], !matches!(import.vis, syn::Visibility::Inherited));
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.module().paths.insert(names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.read_tokens(call.tokens.clone());
    }

    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let root = "mod a; mod b; mod c; pub use a::A; pub use b::B;";
    let imports = [
        ("use super::b::B;", "use super::a::A;", true),
        ("fn f() { super::b::g() }", "use crate::x::a; fn g() { a::f() }", true),
        ("fn f() { vec![super::b::g()] }", "use crate::x::a::{self}; fn g() { a::f() }", true),
        ("use crate::own::x::B;", "fn g() -> crate::x::A {}", true),
        ("use super::*; fn f() -> B {}", "use super::super::x::A;", true),
        ("use crate::x as y; fn f() -> y::B {}", "use super::c::A2;", true),
        ("crate::worded! { pub enum C: word { D = \"d\", } } use super::b::B;", "use super::a::C;", true),
        ("pub use super::b::B;", "use super::a::A;", false),
        ("pub use super::b::B; fn f() -> B {}", "use super::a::A;", true),
        ("use super::b; use b2::B; pub(in crate::x::b) fn f() {}", "use super::a::A;", false),
        ("#[cfg(test)] mod tests { use super::super::b::B; }", "use super::a::A;", false),
        ("// super::b::B\nconst F: &str = \"super::b::B\";", "use super::a::A;", false),
    ];
    for (a, b, is_circle) in imports {
        let (a, b) = (format!("{a} pub struct A; pub fn f() {{}}"), format!("{b} pub struct B; pub fn g() {{}}"));
        let c = "pub use super::a::A as A2;";
        let files = [
            ("lib.rs", "extern crate self as own; mod x;"),
            ("x/mod.rs", root),
            ("x/a.rs", &*a),
            ("x/b.rs", &b),
            ("x/c.rs", c),
        ];
        let files = files.map(|(path, text)| Source::new(&format!("crates/latlab/src/{path}"), text));
        let found = circles(&files.iter().collect::<Vec<_>>());
        let expected = ["crates/latlab/src/x/a.rs", "crates/latlab/src/x/b.rs"];
        assert_eq!(found, if is_circle { vec![expected] } else { vec![] }, "{a}\n{b}");
    }
}
