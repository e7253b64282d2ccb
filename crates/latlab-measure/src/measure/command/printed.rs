//! The numbers in the output of a command.

use regex_lite::Regex;
use serde_json::Value;

/// Where numbers stand in an output.
#[derive(Debug)]
pub enum OutputPattern {
    Pointer(String),
    Lines,
    Regex(Regex),
}

impl OutputPattern {
    /// Parses a JSON pointer, `*`, or a regular expression.
    ///
    /// # Errors
    /// Why a regular expression cannot be used.
    pub fn parse(text: &str) -> Result<OutputPattern, String> {
        if text.starts_with('/') {
            return Ok(OutputPattern::Pointer(text.into()));
        }
        if text == "*" {
            return Ok(OutputPattern::Lines);
        }
        let regex = Regex::new(text).map_err(|error| error.to_string())?;
        match regex.captures_len() - 1 {
            1 => Ok(OutputPattern::Regex(regex)),
            groups => Err(format!("the regular expression has {groups} groups instead of one, as in `([0-9.]+)`")),
        }
    }

    /// The numbers in `output`, at least one, times `factor`, all of them finite.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn numbers(&self, output: &[u8], factor: f64) -> Result<Vec<f64>, String> {
        let text = String::from_utf8_lossy(output);
        let is_number = |line: &&str| line.trim().parse::<f64>().is_ok();
        let texts: Vec<String> = match self {
            OutputPattern::Pointer(pointer) => {
                let document = serde_json::from_slice::<Value>(output);
                let document =
                    document.map_err(|error| format!("its standard output is not a JSON document: {error}"))?;
                let of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                match document.pointer(pointer) {
                    Some(Value::Array(values)) => values.iter().map(of).collect(),
                    found => found.map(of).into_iter().collect(),
                }
            }
            OutputPattern::Lines => text.lines().filter(is_number).map(str::to_owned).collect(),
            OutputPattern::Regex(regex) => {
                regex.captures_iter(&text).filter_map(|found| Some(found.get(1)?.as_str().to_owned())).collect()
            }
        };
        if texts.is_empty() {
            return Err("its standard output has no match".into());
        }
        let number = |text: &String| text.trim().parse().ok().map(|number: f64| number * factor);
        let finite =
            |text: &String| number(text).filter(|it| it.is_finite()).ok_or_else(|| format!("`{text}` is not a number"));
        texts.iter().map(finite).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_pointer_line_or_group() {
        let found = |pattern: &str, output: &[u8]| OutputPattern::parse(pattern)?.numbers(output, 2.0);
        let json = br#"{"a": {"p99": 1.5, "text": "-2e3", "all": [1, "2"], "no": true}}"#;
        for (pattern, output, expected) in [
            ("/a/p99", &json[..], Ok(vec![3.0])),
            ("/a/text", json, Ok(vec![-4e3])),
            ("/a/all", json, Ok(vec![2.0, 4.0])),
            ("*", b"head\n 1\n\n2.5 \n", Ok(vec![2.0, 5.0])),
            (r"took ([0-9.]+) s", b"took 1 s, \xff took 2.5 s", Ok(vec![2.0, 5.0])),
            ("/a/no", json, Err("`true` is not a number")),
            ("/b", json, Err("has no match")),
            ("/a", b"{\"a\": 1}\xff", Err("is not a JSON document")),
            ("*", b"none", Err("has no match")),
            ("*", b"1\nnan", Err("`nan` is not a number")),
            ("(inf)", b"inf", Err("`inf` is not a number")),
            (r"=(\S+)", b"=x", Err("`x` is not a number")),
            ("(a)(b)", b"", Err("the regular expression has 2 groups instead of one")),
            ("(", b"", Err("")),
        ] {
            match (found(pattern, output), expected) {
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{pattern}: {found}"),
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{pattern}"),
            }
        }
    }
}
