//! Outputs of tools that have figures and no samples: what they are, and which option of the tool writes samples.

use memchr::memmem;

use super::{LogFault, LogHead};

/// Texts that are all in the beginning of an output, what it is, and what to do instead.
const UNSAMPLED: &[(&[&str], &str, &str)] = &[
    (&["sockperf: ", "observation"], "sockperf's summary", "`sockperf … --full-log FILE` writes them"),
    (&["seq=", " rd=", " ipdv="], "irtt's text, not its JSON document", "`irtt client -o FILE` writes them"),
    (&["ay Latency:", " us  Ave "], "RTI Perftest's legacy output, with samples", "`-outputFormat json` since 3.1"),
    (&["Thread Stats   Avg"], "wrk's report", "`wrk2 --latency` writes a table of percentiles that is read"),
    (&["    latency  ="], "qperf's report", "it writes none: `sockperf ping-pong --full-log FILE` or `latlab ping` do"),
    (&["REQUEST/RESPONSE TEST from"], "netperf's report", NETPERF),
    (&["OMNI Send|Receive TEST from"], "netperf's report", NETPERF),
    (&["Percentile Latency Microseconds"], "netperf's report", NETPERF),
    (&["_LATENCY="], "netperf's report", NETPERF),
    (&["Minimum = ", "us, Maximum = "], "lagscope's report", "`lagscope -s… -RFILE` writes them"),
    (&["--- owping statistics from"], "owping's summary", OWPING),
    (&["us min ", "us 50% ", "us max "], "ddsperf's report", "it writes none: `latlab ping --transport dds` does"),
    (&["latency_mean"], "performance_test's statistics", "it writes none: `latlab ping --transport dds` does"),
    (&["http_req_duration", "avg=", "p(95)="], "k6's summary", "`k6 run --out csv=FILE` writes them"),
    (&["metric_name,timestamp,metric_value"], "k6's CSV file, with samples of many metrics", K6),
    (&["Response time histogram:", "Requests/sec:"], "hey's report", "`hey -o csv` writes them"),
    (&["Latencies     [min"], "vegeta's report", "`vegeta encode --to csv RESULTS` writes them"),
    (&["This is ApacheBench"], "ab's report", "`ab -g FILE` writes them: `--column ttime --unit ms`"),
    (&["Loss%", "Snt", "Wrst"], "mtr's report", MTR),
    (&["\"mtr\": {"], "mtr's report", MTR),
    (&["\nh 0 ", "\np 0 "], "mtr's raw output, with samples of every hop", MTR),
    (&["fio-", ": (groupid="], "fio's report", "`write_lat_log=NAME` or `--output-format=json+` writes them"),
    (&["{\"attack\":", "\"latency\":"], "vegeta's JSON, with samples", "`vegeta encode --to csv RESULTS`"),
    (&[",run,recording,"], "latlab's CSV of a table without delays", "`latlab export --format values --singletons`"),
    (&["\"run\":", "\"recording\":"], "latlab's JSON lines, for other programs", "`latlab export` as CSV is read"),
    (&["[ ID] Interval"], "iperf's report", "of iperf3 `iperf3 --json` is read; iperf 2 writes none"),
];
const NETPERF: &str = "it writes none: `sockperf ping-pong --full-log FILE` or `latlab ping` do";
const OWPING: &str =
    "`owping -v` writes them: `owping -v … | sed -n 's/.* delay=\\([^ ]*\\) ms.*/\\1/p' | latlab import - --unit ms`";
const K6: &str = "choose one: `awk -F, '$1 == \"http_req_duration\" {print $3}' FILE | latlab import - --unit ms`";
const MTR: &str =
    "`mtr --raw` writes them: `mtr --raw … | awk '$1 == \"p\" && $2 == HOP {print $3}' | latlab import - --unit us`";

pub(super) fn fault_of(head: &LogHead<'_>) -> Option<LogFault> {
    let has = |text: &&str| memmem::find(head.bytes, text.as_bytes()).is_some();
    let (_, what, hint) = UNSAMPLED.iter().find(|(texts, ..)| texts.iter().all(has))?;
    let what = if what.contains(',') { format!("it is {what}") } else { format!("it is {what}, which has no samples") };
    Some(LogFault::whole(what).hint(*hint))
}
