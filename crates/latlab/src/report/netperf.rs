//! Rendering of streams in the format of `netperf -t UDP_STREAM`: a line for the sender, a line for the receiver.

use crate::analysis::{StreamFigures, Summary};
use crate::units::human::ABSENT;

/// Column headings in three lines: quantity, qualifier and unit.
const HEADINGS: [[&str; 6]; 3] = [
    ["Socket", "Message", "Elapsed", "Messages", "", ""],
    ["Size", "Size", "Time", "Okay", "Errors", "Throughput"],
    ["bytes", "bytes", "secs", "#", "#", "10^6bits/sec"],
];

/// Renders every stream of `summaries`. Socket sizes are those granted by the kernel; errors are sends refused for
/// lack of buffer space; each end's time is that of its own clock.
pub(super) fn lines(summaries: &[Summary]) -> Vec<String> {
    let rows: Vec<[String; 6]> =
        summaries.iter().filter_map(|summary| summary.stream.as_ref()).flat_map(rows).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let headings = HEADINGS.map(|cells| cells.map(str::to_owned));
    headings.iter().chain(&rows).map(line).collect()
}

fn rows(stream: &StreamFigures) -> [[String; 6]; 2] {
    let total = &stream.total;
    let socket = |granted: Option<u32>| granted.map_or_else(|| ABSENT.into(), |bytes| bytes.to_string());
    let seconds = |span: crate::units::Nanos| format!("{:.2}", span.as_secs_f64());
    let rate = |bps: Option<f64>| bps.map_or_else(|| ABSENT.into(), |bps| format!("{:.2}", bps / 1e6));
    let (sent, received) = (total.sent.to_string(), total.delivered.to_string());
    let (size, refused) = (stream.size_bytes.to_string(), total.refused.to_string());
    let (send, receive) = (stream.send_buffer_bytes, stream.receive_buffer_bytes);
    [
        [socket(send), size, seconds(total.sending), sent, refused, rate(stream.rates.offered_bps)],
        [
            socket(receive),
            String::new(),
            seconds(total.counting),
            received,
            String::new(),
            rate(stream.rates.delivered_bps),
        ],
    ]
}

fn line([socket, size, time, okay, errors, rate]: &[String; 6]) -> String {
    format!("{socket:<8} {size:<8} {time:<8} {okay:>12} {errors:>6} {rate:>13}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_with_their_headings() {
        let row = ["8388608", "1472", "10.00", "3780000", "2", "4451.33"].map(str::to_owned);
        let lines: Vec<String> =
            HEADINGS.map(|cells| line(&cells.map(str::to_owned))).into_iter().chain([line(&row)]).collect();
        assert_eq!(
            lines,
            [
                "Socket   Message  Elapsed      Messages",
                "Size     Size     Time             Okay Errors    Throughput",
                "bytes    bytes    secs                #      #  10^6bits/sec",
                "8388608  1472     10.00         3780000      2       4451.33",
            ]
        );
        assert!(super::lines(&[]).is_empty());
    }
}
