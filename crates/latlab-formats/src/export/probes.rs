//! Probes of one run in the forms that scripts of the field read: a line for each, or the JSON of irtt. Values are exact.

use std::io::{self, Write};

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeForm {
    /// `id,roundtrip_time [s]`, with nine decimals.
    RoundtripCsv,
    /// `id t1 t2 t3 t4` in ns, as det-bypass logs them.
    FourTimes,
    /// Those members of the JSON of irtt (json_format 1) that the probes have; `seqno` counts those that were sent.
    IrttJson,
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentProbe {
    pub seq: u64,
    /// ns of the sender's clock.
    pub sent_ns: i64,
    /// The same, if it was answered in time.
    pub received_ns: Option<i64>,
    /// ns of the reflector's clock.
    pub reflector_received_ns: Option<i64>,
    pub reflector_sent_ns: Option<i64>,
}

/// What the JSON of irtt states about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IrttRun {
    /// In RFC 3339.
    pub started_at: String,
    pub size_bytes: Option<i64>,
    pub interval_ns: Option<i64>,
    /// The wall clock less the sender's clock, ns; `None` if unknown.
    pub wall_less_clock_ns: Option<i64>,
    /// Whether the reflector's clock is that of the sender.
    pub is_one_clock: bool,
}

/// Writes the probes of a run to `W`.
pub struct ProbesWriter<W> {
    target: W,
    form: ProbeForm,
    run: IrttRun,
    sent: u64,
    answered: u64,
}

impl<W: Write> ProbesWriter<W> {
    /// Writes what stands in front of the probes.
    ///
    /// # Errors
    /// If the target refuses bytes; so for all methods.
    pub fn new(mut target: W, form: ProbeForm, run: IrttRun) -> io::Result<ProbesWriter<W>> {
        match form {
            ProbeForm::RoundtripCsv => target.write_all(b"id,roundtrip_time [s]\n")?,
            ProbeForm::FourTimes => {}
            ProbeForm::IrttJson => {
                let member = |name: &str, value: Option<i64>| value.map(|value| format!("\"{name}\":{value}"));
                let params = [member("length", run.size_bytes), member("interval", run.interval_ns)];
                let params: Vec<String> = params.into_iter().flatten().collect();
                writeln!(target, "{IRTT_BEGIN}{}}}}},\n\"round_trips\":[", params.join(","))?;
            }
        }
        Ok(ProbesWriter { target, form, run, sent: 0, answered: 0 })
    }

    /// Writes `probe`; returns whether the form can show it.
    pub fn append(&mut self, probe: &SentProbe) -> io::Result<bool> {
        let round_trip_ns = probe.received_ns.map(|received| received.saturating_sub(probe.sent_ns));
        let (id, sent) = (probe.seq, probe.sent_ns);
        match (self.form, round_trip_ns) {
            (ProbeForm::RoundtripCsv, Some(value)) => {
                let (sign, value) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
                writeln!(self.target, "{id},{sign}{}.{:09}", value / 1_000_000_000, value % 1_000_000_000)?;
            }
            (ProbeForm::FourTimes, Some(_)) => {
                let at_reflector = probe.reflector_received_ns.zip(probe.reflector_sent_ns);
                let (Some((arrived, left)), Some(received)) = (at_reflector, probe.received_ns) else {
                    return Ok(false);
                };
                writeln!(self.target, "{id} {sent} {arrived} {left} {received}")?;
            }
            (ProbeForm::IrttJson, round_trip_ns) => {
                let comma = if self.sent > 0 { ",\n" } else { "" };
                let trip = self.irtt_trip(probe, round_trip_ns);
                self.target.write_all([comma, &trip].concat().as_bytes())?;
            }
            _ => return Ok(false),
        }
        self.sent += 1;
        self.answered += u64::from(round_trip_ns.is_some());
        Ok(true)
    }

    fn irtt_trip(&self, probe: &SentProbe, round_trip_ns: Option<i64>) -> String {
        let wall = self.run.wall_less_clock_ns;
        let end = |received: Option<i64>, sent: Option<i64>, wall: Option<i64>| {
            let stamp = |name: &str, ns: Option<i64>| {
                let ns = ns?;
                let wall = wall.map(|wall| format!("\"wall\":{},", ns.saturating_add(wall))).unwrap_or_default();
                Some(format!("\"{name}\":{{{wall}\"monotonic\":{ns}}}"))
            };
            [stamp("receive", received), stamp("send", sent)].into_iter().flatten().collect::<Vec<_>>().join(",")
        };
        let client = end(probe.received_ns, Some(probe.sent_ns), wall);
        let [arrived, left] = [probe.reflector_received_ns, probe.reflector_sent_ns];
        let server = end(arrived, left, wall.filter(|_| self.run.is_one_clock));
        let dwell_ns = arrived.zip(left).map_or(0, |(arrived, left)| left.saturating_sub(arrived));
        let delay =
            round_trip_ns.map(|value| format!("\"rtt\":{}", value.saturating_sub(dwell_ns))).unwrap_or_default();
        format!(
            "{{\"seqno\":{},\"lost\":\"{}\",\"timestamps\":{{\"client\":{{{client}}},\"server\":{{{server}}}}},\
             \"delay\":{{{delay}}}}}",
            self.sent,
            round_trip_ns.is_none()
        )
    }

    pub fn finish(mut self) -> io::Result<()> {
        if self.form == ProbeForm::IrttJson {
            let (sent, answered, start) = (self.sent, self.answered, &self.run.started_at);
            let lost = sent - answered;
            writeln!(
                self.target,
                "],\n\"stats\":{{\"start_time\":\"{start}\",\"packets_sent\":{sent},\"packets_received\":{answered},\
                 \"packets_lost\":{lost}}}}}"
            )?;
        }
        self.target.flush()
    }
}

/// How the JSON of irtt begins, by which a file is known as such an export.
pub const IRTT_BEGIN: &str = concat!(
    "{\"version\":{\"latlab\":\"",
    env!("CARGO_PKG_VERSION"),
    "\",\"json_format\":1},\n\"config\":{\"params\":{"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: ProbeForm) -> String {
        let run = IrttRun {
            started_at: "2026-01-02T03:04:05Z".into(),
            size_bytes: Some(64),
            wall_less_clock_ns: Some(1_000_000),
            ..IrttRun::default()
        };
        let answered = SentProbe {
            seq: 0,
            sent_ns: 1_000,
            received_ns: Some(297_000),
            reflector_received_ns: Some(50),
            reflector_sent_ns: Some(1_050),
        };
        let probes = [
            answered,
            SentProbe { seq: 1, received_ns: None, ..answered },
            SentProbe { seq: 2, reflector_sent_ns: None, received_ns: Some(500), ..answered },
        ];
        let mut text = Vec::new();
        let mut writer = ProbesWriter::new(&mut text, form, run).expect("memory");
        for probe in &probes {
            writer.append(probe).expect("memory");
        }
        writer.finish().expect("memory");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn each_form_has_the_probes_that_it_can_show() {
        let csv = "id,roundtrip_time [s]\n0,0.000296000\n2,-0.000000500\n";
        assert_eq!(written(ProbeForm::RoundtripCsv), csv);
        assert_eq!(written(ProbeForm::FourTimes), "0 1000 50 1050 297000\n");
        let json: serde_json::Value = serde_json::from_str(&written(ProbeForm::IrttJson)).expect("JSON");
        let trips = json["round_trips"].as_array().expect("an array");
        assert_eq!((trips.len(), &trips[1]["lost"]), (3, &"true".into()));
        assert_eq!(
            (&trips[0]["timestamps"]["client"]["send"]["wall"], &trips[0]["delay"]["rtt"]),
            (&1_001_000.into(), &295_000.into())
        );
        assert_eq!((&json["stats"]["packets_sent"], &json["stats"]["packets_lost"]), (&3.into(), &1.into()));
    }
}
