//! Conditions that set what was so before: they are the same as those that leave it as it was found.

use std::collections::BTreeSet;
use std::path::Path;

use super::runs;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::ExperimentState;
use crate::facts::SettingFacts;
use crate::plan::Factors;
use crate::recording::Recording;

/// Of a recipe, tells of each condition whose knob of the name `knob` had its value already.
pub(super) fn warn(directory: &Path, standing: &ExperimentState, knob: &str, console: &Console) -> Result<(), Failure> {
    if standing.recipe.is_none() {
        return Ok(());
    }
    let mut seen: BTreeSet<&Factors> = BTreeSet::new();
    let mut places: BTreeSet<String> = BTreeSet::new();
    for (_, name) in runs::judged(standing).filter(|(run, _)| seen.insert(&run.key.factors)) {
        let recording = Recording::open(&directory.join("runs").join(name))?;
        places.extend(unchanged(&recording.manifest().settings, knob));
    }
    for place in places {
        console.warning(
            &format!("{place} before anything was set: rows with and without it are the same here"),
            Some("switch it on where it is off, and measure again: `ethtool -K`"),
        );
    }
    Ok(())
}

/// Where and what, if all that `knob` was to change was so before.
fn unchanged(settings: &[SettingFacts], knob: &str) -> Option<String> {
    let mut ours = settings.iter().filter(|fact| fact.setting.starts_with(knob)).peekable();
    let first = *ours.peek()?;
    ours.all(|fact| fact.before == fact.set).then(|| format!("`{}` was `{}`", first.place, first.before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_so_before_is_no_change() {
        let fact = |setting: &str, before: &str, set: &str| SettingFacts {
            setting: setting.into(),
            at: "local".into(),
            place: "eth0 tx-checksum-ipv4".into(),
            places: 1,
            root: None,
            before: before.into(),
            set: set.into(),
            read_back: None,
            ended: None,
        };
        let mtu = || fact("mtu=16384", "1500", "16384");
        let offload = |before| fact("offload@both=tx-checksum:off", before, "tx-checksum-ipv4:off");
        assert_eq!(unchanged(&[], "offload"), None);
        assert_eq!(unchanged(&[mtu()], "offload"), None);
        assert_eq!(unchanged(&[mtu(), offload("tx-checksum-ipv4:on")], "offload"), None);
        let told = unchanged(&[mtu(), offload("tx-checksum-ipv4:off")], "offload").expect("it was off");
        assert_eq!(told, "`eth0 tx-checksum-ipv4` was `tx-checksum-ipv4:off`");
        let both = [offload("tx-checksum-ipv4:off"), offload("tx-checksum-ipv4:on")];
        assert_eq!(unchanged(&both, "offload"), None, "one end was changed");
    }
}
