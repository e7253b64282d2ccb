//! Probes of one run in the forms that scripts of the field read. Values are exact.

use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeForm {
    /// `id,roundtrip_time [s]`, with nine decimals.
    RoundtripCsv,
    /// `id t1 t2 t3 t4` in ns, as det-bypass logs them.
    FourTimes,
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
        }
    }

    /// Writes a probe. Returns whether the form can show it.
    ///
    /// # Errors
    /// If the target refuses bytes.
    pub fn write(self, target: &mut impl Write, probe: ExportedProbe) -> io::Result<bool> {
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
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_the_probes_that_it_can_show() {
        let written = |form: ProbeForm| {
            let mut text = form.heading().as_bytes().to_vec();
            for (id, left, received) in [(0, Some(1_050), 297_000), (2, None, 500)] {
                let probe = ExportedProbe { id, sent: 1_000, at_reflector: [Some(50), left], received: Some(received) };
                form.write(&mut text, probe).expect("memory");
            }
            String::from_utf8(text).expect("text")
        };
        let csv = "id,roundtrip_time [s]\n0,0.000296000\n2,-0.000000500\n";
        assert_eq!(written(ProbeForm::RoundtripCsv), csv);
        assert_eq!(written(ProbeForm::FourTimes), "0 1000 50 1050 297000\n");
    }
}
