//! Settings left on a fake host by a killed latlab: restored and reported by later commands.

use crate::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![case("doctor/restore", &["inputs/host"], RESTORE)]
}

/// A journal of this boot, one of an earlier boot, and two that cannot be read.
const RESTORE: &str = r#"
LATLAB_HOST_ROOT=DIR/host doctor --restore
LATLAB_HOST_ROOT=DIR/host doctor --restore --json
write state/journal/4194303-1.json {"format":"latlab.journal/1","owner":{"pid":4194303,"started_ticks":1,"boot_id":"BOOT-ID"},"root":"DIR/host","entries":[{"setting":"governor=performance","knob":{"kind":"governor","policy":0},"network":null,"before":"ondemand","ours":"performance"},{"setting":"rt-runtime=-1","knob":{"kind":"rt-runtime"},"network":null,"before":"950000","ours":"-1"}]}
LATLAB_HOST_ROOT=DIR/host doctor --restore
cat host/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
write state/journal/4194303-1.json {"format":"latlab.journal/1","owner":{"pid":4194303,"started_ticks":1,"boot_id":"BOOT-ID"},"root":"DIR/host","entries":[{"setting":"governor=performance","knob":{"kind":"governor","policy":0},"network":null,"before":"ondemand","ours":"performance"},{"setting":"rt-runtime=-1","knob":{"kind":"rt-runtime"},"network":null,"before":"950000","ours":"-1"}]}
write host/proc/sys/kernel/sched_rt_runtime_us 500000\n
write host/sys/devices/system/cpu/cpufreq/policy0/scaling_governor performance\n
LATLAB_HOST_ROOT=DIR/host doctor --restore --json
write state/journal/4194303-1.json {"format":"latlab.journal/1","owner":{"pid":4194303,"started_ticks":1,"boot_id":"BOOT-ID"},"root":"DIR/host","entries":[{"setting":"governor=performance","knob":{"kind":"governor","policy":0},"network":null,"before":"ondemand","ours":"performance"},{"setting":"rt-runtime=-1","knob":{"kind":"rt-runtime"},"network":null,"before":"950000","ours":"-1"}]}
write host/sys/devices/system/cpu/cpufreq/policy0/scaling_governor performance\n
LATLAB_HOST_ROOT=DIR/host list
write state/journal/4194303-1.json {"format":"latlab.journal/1","owner":{"pid":4194303,"started_ticks":1,"boot_id":"00000000-0000-4000-8000-000000000001"},"root":"DIR/host","entries":[{"setting":"governor=performance","knob":{"kind":"governor","policy":0},"network":null,"before":"ondemand","ours":"performance"},{"setting":"rt-runtime=-1","knob":{"kind":"rt-runtime"},"network":null,"before":"950000","ours":"-1"}]}
LATLAB_HOST_ROOT=DIR/host doctor --restore
write state/journal/4194303-1.json not a journal
LATLAB_HOST_ROOT=DIR/host doctor --restore
LATLAB_HOST_ROOT=DIR/host doctor --restore --json
list
write state/journal/4194303-1.json {"format":"latlab.journal/9","owner":{"pid":4194303,"started_ticks":1,"boot_id":"BOOT-ID"},"root":"DIR/host","entries":[]}
LATLAB_HOST_ROOT=DIR/host doctor --restore
"#;
