//! Import circles: files of which none can be read without the others.
//!
//! File A imports file B if the shipped code of A names something that B defines: in a `use` declaration, or in a path
//! such as `crate::units::Nanos`, `super::limits()` or `child::run()`. A name is followed through re-exports to the
//! file of its definition. A `mod` line is not an import. `pub use` is none either, unless the file's own code uses the
//! name (of a function: calls it). Methods are not followed, since finding them takes types; neither are macros. A
//! circle is a strongly connected component of more than one file.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Import, Module, inner, modules};
use crate::source::Source;

/// The names that one file takes from another, by the indices of both.
type Imports = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Files that import each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Circle {
    pub(crate) files: Vec<String>,
    /// `a.rs -> b.rs: names` for each import within the circle.
    pub(crate) imports: Vec<String>,
}

/// The circles among `files`, the shipped sources of one crate; the largest first.
pub(crate) fn circles(files: &[Source]) -> Vec<Circle> {
    let imports = imports(files);
    let mut circles: Vec<Circle> = components(files.len(), &imports)
        .into_iter()
        .filter(|component| component.len() > 1)
        .map(|component| circle(files, &imports, &component))
        .collect();
    circles.sort_by(|a, b| b.files.len().cmp(&a.files.len()).then_with(|| a.files.cmp(&b.files)));
    circles
}

fn circle(files: &[Source], imports: &Imports, component: &[usize]) -> Circle {
    let within = imports.iter().filter(|((from, to), _)| component.contains(from) && component.contains(to));
    let shown = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("{} -> {}: {}", files[*from].path, files[*to].path, names.join(", "))
    };
    let mut paths: Vec<String> = component.iter().map(|file| files[*file].path.clone()).collect();
    paths.sort();
    Circle { files: paths, imports: within.map(shown).collect() }
}

fn imports(files: &[Source]) -> Imports {
    let tree = Tree { modules: modules(files) };
    let mut found = Imports::new();
    for (name, module) in &tree.modules {
        let used = |import: &&Import| !import.exported || module.words.contains(&import.name);
        let imported = module.imports.iter().filter(used).filter(|import| !tree.binds_module_only(name, import));
        for path in imported.map(|import| &import.path).chain(&module.paths) {
            if let Some(definition) = tree.resolve(name, path, 0).filter(|definition| definition.file != module.file) {
                found.entry((module.file, definition.file)).or_default().insert(definition.name);
            }
        }
    }
    found
}

/// Where an item is defined.
struct Definition {
    file: usize,
    name: String,
}

/// The modules of a crate by name.
struct Tree {
    modules: BTreeMap<String, Module>,
}

/// Re-exports that lead to re-exports; more are taken for a loop.
const STEPS: usize = 16;

impl Tree {
    /// The definition of what `path` stands for in `module`; `None` if that is outside of the crate.
    fn resolve(&self, module: &str, path: &[String], steps: usize) -> Option<Definition> {
        let (head, rest) = path.split_first()?;
        match head.as_str() {
            "crate" => self.find("", rest, steps),
            "self" => self.find(module, rest, steps),
            "super" => self.find(outer(module), rest, steps),
            _ if self.knows(module, head) => self.find(module, path, steps),
            _ => None,
        }
    }

    /// The definition of what `path` stands for below `module`. A name that nothing defines is taken for `module`'s
    /// own: a macro may define it.
    fn find(&self, module: &str, path: &[String], steps: usize) -> Option<Definition> {
        let here = self.modules.get(module)?;
        let Some((name, rest)) = path.split_first() else {
            let name = module.rsplit("::").next().unwrap_or_default().to_string();
            return Some(Definition { file: here.file, name });
        };
        if name == "super" {
            return self.find(outer(module), rest, steps);
        }
        let import = here.imports.iter().find(|import| import.name == *name);
        let is_item = here.items.contains(name) || import.is_some();
        let child = inner(module, name);
        if self.modules.contains_key(&child) && !(rest.is_empty() && is_item) {
            return self.find(&child, rest, steps);
        }
        let own = || Definition { file: here.file, name: name.clone() };
        if here.items.contains(name) {
            return Some(own());
        }
        if steps >= STEPS {
            return None;
        }
        match import {
            Some(import) => self.resolve(module, &[&import.path, rest].concat(), steps + 1),
            None => self.through_globs(module, path, steps).or_else(|| Some(own())),
        }
    }

    /// As [`Tree::find`], for a name that a glob of `module` may bring.
    fn through_globs(&self, module: &str, path: &[String], steps: usize) -> Option<Definition> {
        let globs = self.modules[module].imports.iter().filter(|import| import.name == "*");
        let mut targets = globs.filter_map(|glob| self.target(module, &glob.path));
        let target = targets.find(|target| target != module && self.knows(target, &path[0]))?;
        self.find(&target, path, steps + 1)
    }

    /// Whether `name` means something in `module`: a child, an item, or an import.
    fn knows(&self, module: &str, name: &str) -> bool {
        self.modules.contains_key(&inner(module, name))
            || self
                .modules
                .get(module)
                .is_some_and(|here| here.items.contains(name) || here.imports.iter().any(|import| import.name == name))
    }

    /// Whether `import` in `module` binds a module and nothing else: what is imported then are the paths that begin with it.
    fn binds_module_only(&self, module: &str, import: &Import) -> bool {
        import.name != "*"
            && self.target(module, &import.path).is_some_and(|target| {
                let (parent, name) = (outer(&target), target.rsplit("::").next().unwrap_or_default());
                self.modules.get(parent).is_none_or(|parent| {
                    !parent.items.contains(name) && !parent.imports.iter().any(|import| import.name == name)
                })
            })
    }

    /// The module that `path` stands for in `module`, if it is one that is reached without re-exports.
    fn target(&self, module: &str, path: &[String]) -> Option<String> {
        let mut at = match path.first()?.as_str() {
            "crate" => String::new(),
            "self" => module.to_string(),
            "super" => outer(module).to_string(),
            head => inner(module, head),
        };
        for name in &path[1..] {
            at = if name == "super" { outer(&at).to_string() } else { inner(&at, name) };
        }
        self.modules.contains_key(&at).then_some(at)
    }
}

/// The module around `module`; of the root, the root.
fn outer(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(outer, _)| outer)
}

/// The strongly connected components of the graph of `imports` among `count` files: two files are in the same one if
/// each can be reached from the other.
fn components(count: usize, imports: &Imports) -> Vec<Vec<usize>> {
    let forward: Vec<Vec<usize>> = (0..count).map(|file| neighbours(file, imports.keys().copied())).collect();
    let backward: Vec<Vec<usize>> =
        (0..count).map(|file| neighbours(file, imports.keys().map(|(from, to)| (*to, *from)))).collect();
    let mut placed = vec![false; count];
    let mut components = Vec::new();
    for file in 0..count {
        if !placed[file] {
            let (after, before) = (reached(file, &forward), reached(file, &backward));
            let component: Vec<usize> = after.intersection(&before).copied().collect();
            for member in &component {
                placed[*member] = true;
            }
            components.push(component);
        }
    }
    components
}

fn neighbours(file: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    edges.filter(|(from, _)| *from == file).map(|(_, to)| to).collect()
}

/// Every file that is reached from `start`, `start` included.
fn reached(start: usize, next: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut seen = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        open.extend(next[file].iter().filter(|file| seen.insert(**file)));
    }
    seen
}

#[cfg(test)]
fn crate_of(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(path, text)| Source::new(&format!("crates/latlab/src/{path}"), text)).collect()
}

#[cfg(test)]
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let short = |path: &String| path.trim_start_matches("crates/latlab/src/").to_string();
    circles(&crate_of(files)).iter().map(|circle| circle.files.iter().map(short).collect()).collect()
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let imports = [
        ("use super::b::B;", "use super::a::A;"),
        ("fn f() { super::b::g() }", "use crate::x::a::{self}; fn g() { a::f() }"),
        ("use crate::x::B;", "fn g() -> crate::x::A {}"),
        ("use super::*; fn f() -> super::B {}", "use super::super::x::A;"),
        ("use crate::x as y; fn f() -> y::B {}", "use super::c::A2;"),
    ];
    for (a, b) in imports {
        let root = "mod a; mod b; mod c; pub use a::A; pub use b::B;";
        let (a, b) = (format!("{a} pub struct A; pub fn f() {{}}"), format!("{b} pub struct B; pub fn g() {{}}"));
        let c = "pub use super::a::A as A2;";
        let found =
            circles_of(&[("lib.rs", "mod x;"), ("x/a.rs", &a), ("x/b.rs", &b), ("x/c.rs", c), ("x/mod.rs", root)]);
        assert_eq!(found, [["x/a.rs", "x/b.rs"]], "{a}\n{b}");
    }
}

#[test]
fn a_chain_of_imports_that_returns_is_one_circle() {
    let ring = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::a::A; use crate::d::D; pub struct C;"),
        ("d.rs", "pub struct D;"),
    ];
    assert_eq!(circles_of(&ring), [["a.rs", "b.rs", "c.rs"]]);
    let imports = &circles(&crate_of(&ring))[0].imports;
    assert_eq!(imports[0], "crates/latlab/src/a.rs -> crates/latlab/src/b.rs: B");
    assert_eq!(imports.len(), 3);
}

#[test]
fn a_parent_is_in_a_circle_only_by_its_own_code() {
    let child = "use super::Shared; pub struct Thing; pub fn run() {}";
    let cases = [
        ("mod child; pub struct Shared;", 0),
        ("mod child; pub use child::Thing; pub struct Shared;", 0),
        ("mod child; pub use child::run; pub struct Shared { run: u8 }", 0),
        ("mod child; pub use child::run; pub struct Shared; fn f() { run() }", 1),
        ("mod child; use child::Thing; pub struct Shared(Thing);", 1),
        ("mod child; pub use child::Thing; pub struct Shared(Thing);", 1),
        ("mod child; pub struct Shared; fn f() { child::run() }", 1),
        ("mod child; mod low; pub use low::Shared; fn f() { child::run() }", 0),
    ];
    for (parent, expected) in cases {
        for path in ["x/mod.rs", "x.rs"] {
            let files =
                [("lib.rs", "mod x;"), (path, parent), ("x/child.rs", child), ("x/low.rs", "pub struct Shared;")];
            assert_eq!(circles_of(&files).len(), expected, "{path}: {parent}");
        }
    }
}

#[test]
fn names_from_elsewhere_make_no_circle() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use std::b::B; use b::B; // crate::b::B\npub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B; #[cfg(test)] mod tests { use crate::c::C; }"),
        ("c.rs", "use crate::b::B; pub struct C;"),
    ];
    let shipped: Vec<Source> = crate_of(&files).iter().map(Source::shipped).collect();
    assert_eq!(circles(&shipped), []);
}
