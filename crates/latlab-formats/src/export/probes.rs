//! Answered probes of one run in the forms that scripts of the field read, a line for each. Values are exact.

use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeForm {
    /// `id,roundtrip_time [s]`, with nine decimals.
    RoundtripCsv,
    /// `id t1 t2 t3 t4` in ns, as det-bypass logs them.
    FourTimes,
}

impl ProbeForm {
    /// The line in front of the probes; empty if there is none.
    pub const fn heading(self) -> &'static str {
        match self {
            ProbeForm::RoundtripCsv => "id,roundtrip_time [s]\n",
            ProbeForm::FourTimes => "",
        }
    }

    /// Writes the probe `id` with its four instants in ns: sent, received and sent at the reflector, received. Returns whether
    /// the form can show it.
    ///
    /// # Errors
    /// If the target refuses bytes.
    pub fn write(
        self,
        target: &mut impl Write,
        id: u64,
        sent: i64,
        at: [Option<i64>; 2],
        received: i64,
    ) -> io::Result<bool> {
        match (self, at) {
            (ProbeForm::RoundtripCsv, _) => {
                let value = received.saturating_sub(sent);
                let (sign, value) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
                writeln!(target, "{id},{sign}{}.{:09}", value / 1_000_000_000, value % 1_000_000_000)?;
            }
            (ProbeForm::FourTimes, [Some(arrived), Some(left)]) => {
                writeln!(target, "{id} {sent} {arrived} {left} {received}")?;
            }
            (ProbeForm::FourTimes, _) => return Ok(false),
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
            for (id, at, received) in [(0, [Some(50), Some(1_050)], 297_000), (2, [Some(50), None], 500)] {
                form.write(&mut text, id, 1_000, at, received).expect("memory");
            }
            String::from_utf8(text).expect("text")
        };
        let csv = "id,roundtrip_time [s]\n0,0.000296000\n2,-0.000000500\n";
        assert_eq!(written(ProbeForm::RoundtripCsv), csv);
        assert_eq!(written(ProbeForm::FourTimes), "0 1000 50 1050 297000\n");
    }
}
