//! The functions of a file: their length and their parameters.

use crate::source::{Source, is_word};

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of `fn`, from 1.
    pub(crate) line: usize,
    /// From the line of `fn` to that of the closing brace.
    pub(crate) lines: usize,
    pub(crate) parameters: Vec<String>,
}

impl Function {
    /// The parameters that are tuples by their pattern, `(a, b): Pair`, or by their type, `pair: &(A, B)` or one of
    /// `aliases`.
    pub(crate) fn tuple_parameters(&self, aliases: &[String]) -> Vec<&str> {
        self.parameters.iter().map(String::as_str).filter(|parameter| is_tuple(parameter, aliases)).collect()
    }
}

/// Every function in `source` that has a body, nested ones included.
pub(crate) fn functions(source: &Source) -> Vec<Function> {
    source.find_word("fn").into_iter().filter_map(|offset| function(source, offset)).collect()
}

/// The type aliases in `source` that stand for a tuple: `type Pair = (A, B);`.
pub(crate) fn tuple_aliases(source: &Source) -> Vec<String> {
    let alias = |offset: usize| {
        let (declared, rest) = source.code[offset + "type".len()..].split_once('=')?;
        (is_tuple_type(rest.trim_start()) && !declared.contains(';')).then(|| first_word(declared))
    };
    source.find_word("type").into_iter().filter_map(alias).collect()
}

fn function(source: &Source, offset: usize) -> Option<Function> {
    let code = &source.code[offset + 2..];
    let name = first_word(code);
    let body = body(code)?;
    let (line, last) = (source.line_of(offset), source.line_of(offset + 2 + body));
    let parameters = parameters(code);
    (!name.is_empty()).then_some(Function { name, line, lines: last - line + 1, parameters })
}

/// The offset of the brace that closes the first body in `code`; none for a declaration.
pub(crate) fn body(code: &str) -> Option<usize> {
    let (mut round, mut curly) = (0, 0);
    for (offset, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b';' if round == 0 && curly == 0 => return None,
            b'{' => curly += 1,
            b'}' => {
                curly -= 1;
                if curly == 0 && round == 0 {
                    return Some(offset);
                }
            }
            _ => {}
        }
    }
    None
}

/// The parameters of the function whose name `code` begins with.
fn parameters(code: &str) -> Vec<String> {
    let Some(start) = top_level(code, '(').next() else { return Vec::new() };
    let list = &code[start + 1..];
    let list = &list[..top_level(list, ')').next().unwrap_or(list.len())];
    let mut from = 0;
    let mut parameters = Vec::new();
    for comma in top_level(list, ',').chain([list.len()]) {
        parameters.push(list[from..comma].split_whitespace().collect::<Vec<_>>().join(" "));
        from = list.len().min(comma + 1);
    }
    parameters.retain(|parameter| !parameter.is_empty());
    parameters
}

/// The identifier that `code` begins with.
fn first_word(code: &str) -> String {
    code.trim_start().chars().take_while(|char| char.is_ascii() && is_word(*char as u8)).collect()
}

/// Whether `code` begins with a tuple of at least two.
fn is_tuple_type(code: &str) -> bool {
    let Some(inside) = code.strip_prefix('(') else { return false };
    let end = top_level(inside, ')').next().unwrap_or(inside.len());
    top_level(&inside[..end], ',').next().is_some()
}

fn is_tuple(parameter: &str, aliases: &[String]) -> bool {
    let colon = top_level(parameter, ':').next().unwrap_or(parameter.len());
    let (pattern, of_type) = parameter.split_at(colon);
    let pattern = pattern.trim_start_matches(['&', ' ']);
    let mut of_type = of_type.trim_start_matches([':', '&', ' ']);
    if let Some(lifetime) = of_type.strip_prefix('\'') {
        of_type = lifetime.trim_start_matches(|char: char| char.is_ascii() && is_word(char as u8)).trim_start();
    }
    of_type = of_type.strip_prefix("mut ").unwrap_or(of_type).trim_start();
    is_tuple_type(pattern) || is_tuple_type(of_type) || aliases.iter().any(|alias| alias == last_segment(of_type))
}

/// The last name of the path at the beginning of `code`: `Pair` of `strata::Pair<T>`.
fn last_segment(code: &str) -> &str {
    let end = code.find(|char: char| !char.is_alphanumeric() && !"_:".contains(char)).unwrap_or(code.len());
    code[..end].rsplit(':').next().unwrap_or_default()
}

/// Offsets of `mark` in `code` that no bracket encloses; a `:` that is half of `::` does not count.
fn top_level(code: &str, mark: char) -> impl Iterator<Item = usize> {
    let bytes = code.as_bytes();
    let mut depth = 0;
    code.char_indices().filter_map(move |(at, char)| {
        let arrow = char == '>' && at > 0 && bytes[at - 1] == b'-';
        let found = depth == 0 && char == mark;
        let half = char == ':' && (bytes.get(at + 1) == Some(&b':') || at > 0 && bytes[at - 1] == b':');
        match char {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if !arrow => depth -= 1,
            _ => {}
        }
        (found && !half).then_some(at)
    })
}

#[test]
fn functions_have_a_name_a_length_and_parameters() {
    let found = |text: &str| functions(&Source::new("x.rs", text));
    let text = "impl X {\n    fn short(&self) -> [u8; 2] { [1, 2] }\n    fn long(f: fn(u8) -> u8) {\n\n}\n}";
    let seen: Vec<_> = found(text).into_iter().map(|function| (function.name, function.line, function.lines)).collect();
    assert_eq!(seen, [("short".into(), 2, 1), ("long".into(), 3, 3)]);
    let declared = "trait T { fn f(&self) -> [u8; 3]; fn g() where u8: Copy; }\nfn h() { let s = \"}\"; }";
    let seen: Vec<_> = found(declared).into_iter().map(|function| (function.name, function.line)).collect();
    assert_eq!(seen, [("h".into(), 2)]);
    let many = "fn f<F: Fn(u8, u8) -> u8>(\n    &mut self,\n    g: F, // (a, b)\n    h: [u8; 2],\n) -> (u8, u8) {}";
    assert_eq!(found(many)[0].parameters, ["&mut self", "g: F,", "h: [u8; 2]"].map(|text| text.trim_end_matches(',')));
}

#[test]
fn tuple_parameters_are_seen() {
    let cases = [
        ("fn f((a, b): (A, B), c: C) {}", 1),
        ("fn f(&(a, b): &(A, B), (c, d): Pair) {}", 2),
        ("fn f(pair: (A, B), same: &'a (A, B), other: &mut (A, B)) {}", 3),
        ("fn f<'a>(a: &'a A, b: B<(C, D)>, c: [(A, B); 2]) -> (A, B) { |(a, b): (A, B)| a }", 0),
        ("fn f(f: impl Fn((A, B)), unit: (), one: (dyn A + B), path: a::B) {}", 0),
        ("fn f(pair: Pair, same: &mut Pair<'_>) {}\ntype Pair<'a> = (A, &'a B);", 2),
        ("fn f(unit: Unit, all: Vec<Pair>) {}\ntype Unit = (); type Pair = (A, B);", 0),
        ("fn f(Point { x, y }: Point, a::Seq(n): a::Seq, [p, q]: [P; 2]) {}", 0),
    ];
    for (text, expected) in cases {
        let source = Source::new("x.rs", text);
        let (functions, aliases) = (functions(&source), tuple_aliases(&source));
        assert_eq!(functions[0].tuple_parameters(&aliases).len(), expected, "{text}: {functions:?}");
    }
}
