//! Definitions, imports and used names of each module of a crate, read from its files.

use std::collections::{BTreeMap, BTreeSet};

use crate::paths::{module_of, tokens};
use crate::source::{Source, is_word};

/// A path as it is written, and the module in which it stands.
type Path = Vec<String>;

/// One name that a `use` declaration binds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The imported path; `crate`, `super` and `self` are as written.
    pub(crate) path: Path,
    /// The name in this module; `*` for all names of the module at `path`.
    pub(crate) name: String,
    /// Whether other modules can use the name: `pub use`, whatever its visibility.
    pub(crate) exported: bool,
}

/// One module, in a file of its own or inside of one.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The index of its file.
    pub(crate) file: usize,
    /// The types, functions, constants and macros that it defines.
    pub(crate) items: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// Paths of two segments or more in its code, `use` declarations left out.
    pub(crate) paths: BTreeSet<Path>,
    /// The names that its code uses, alone or at the head of a path; of functions those that it calls. `use`
    /// declarations, fields and methods are left out.
    pub(crate) words: BTreeSet<String>,
}

/// The modules of the library in `files`, by the path below the crate's root, joined with `::`. `main.rs` is
/// left out: it is the root of a crate of its own, which no file can import.
pub(crate) fn modules(files: &[Source]) -> BTreeMap<String, Module> {
    let mut modules = BTreeMap::new();
    let library = files.iter().enumerate().filter(|(_, source)| !source.path.ends_with("/src/main.rs"));
    for (file, source) in library {
        let tokens: Vec<&str> = tokens(&source.code).collect();
        let reader = Reader { tokens: &tokens, at: 0, file, open: vec![module_of(&source.path).join("::")], blocks: 0 };
        reader.read(&mut modules);
    }
    modules
}

/// The name of a module inside of `outer`.
pub(crate) fn inner(outer: &str, name: &str) -> String {
    if outer.is_empty() { name.to_string() } else { format!("{outer}::{name}") }
}

struct Reader<'a> {
    tokens: &'a [&'a str],
    at: usize,
    file: usize,
    /// The file's module and the inline modules around the current token.
    open: Vec<String>,
    /// Number of open braces around the current token that do not belong to an inline module.
    blocks: usize,
}

impl Reader<'_> {
    fn read(mut self, modules: &mut BTreeMap<String, Module>) {
        modules.insert(self.module(), Module { file: self.file, ..Module::default() });
        while self.at < self.tokens.len() {
            let module = self.module();
            let module = modules.entry(module).or_insert(Module { file: self.file, ..Module::default() });
            match self.tokens[self.at] {
                "use" if self.token(1) != "<" => self.import(module),
                "mod" if self.token(2) == "{" => self.enter(),
                "mod" if self.token(2) == ";" => self.at += 3,
                "{" => (self.blocks, self.at) = (self.blocks + 1, self.at + 1),
                "}" => self.leave(),
                word if word.bytes().all(is_word) => self.name(module),
                _ => self.at += 1,
            }
        }
    }

    fn module(&self) -> String {
        self.open.last().expect("the file's own module stays").clone()
    }

    /// The token `ahead` of the current one; empty beyond the end.
    fn token(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).copied().unwrap_or_default()
    }

    /// The token `back` before the current one; empty before the beginning.
    fn before(&self, back: usize) -> &str {
        self.at.checked_sub(back).map_or("", |at| self.tokens[at])
    }

    /// Enters an inline module. A module inside of a function has no path of its own, so it counts as a block.
    fn enter(&mut self) {
        if self.blocks == 0 {
            self.open.push(inner(&self.module(), self.token(1)));
        } else {
            self.blocks += 1;
        }
        self.at += 3;
    }

    /// Leaves a block or, outside of blocks, an inline module.
    fn leave(&mut self) {
        if self.blocks > 0 {
            self.blocks -= 1;
        } else if self.open.len() > 1 {
            self.open.pop();
        }
        self.at += 1;
    }

    /// Reads an identifier: the name of a definition, the head of a path, or a plain word.
    fn name(&mut self, module: &mut Module) {
        let is_range = self.before(2) == ".";
        if self.before(1) == "::" || self.before(1) == "'" || (self.before(1) == "." && !is_range) {
            self.at += 1;
            return;
        }
        let mut path = vec![self.token(0).to_string()];
        if DEFINING.contains(&path[0].as_str()) && self.blocks == 0 {
            let name = if self.token(1) == "!" { self.token(2) } else { self.token(1) };
            let name = if name == "mut" { self.token(2) } else { name };
            if !MODIFIERS.contains(&name) {
                module.items.insert(name.to_string());
            }
            self.at += 1;
            return;
        }
        while self.token(1) == "::" && self.token(2).bytes().all(is_word) {
            path.push(self.token(2).to_string());
            self.at += 2;
        }
        let is_visibility = self.before(path.len() * 2 - 1) == "in" && self.before(path.len() * 2) == "(";
        self.at += 1;
        let is_type_or_constant = path[0].starts_with(|char: char| char.is_ascii_uppercase());
        if path.len() > 1 || matches!(self.token(0), "(" | "::") || (is_type_or_constant && self.token(0) != ":") {
            module.words.insert(path[0].clone());
        }
        if path.len() > 1 && !is_visibility {
            module.paths.insert(path);
        }
    }

    /// Reads a `use` declaration up to its semicolon.
    fn import(&mut self, module: &mut Module) {
        let exported = matches!(self.before(1), "pub" | ")");
        self.at += 1;
        self.branch(&[], exported, &mut module.imports);
    }

    /// Reads one branch of a `use` declaration: a path that ends in a name, an alias, `*` or further branches.
    fn branch(&mut self, stem: &[String], exported: bool, imports: &mut Vec<Import>) {
        let mut path = stem.to_vec();
        loop {
            match self.token(0) {
                "{" => return self.branches(&path, exported, imports),
                "::" => {}
                "self" if !path.is_empty() => {}
                word if word.bytes().all(is_word) => path.push(word.to_string()),
                _ => break,
            }
            self.at += 1;
            if self.token(0) != "::" && self.tokens.get(self.at - 1) != Some(&"::") {
                break;
            }
        }
        let alias = match self.token(0) {
            "*" => Some("*".to_string()),
            "as" => Some(self.token(1).to_string()),
            _ => None,
        };
        self.at += alias.as_ref().map_or(0, |name| if name == "*" { 1 } else { 2 });
        if let Some(name) = alias.or_else(|| path.last().cloned()) {
            imports.push(Import { path, name, exported });
        }
    }

    /// Reads the branches between braces, including both braces.
    fn branches(&mut self, stem: &[String], exported: bool, imports: &mut Vec<Import>) {
        self.at += 1;
        while !matches!(self.token(0), "}" | "") {
            let from = self.at;
            self.branch(stem, exported, imports);
            self.at += usize::from(self.token(0) == "," || self.at == from);
        }
        self.at += 1;
    }
}

/// Keywords before the name of an item.
const DEFINING: [&str; 9] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "macro_rules"];
/// Keywords that follow the `const` of a function.
const MODIFIERS: [&str; 3] = ["fn", "unsafe", "extern"];

#[cfg(test)]
fn module(text: &str) -> Module {
    modules(&[Source::new("crates/latlab/src/plan/ping.rs", text)]).remove("plan::ping").expect("the file's module")
}

#[test]
fn every_import_is_read() {
    let cases: [(&str, &[&str]); 9] = [
        ("use crate::units::Nanos;", &["Nanos = crate::units::Nanos"]),
        ("pub(crate) use self::a::B as C;", &["pub C = self::a::B"]),
        (
            "pub use x::{self, y::{Z, W as _}, v as u,};",
            &["pub x = x", "pub Z = x::y::Z", "pub _ = x::y::W", "pub u = x::v"],
        ),
        ("use super::super::a::*;", &["* = super::super::a"]),
        ("use a::{b::*, c};", &["* = a::b", "c = a::c"]),
        ("use {a, b::c};", &["a = a", "c = b::c"]),
        ("fn f() { use crate::a::b; b() }", &["b = crate::a::b"]),
        ("fn f<'a>() -> impl Sized + use<'a> { crate::a::b() }", &[]),
        ("use ::std::io;", &["io = std::io"]),
    ];
    for (text, expected) in cases {
        let shown = |import: Import| {
            let exported = if import.exported { "pub " } else { "" };
            format!("{exported}{} = {}", import.name, import.path.join("::"))
        };
        assert_eq!(module(text).imports.into_iter().map(shown).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn every_item_path_and_word_is_read() {
    let text = "use a::b;\nmod child;\npub(crate) const fn f<T: x::Y>(g: super::z::G) -> u8 { h.i::<J>() + 0..self::K }\n\
        static mut M: N = N::O { p: q, r: call(), s: turbo::<u8>() };\nmacro_rules! r { () => {} }\nimpl S { fn t() { const U: u8 = 1; } type V = W; }\n\
        pub(in crate::plan) fn u() { for x in crate::y {} }";
    let module = module(text);
    assert_eq!(module.items.iter().collect::<Vec<_>>(), ["M", "f", "r", "u"]);
    let paths: Vec<String> = module.paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["N::O", "crate::y", "self::K", "super::z::G", "x::Y"]);
    for word in ["N", "S", "W", "call", "turbo"] {
        assert!(module.words.contains(word), "{word}");
    }
    for word in ["i", "b", "child", "Y", "O", "T", "p", "q", "h"] {
        assert!(!module.words.contains(word), "{word}");
    }
}

#[test]
fn inline_modules_are_modules() {
    let text =
        "mod a { pub struct B; pub mod c { use super::B; } struct D; }\nfn e() { mod f { struct G; } }\nstruct H;";
    let file = |path: &str, text: &str| Source::new(&format!("crates/latlab/src/{path}"), text);
    let modules = modules(&[file("lib.rs", text), file("main.rs", "fn main() {}")]);
    let items = |name: &str| modules[name].items.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(modules.keys().collect::<Vec<_>>(), ["", "a", "a::c"]);
    assert_eq!((items(""), items("a"), items("a::c")), (vec!["H", "e"], vec!["B", "D"], vec![]));
    assert_eq!(modules["a::c"].imports.len(), 1);
}
