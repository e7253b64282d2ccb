//! The settings of a run: `--set` once for each knob of each end.

use crate::cli::args::SettingArgs;
use crate::cli::value::unusable;
use crate::diagnostics::Failure;
use crate::plan::{SettingSpec, Target};

pub(super) fn settings(typed: &SettingArgs, target: &Target) -> Result<Vec<SettingSpec>, Failure> {
    let one_host = matches!(target, Target::Local | Target::Lab);
    let mut specs: Vec<SettingSpec> = Vec::with_capacity(typed.set.len());
    for spec in typed.set.iter().flatten() {
        if matches!(target, Target::Host { .. }) && spec.ends(false).is_peer() {
            let cause = format!("latlab has no agent on `{target}`, and `latlab serve` changes nothing on its host");
            return Err(unusable("--set", spec, cause, "set it there by hand; `@local` sets it on this host"));
        }
        if specs.iter().any(|other| meet(other, spec, one_host)) {
            let cause = format!("`{}` was set before", spec.setting.knob());
            return Err(unusable("--set", spec, cause, "give each knob once"));
        }
        specs.push(spec.clone());
    }
    Ok(specs)
}

/// Whether both change the same setting at the same end.
fn meet(one: &SettingSpec, other: &SettingSpec, one_host: bool) -> bool {
    let (here, there) = (one.ends(one_host), other.ends(one_host));
    let same_end = (here.is_local() && there.is_local()) || (here.is_peer() && there.is_peer());
    one.setting.knob() == other.setting.knob() && one.interface == other.interface && same_end
}
