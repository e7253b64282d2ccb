//! Something for each CPU.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

/// CPU → something, in JSON an object whose keys are the CPUs' numbers.
///
/// A type of its own, because serde cannot read a map with numbers for keys back from inside of a tagged enum
/// (its buffer keeps the keys as words), and facts travel in messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, T>")]
pub struct ByCpu<T>(BTreeMap<u16, T>);

impl<T> Default for ByCpu<T> {
    fn default() -> Self {
        ByCpu(BTreeMap::new())
    }
}

impl<T> Deref for ByCpu<T> {
    type Target = BTreeMap<u16, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for ByCpu<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<T> FromIterator<(u16, T)> for ByCpu<T> {
    fn from_iter<I: IntoIterator<Item = (u16, T)>>(pairs: I) -> Self {
        ByCpu(pairs.into_iter().collect())
    }
}

impl<T> TryFrom<BTreeMap<String, T>> for ByCpu<T> {
    type Error = String;

    fn try_from(named: BTreeMap<String, T>) -> Result<Self, String> {
        let numbered =
            |(name, value): (String, T)| Ok((name.parse().map_err(|_| format!("`{name}` is no CPU"))?, value));
        named.into_iter().map(numbered).collect::<Result<_, String>>().map(ByCpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_survive_the_way_through_a_tagged_message() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        enum Message {
            Counts { counts: ByCpu<u64> },
        }
        let message = Message::Counts { counts: [(0, 7), (11, 8)].into_iter().collect() };
        let text = serde_json::to_string(&message).expect("plain data");
        assert_eq!(text, r#"{"kind":"Counts","counts":{"0":7,"11":8}}"#);
        assert_eq!(serde_json::from_str::<Message>(&text).expect("the same"), message);
        assert!(serde_json::from_str::<ByCpu<u64>>(r#"{"one":7}"#).is_err());
    }
}
