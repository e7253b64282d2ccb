//! What a factor was in a run, by the factor's name.

use crate::analysis::Condition;
use crate::error::Failure;
use crate::plan::WaitMode;
use crate::units::human;

/// What `factor` was in a run of `condition`.
pub(super) fn level(condition: &Condition, factor: &str) -> Result<String, Failure> {
    let or_none = |level: Option<String>| level.unwrap_or_else(|| "none".into());
    Ok(match factor {
        "target" => condition.target.clone(),
        "transport" => or_none(condition.transport.clone()),
        "protocol" => or_none(condition.protocol.clone()),
        "size" => or_none(condition.size_bytes.map(|size| human::bytes(size.into()))),
        "schedule" => condition.schedule.clone(),
        "interval" => or_none(condition.interval_ns.map(human::typed_span)),
        "wait" => match condition.wait {
            None => or_none(None),
            Some(WaitMode::Block) => "block".into(),
            Some(WaitMode::Spin) => "spin".into(),
            Some(WaitMode::BusyPoll) => "busy-poll".into(),
        },
        "rate" => or_none(condition.rate.clone()),
        "mode" => or_none(condition.mode.map(|mode| mode.word().into())),
        "flows" => or_none(condition.flows.map(|flows| flows.to_string())),
        "checksum" => or_none(condition.checksum.map(|on| if on { "on" } else { "off" }.into())),
        "via" => or_none(condition.via.map(|via| via.word().into())),
        "source-port" => or_none(condition.source_port.map(|port| port.to_string())),
        "load" if condition.loads.is_empty() => "none".into(),
        "load" => condition.loads.join(" + "),
        _ => match factor.split_once(':') {
            Some(("tag", key)) => or_none(condition.tags.get(key).cloned()),
            Some(("setting", knob)) => or_none(condition.settings.get(knob).cloned()),
            _ => return Err(unknown(factor)),
        },
    })
}

fn unknown(factor: &str) -> Failure {
    const FACTORS: [&str; 14] = [
        "target",
        "transport",
        "protocol",
        "size",
        "schedule",
        "interval",
        "wait",
        "via",
        "rate",
        "mode",
        "flows",
        "checksum",
        "source-port",
        "load",
    ];
    Failure::request(format!("there is no factor `{factor}`"))
        .because(format!("factors are {}, setting:KNOB and tag:KEY", FACTORS.join(", ")))
        .hint(human::suggestion(factor, &FACTORS))
}
