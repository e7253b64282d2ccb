//! Probes of one run in the forms that scripts of the field read. Values are exact.

use std::io::{self, Write};

use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeForm {
    /// `id,roundtrip_time [s]`, with nine decimals.
    RoundtripCsv,
    /// `id t1 t2 t3 t4` in ns, as det-bypass logs them.
    FourTimes,
    /// The document of `irtt client -o`, with the members that stand for probes; it has those that were lost too.
    IrttJson,
}

/// A measured probe, with instants in ns.
#[derive(Clone, Copy, Debug)]
pub struct ExportedProbe {
    pub id: u64,
    pub sent: i64,
    /// When the reflector received it and answered.
    pub at_reflector: [Option<i64>; 2],
    /// `None`: it was lost or late.
    pub received: Option<i64>,
}

impl ProbeForm {
    pub const fn heading(self) -> &'static str {
        match self {
            ProbeForm::RoundtripCsv => "id,roundtrip_time [s]\n",
            ProbeForm::FourTimes => "",
            ProbeForm::IrttJson => "{\"version\":{\"irtt\":\"0.9.1\",\"json_format\":1},\"round_trips\":[",
        }
    }

    /// Writes the `number`th probe. Returns whether the form can show it.
    ///
    /// # Errors
    /// If the target refuses bytes.
    pub fn write(self, target: &mut impl Write, number: u64, probe: ExportedProbe) -> io::Result<bool> {
        let ExportedProbe { id, sent, at_reflector: [arrived, left], received } = probe;
        match (self, arrived, left, received) {
            (ProbeForm::RoundtripCsv, .., Some(received)) => {
                let value = received.saturating_sub(sent);
                let (sign, value) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
                writeln!(target, "{id},{sign}{}.{:09}", value / 1_000_000_000, value % 1_000_000_000)?;
            }
            (ProbeForm::FourTimes, Some(arrived), Some(left), Some(received)) => {
                writeln!(target, "{id} {sent} {arrived} {left} {received}")?;
            }
            (ProbeForm::IrttJson, ..) => {
                let at = |receive: Option<i64>, send| json!({ "receive": { "monotonic": receive }, "send": { "monotonic": send } });
                let dwell = left.zip(arrived).map_or(0, |(left, arrived)| left.saturating_sub(arrived));
                let round_trip = received.map(|received| received.saturating_sub(sent).saturating_sub(dwell));
                let stamps = json!({ "client": at(received, Some(sent)), "server": at(arrived, left) });
                let lost = if received.is_some() { "false" } else { "true" };
                let delay = json!({ "rtt": round_trip });
                let trip = json!({ "seqno": number, "lost": lost, "timestamps": stamps, "delay": delay });
                write!(target, "{}{trip}", if number == 0 { "\n" } else { ",\n" })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes what stands behind `sent` probes, of which so many were `answered`.
    ///
    /// # Errors
    /// If the target refuses bytes.
    pub fn end(self, target: &mut impl Write, sent: u64, answered: u64) -> io::Result<()> {
        if self != ProbeForm::IrttJson {
            return Ok(());
        }
        writeln!(target, "\n],\"stats\":{{\"packets_sent\":{sent},\"packets_received\":{answered}}}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_the_probes_that_it_can_show() {
        let written = |form: ProbeForm| {
            let mut text = form.heading().as_bytes().to_vec();
            for (number, id, left, received) in [(0, 0, Some(1_050), 297_000), (1, 2, None, 500)] {
                let probe = ExportedProbe { id, sent: 1_000, at_reflector: [Some(50), left], received: Some(received) };
                form.write(&mut text, number, probe).expect("memory");
            }
            String::from_utf8(text).expect("text")
        };
        let csv = "id,roundtrip_time [s]\n0,0.000296000\n2,-0.000000500\n";
        assert_eq!(written(ProbeForm::RoundtripCsv), csv);
        assert_eq!(written(ProbeForm::FourTimes), "0 1000 50 1050 297000\n");
    }
}
