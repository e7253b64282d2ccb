//! What became of the settings of a run, where that matters to a reader or to the host.

use crate::diagnostics::{Caveat, Severity};
use crate::facts::{Restoration, SettingFacts};
use crate::plan::Side;
use crate::recording::manifest::Manifest;

/// The caveats of what was set.
pub(super) fn derive(manifest: &Manifest) -> Vec<Caveat> {
    manifest.settings.iter().filter_map(caveat).collect()
}

/// Whether the run itself kept the CPUs of the host at that end out of deep idle states.
pub(super) fn keeps_awake(manifest: &Manifest, end: Side) -> bool {
    let one_host = manifest.spec.target.is_this_host();
    manifest.settings.iter().filter(|fact| one_host || fact.at == end.word()).any(|fact| {
        let (knob, value) = fact.setting.split_once('=').unwrap_or((&fact.setting, ""));
        let knob = knob.split_once('@').map_or(knob, |(knob, _)| knob);
        matches!((knob, value), ("cpu-dma-latency", "0us") | ("idle-states", "max-us:0"))
    })
}

fn caveat(fact: &SettingFacts) -> Option<Caveat> {
    let SettingFacts { setting, at, place, before, ended, .. } = fact;
    match ended.as_ref()? {
        Restoration::Restored => None,
        Restoration::Changed { found } => Some(Caveat::new(
            Severity::Warning,
            "setting-changed",
            format!("`{setting}` did not hold to the end: somebody changed `{place}` ({found})"),
            "part of the run may have been measured without it",
            format!("it was left as found; before the run it was `{before}`"),
        )),
        Restoration::Failed { reason } => Some(Caveat::new(
            Severity::Warning,
            "setting-not-restored",
            format!("`{place}` could not be put back to `{before}` after `{setting}`: {reason}"),
            "the figures hold; the host is not as it was",
            match at.as_str() {
                "peer" => "`latlab doctor --restore` on the peer's host tries again",
                _ => "`latlab doctor --restore` tries again",
            },
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory};

    #[test]
    fn only_what_went_wrong_is_told() {
        let fact = |ended| SettingFacts {
            setting: "governor=performance".into(),
            at: "local".into(),
            place: "/sys/x".into(),
            places: 4,
            root: None,
            before: "ondemand".into(),
            set: "performance".into(),
            read_back: Some("performance".into()),
            ended,
        };
        for (ended, code) in [
            (None, None),
            (Some(Restoration::Restored), None),
            (Some(Restoration::Changed { found: "schedutil".into() }), Some("setting-changed")),
            (Some(Restoration::Failed { reason: "gone".into() }), Some("setting-not-restored")),
        ] {
            let mut manifest = InMemory::of(CLOSED, Vec::new()).manifest;
            manifest.settings = vec![fact(ended)];
            let codes: Vec<_> = derive(&manifest).into_iter().map(|caveat| caveat.code).collect();
            assert_eq!(codes.first().map(String::as_str), code);
            assert!(!keeps_awake(&manifest, Side::Local));
        }
    }
}
