//! The parser of `--set KNOB[:DEV][@WHERE]=VALUE`. Whether the host has the knob is checked when the plan is executed.

use super::{Refusal, is_interface_name, refusal};
use crate::plan::{IdleStates, IrqCpus, KNOBS, Setting, SettingSpec, Side, defaults};
use crate::units::human::{nearest, parse_duration, parse_size, suggestion};

/// Value that leaves a setting unchanged: a factor level for the baseline.
const AS_FOUND: &str = "as-found";
const FORM: &str = "`KNOB=VALUE`, such as `governor=performance` or `mtu:eth1@local=9000`";
/// Names of feature groups of `ethtool -K`; other features have the kernel's names.
const FEATURE_GROUPS: [&str; 7] = ["tx-checksum", "rx-checksum", "sg", "tso", "gso", "gro", "lro"];
/// Parameters of `ethtool -C` that delay interrupts.
const COALESCING: [&str; 10] = [
    "rx-usecs",
    "rx-frames",
    "rx-usecs-irq",
    "rx-frames-irq",
    "tx-usecs",
    "tx-frames",
    "tx-usecs-irq",
    "tx-frames-irq",
    "adaptive-rx",
    "adaptive-tx",
];

/// Returns `None` if the setting stays unchanged.
pub fn setting(typed: &str) -> Result<Option<SettingSpec>, Refusal> {
    let refuse = |cause: String, hint: String| refusal(cause, hint);
    let (place, value) = typed.split_once('=').ok_or_else(|| refuse("it has no `=`".into(), FORM.into()))?;
    let (place, side) = match place.split_once('@') {
        None => (place, None),
        Some((place, word)) => {
            let side = Side::from_word(word);
            let unknown = || refuse(format!("there is no end `{word}`"), "`@local`, `@peer` or `@both`".into());
            (place, Some(side.ok_or_else(unknown)?))
        }
    };
    let (knob, interface) = place.split_once(':').map_or((place, None), |(knob, name)| (knob, Some(name)));
    if !KNOBS.contains(&knob) {
        return Err(refuse(format!("there is no knob `{knob}`"), suggestion(knob, &KNOBS)));
    }
    if let Some((value, end)) = value.rsplit_once('@').filter(|(_, end)| Side::from_word(end).is_some()) {
        return Err(refuse("the end stands before the `=`".into(), format!("`{knob}@{end}={value}`")));
    }
    if value == AS_FOUND {
        return Ok(None);
    }
    let setting = read(knob, value)?;
    if let Some(name) = interface {
        if !setting.is_of_an_interface() {
            return Err(refuse(format!("`{knob}` does not belong to an interface"), format!("`{knob}={value}`")));
        }
        if !is_interface_name(name) {
            return Err(refuse(format!("`{name}` is not a valid interface name"), FORM.into()));
        }
    }
    Ok(Some(SettingSpec { setting, interface: interface.map(str::to_owned), side }))
}

fn read(knob: &str, value: &str) -> Result<Setting, Refusal> {
    Ok(match knob {
        "governor" => Setting::Governor(governor(value)?),
        "cpu-dma-latency" => Setting::CpuDmaLatency(micros(value)?),
        "idle-states" => Setting::IdleStates(idle_states(value)?),
        "timer-slack" => Setting::TimerSlack(timer_slack(value)?),
        "irq-affinity" => Setting::IrqAffinity(irqs(value)?),
        "rt-runtime" if value == "-1" => Setting::RtRuntime(-1),
        "rt-runtime" => Setting::RtRuntime(micros(value)?.into()),
        "busy-poll" => Setting::BusyPoll(micros(value)?),
        "coalesce" => Setting::Coalesce(pairs(value, parameter)?),
        "offload" => Setting::Offload(pairs(value, feature)?),
        "mtu" => Setting::Mtu(size(value, defaults::MTU_MIN_BYTES)?),
        _ => Setting::SocketBuffer(size(value, 1)?),
    })
}

/// Parses a number in the kernel's unit or a duration; the result is in units of `unit_ns`.
fn span(value: &str, unit_ns: u64, unit: &str) -> Result<u64, Refusal> {
    if let Ok(number) = value.parse::<u64>() {
        return Ok(number);
    }
    let hint = format!("a whole number of {unit}, or a time such as `50us`");
    let read = parse_duration(value).map_err(|error| refusal(error.cause, hint.clone()))?;
    let whole = u64::try_from(read.0).ok().filter(|ns| ns.is_multiple_of(unit_ns));
    whole.map(|ns| ns / unit_ns).ok_or_else(|| refusal(format!("it is finer than {unit}"), hint))
}

fn micros(value: &str) -> Result<u32, Refusal> {
    let longest = defaults::SETTING_MICROS_MAX;
    let read = span(value, 1_000, "microseconds")?;
    let fitting = u32::try_from(read).ok().filter(|us| *us <= longest);
    fitting.ok_or_else(|| refusal(format!("it is more than {longest} µs"), "check the unit"))
}

fn timer_slack(value: &str) -> Result<u64, Refusal> {
    let longest = u64::from(defaults::SETTING_MICROS_MAX) * 1_000;
    match span(value, 1, "nanoseconds")? {
        0 => Err(refusal("0 stands for the default slack", "the minimum is `1ns`")),
        ns if ns > longest => Err(refusal(format!("it is more than {longest} ns"), "check the unit")),
        ns => Ok(ns),
    }
}

fn governor(value: &str) -> Result<String, Refusal> {
    let known = |c: char| c.is_ascii_lowercase() || c == '_';
    if !value.is_empty() && value.chars().all(known) {
        Ok(value.to_owned())
    } else {
        Err(refusal("no governor has such a name", "such as `performance` or `powersave`"))
    }
}

fn idle_states(value: &str) -> Result<IdleStates, Refusal> {
    let hint = "`none`, `max-us:N` or `off:NAME[,NAME…]`";
    match value.split_once(':') {
        None if value == "none" => Ok(IdleStates::MaxUs(0)),
        Some(("max-us", us)) => match us.parse() {
            Ok(us) => Ok(IdleStates::MaxUs(us)),
            Err(_) => Err(refusal(format!("`{us}` is not a whole number of microseconds"), hint)),
        },
        Some(("off", names)) if names.split(',').all(|name| !name.is_empty()) => {
            Ok(IdleStates::Off(names.split(',').map(str::to_owned).collect()))
        }
        _ => Err(refusal("it does not name the states to disable", hint)),
    }
}

/// Parses `24:0-1,3,25:2`: a part with a colon begins the next interrupt.
fn irqs(value: &str) -> Result<Vec<IrqCpus>, Refusal> {
    let refuse = |cause: String| refusal(cause, "`IRQ:CPUS`, such as `24:0-1`; several: `24:0-1,25:2`");
    let mut irqs: Vec<IrqCpus> = Vec::new();
    for part in value.split(',') {
        let cpus = match part.split_once(':') {
            Some((irq, cpus)) => {
                let irq = irq.parse().map_err(|_| refuse(format!("`{irq}` is not the number of an interrupt")))?;
                if irqs.iter().any(|known| known.irq == irq) {
                    return Err(refuse(format!("interrupt {irq} is given twice")));
                }
                irqs.push(IrqCpus { irq, cpus: Vec::new() });
                cpus
            }
            None => part,
        };
        let current = irqs.last_mut().ok_or_else(|| refuse("it names no interrupt".into()))?;
        let (first, last) = cpus.split_once('-').unwrap_or((cpus, cpus));
        let number = |text: &str| text.parse::<u16>().ok().filter(|cpu| *cpu <= defaults::CPU_MAX);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => current.cpus.extend(first..=last),
            _ => return Err(refuse(format!("`{cpus}` is neither a CPU nor a range of them"))),
        }
    }
    for irq in &mut irqs {
        irq.cpus.sort_unstable();
        irq.cpus.dedup();
    }
    Ok(irqs)
}

/// Parses `NAME:VALUE[,NAME:VALUE…]`; refuses repeated names.
fn pairs<T>(value: &str, read: fn(&str, &str) -> Result<T, Refusal>) -> Result<Vec<(String, T)>, Refusal> {
    let mut pairs: Vec<(String, T)> = Vec::new();
    for part in value.split(',') {
        let missing = || refusal(format!("`{part}` is not `NAME:VALUE`"), "`NAME:VALUE[,NAME:VALUE…]`");
        let (name, text) = part.split_once(':').ok_or_else(missing)?;
        if pairs.iter().any(|(known, _)| known == name) {
            return Err(refusal(format!("`{name}` is given twice"), "give each name once"));
        }
        pairs.push((name.to_owned(), read(name, text)?));
    }
    Ok(pairs)
}

fn feature(name: &str, text: &str) -> Result<bool, Refusal> {
    let group = FEATURE_GROUPS.contains(&name);
    let slip = nearest(name, &FEATURE_GROUPS).filter(|meant| meant.len().abs_diff(name.len()) < 2);
    // All feature names of the kernel but two contain a dash.
    let a_feature = (name.contains('-') && slip.is_none()) || matches!(name, "highdma" | "loopback");
    if !group && !a_feature {
        return Err(refusal(format!("there is no feature `{name}`"), suggestion(name, &FEATURE_GROUPS)));
    }
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(refusal(format!("`{other}` is neither `on` nor `off`"), format!("`{name}:off`"))),
    }
}

fn parameter(name: &str, text: &str) -> Result<u32, Refusal> {
    if !COALESCING.contains(&name) {
        return Err(refusal(format!("there is no parameter `{name}`"), suggestion(name, &COALESCING)));
    }
    match (name.starts_with("adaptive"), text) {
        (true, "on") => Ok(1),
        (true, "off") => Ok(0),
        (true, _) => Err(refusal(format!("`{text}` is neither `on` nor `off`"), format!("`{name}:off`"))),
        (false, number) => {
            number.parse().map_err(|_| refusal(format!("`{number}` is not a whole number"), format!("`{name}:0`")))
        }
    }
}

fn size(value: &str, least: u32) -> Result<u32, Refusal> {
    let read = parse_size(value).map_err(|error| refusal(error.cause, error.hint))?;
    match read {
        bytes if bytes < least => Err(refusal(format!("the minimum is `{least}B`"), "such as `9000` or `4MiB`")),
        bytes if i32::try_from(bytes).is_err() => Err(refusal("the kernel counts up to 2147483647", "check the unit")),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests;
