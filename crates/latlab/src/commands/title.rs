//! What is about to be measured, in the words in which its summary will say it.

use crate::plan::{Condition, Plan, RunSpec};
use crate::report::{Headline, heading};

/// The heading of the summaries of `plan`; of several runs also how many there are.
pub(super) fn of(plan: &Plan) -> String {
    let conditions: Vec<_> = plan.runs.iter().map(Condition::of).collect();
    let headlines: Vec<_> =
        plan.runs.iter().zip(&conditions).map(|(run, condition)| headline(run, condition)).collect();
    let common = heading(&headlines);
    if plan.runs.len() > 1 { format!("{common} · {} runs", plan.runs.len()) } else { common }
}

fn headline<'a>(run: &RunSpec, condition: &'a Condition) -> Headline<'a> {
    Headline { kind: run.kind(), condition, family: run.family(), stop: run.stop }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::cli::resolve::{self, Environment};

    fn title(line: &str) -> String {
        let typed = format!("latlab ping {line}");
        let cli = crate::cli::parse(typed.split_whitespace().map(Into::into)).expect(line);
        let Command::Ping(args) = cli.command else { panic!("{line}") };
        of(&resolve::ping(&args, &Environment::default()).expect(line).plan)
    }

    #[test]
    fn progress_says_what_the_summary_will_say() {
        for (line, expected) in [
            ("", "ping local · udp ipv4 · 64 B · closed loop · 10 s"),
            ("-6 -i 1ms -n 50 -d 3s", "ping local · udp ipv6 · 64 B · every 1 ms · 50 probes or 3 s"),
            ("-s 64,1024 -n 5", "ping local · udp ipv4 · closed loop · 5 probes · 2 runs"),
            (
                "[::1]:7 --protocol echo -i 1ms --poisson",
                "ping [::1]:7 · udp ipv6 · echo · 64 B · poisson, 1 ms on average · 10 s",
            ),
            ("127.0.0.1", "ping 127.0.0.1:9862 · udp ipv4 · 64 B · closed loop · 10 s"),
            // A name may have addresses of either family; nobody has asked yet.
            ("localhost:7000 --protocol echo", "ping localhost:7000 · udp · echo · 64 B · closed loop · 10 s"),
        ] {
            assert_eq!(title(line), expected, "{line}");
        }
    }
}
