"""Figures of samples against those of the real binary: quantiles and moments to the last bit."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latlab
from latlab._sample import INFINITE

from conftest import LOGS

FINISHED = ["good/closed", "good/scheduled", "old/1.0-finished", "old/1.3-wakeup", "old/1.4-stream", "old/1.5-search"]
FINISHED += ["old/1.5-tcp", "old/1.7-dds", "old/1.8-hosts", "old/1.10-finished"]
FINISHED += [f"forms/{name}" for name in ["break", "far", "lab", "loaded", "netload", "poisson", "refused", "search"]]
FINISHED += [
    f"forms/{name}" for name in ["sleepers", "stream-down", "stream-probes", "stream-tcp", "tcp", "with-wakeup"]
]

# Logs made from those in `data`: their texts, and what stands in the place of each.
CHANGED = {
    "sockperf-dropped.csv": ("sockperf.csv", {"# dropped messages = 0": "# dropped messages = 40"}),
    "sockperf-many-dropped.csv": ("sockperf.csv", {"# dropped messages = 0": "# dropped messages = 1099511627776"}),
    # Without the first line, what the totals count and no line names has no row.
    "ping-totals.txt": (
        "ping.txt",
        {"PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.\n": "", "24 packets transmitted": "34 packets transmitted"},
    ),
    "values-large.csv": ("values.csv", {"1,12.5\n": f"1,{(1 << 50) - 1}.097\n5,-{1 << 51}.003\n"}),
}
# A log of each tool, the options of its import, and the metrics that its recording has.
PROBES = {"round_trip_delay", "pdv", "ipdv"}
STAMPED = PROBES | {"reflector_dwell", "round_trip_delay_less_dwell"}
IMPORTS: list[tuple[str, list[str], set[str]]] = [
    ("four-times.log", [], STAMPED),
    ("values.csv", ["--unit", "us"], {"round_trip_delay"}),
    ("ping.txt", [], {"round_trip_delay"}),
    ("cyclictest-v.txt", [], {"wakeup_latency"}),
    ("cyclictest-histogram.txt", [], {"wakeup_latency"}),
    ("sockperf.csv", [], PROBES),
    ("irtt.json", [], STAMPED),
    ("iperf3.json", [], {"delivered_rate", "offered_rate"}),
    # Of a receiver alone.
    ("iperf3-receiver.json", [], {"delivered_rate"}),
    # Without changes of delay: which probes were sent one after the other is unknown.
    ("sockperf-dropped.csv", [], {"round_trip_delay", "pdv"}),
    ("sockperf-many-dropped.csv", [], {"round_trip_delay", "pdv"}),
    ("ping-totals.txt", ["--from", "ping"], {"round_trip_delay"}),
    ("values-large.csv", ["--unit", "us"], {"round_trip_delay"}),
]

Summary = Callable[[Path], Any]
Imported = Callable[..., Path]


def log_of(name: str, directory: Path) -> Path:
    """The log of that name in `data`, or the one made from it, in `directory`."""
    if name not in CHANGED:
        return LOGS / name
    source, changes = CHANGED[name]
    text = (LOGS / source).read_text()
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    (directory / name).write_text(text)
    return directory / name


def compare(run: latlab.Recording, document: Any) -> int:
    """Every figure of every metric of the document; the number of quantiles among them that are infinite."""
    infinite = 0
    for name, figures in document["metrics"].items():
        if name not in run.metrics:
            # Without stamps of the reflector, the document may have the lost probes, and they alone.
            assert name == "round_trip_delay_less_dwell" and figures["n"] == figures["lost"]
            continue
        sample = run.sample(name)
        for figure in ("n", "min", "max", "mean"):
            own, shown = getattr(sample, figure), figures[figure]
            # JSON has doubles: whole nanoseconds up to 2^53, which are 104 days.
            assert own == shown or float(own) == shown, f"{figure} of {name}"
        # Null where the log does not state losses.
        assert sample.lost == figures["lost"], f"lost of {name}"
        stddev = figures["stddev"]
        assert sample.stddev == (stddev and pytest.approx(stddev, rel=1e-12)), f"stddev of {name}"
        assert sample.unit == figures["unit"]
        for quantile in figures["quantiles"]:
            assert sample.quantile(quantile["q"]) == quantile["value"], f"{quantile['q']} of {name}"
            infinite += quantile["value"] is None
    return infinite


@pytest.mark.parametrize("name", FINISHED)
def test_figures_of_a_recording_are_those_of_the_binary(testdata: Path, summary: Summary, name: str) -> None:
    path = testdata / "recordings" / name
    compare(latlab.recording(path), summary(path))


def test_figures_of_recordings_made_now_are_those_of_the_binary(store: Path, summary: Summary) -> None:
    opened = latlab.open(store)
    assert isinstance(opened, latlab.Store)
    assert [run.kind for run in opened.runs] == ["ping", "ping", "wakeup", "stream"]
    for run in opened.runs:
        run.verify()
        compare(run, summary(run.path))


def test_quantiles_among_lost_probes_are_infinite_in_both(testdata: Path, summary: Summary) -> None:
    runs = sorted((testdata / "experiments/finished/lost/runs").iterdir())
    assert sum(compare(latlab.recording(path), summary(path)) for path in runs) > 10


def test_lost_and_late_probes_are_infinite_and_the_warmup_is_left_out(testdata: Path) -> None:
    run = latlab.recording(testdata / "recordings/good/scheduled")
    rows = run.table(phase="all").to_pylist()
    measured = [row for row in rows if row["phase"] == "measure"]
    assert len(measured) < len(rows)
    expected = [
        row["received_ns"] - row["sent_ns"] if row["fate"] == "answered" else math.inf
        for row in measured
        if row["fate"] in ("answered", "late", "lost")
    ]
    sample = run.sample("round_trip_delay")
    assert sample.values.tolist() == expected
    assert sample.lost is not None
    assert sample.lost == expected.count(math.inf) > 0
    assert sample.n == len(sample) == len(expected)
    assert len(sample.finite) + sample.lost == sample.n


def test_a_finite_sample_has_the_quantiles_of_numpy() -> None:
    values = np.random.default_rng(7).integers(0, 10**9, 10_001)
    sample = latlab.Sample("delay", "ns", values)
    for q in (0, 0.001, 0.25, 0.5, 0.57, 0.99, 0.9999, 1):
        assert sample.quantile(q) == pytest.approx(float(np.quantile(values, q)), rel=1e-12)
    with pytest.raises(ValueError, match="between 0 and 1"):
        sample.quantile(99)


def test_a_quantile_next_to_the_lost_probes_is_not_infinite_by_rounding() -> None:
    # 0.57 · 100 is 56.99999999999999 in binary.
    values = np.array([*range(58), *[INFINITE] * 43], dtype=np.int64)
    sample = latlab.Sample("delay", "ns", values)
    assert (sample.quantile(0.57), sample.quantile(0.58)) == (57.0, None)
    assert sample.quantiles([0.5, 0.9]) == [50.0, None]


def test_an_empty_sample_has_no_figures() -> None:
    sample = latlab.Sample("delay", "ns", np.empty(0, dtype=np.int64))
    assert (sample.n, sample.lost, sample.min, sample.mean, sample.stddev, sample.quantile(0.5)) == (0, 0, *[None] * 4)


def test_counted_values_have_the_figures_of_expanded_ones() -> None:
    rng = np.random.default_rng(11)
    values = np.append(rng.integers(0, 1000, 50), INFINITE).astype(np.int64)
    counts = rng.integers(1, 20, 51).astype(np.int64)
    counted = latlab.Sample("delay", "ns", values, counts)
    expanded = latlab.Sample("delay", "ns", np.repeat(values, counts))
    for figure in ("n", "lost", "min", "max", "mean"):
        assert getattr(counted, figure) == getattr(expanded, figure), figure
    assert counted.stddev == pytest.approx(expanded.stddev, rel=1e-12)
    qs = np.linspace(0, 1, 101)
    assert counted.quantiles(qs) == expanded.quantiles(qs)


def test_an_unknown_metric_is_refused_with_those_of_the_run(testdata: Path) -> None:
    run = latlab.recording(testdata / "recordings/good/closed")
    with pytest.raises(ValueError, match="no metric `response_time`; it has round_trip_delay"):
        run.sample("response_time")


@pytest.mark.parametrize(("log", "options", "metrics"), IMPORTS, ids=[log for log, *_ in IMPORTS])
def test_figures_of_an_imported_log_are_those_of_the_binary(
    imported: Imported, summary: Summary, tmp_path: Path, log: str, options: list[str], metrics: set[str]
) -> None:
    run = latlab.recording(imported(log_of(log, tmp_path), *options))
    run.verify()
    document = summary(run.path)
    compare(run, document)
    assert set(document["metrics"]) == set(run.metrics) == metrics
    assert run.metrics[0] == run.main_metric
    for metric in {*STAMPED, "response_time", "send_slip", "delivered_rate"} - metrics:
        with pytest.raises(ValueError, match=f"no metric `{metric}`; it has {run.main_metric}"):
            run.sample(metric)


def test_a_plain_echo_has_no_dwell(testdata: Path) -> None:
    runs = [latlab.recording(path) for path in (testdata / "experiments/finished/lost/runs").iterdir()]
    echoes = [run for run in runs if run.manifest["spec"]["work"]["protocol"] == "echo"]
    assert echoes
    for run in echoes:
        assert set(run.metrics) == PROBES | {"response_time", "send_slip"}
        with pytest.raises(ValueError, match="no metric `reflector_dwell`"):
            run.sample("reflector_dwell")


def test_losses_that_a_log_does_not_state_are_not_known(imported: Imported) -> None:
    run = latlab.recording(imported("cyclictest-v.txt"))
    for metric in run.metrics:
        sample = run.sample(metric)
        assert (sample.lost, sample.quantile(0.5) is None) == (None, False)
    assert "lost unknown" in repr(run.sample())
    assert latlab.figures(run, engine="polars").select("lost").row(0) == (None,)
    table = latlab.figures(run, engine="arrow")
    assert table.schema.field("lost").type == pa.int64()


def test_losses_of_imported_logs_are_infinite(imported: Imported) -> None:
    ping = latlab.recording(imported("ping.txt")).sample()
    assert (ping.n, ping.lost, ping.quantile(0.99)) == (24, 4, None)
    irtt = latlab.recording(imported("irtt.json")).sample()
    assert (irtt.n, irtt.lost) == (12, 1)


def test_losses_in_the_totals_of_a_log_are_infinite_at_an_unknown_place(imported: Imported, tmp_path: Path) -> None:
    run = latlab.recording(imported(log_of("sockperf-dropped.csv", tmp_path)))
    whole = latlab.recording(imported("sockperf.csv"))
    assert run.table().num_rows == whole.table().num_rows == 109, "none of them has a row"
    for metric in ("round_trip_delay", "pdv"):
        sample, of_rows = run.sample(metric), whole.sample(metric)
        assert (sample.n, sample.lost) == (149, 40) == (of_rows.n + 40, 40)
        assert (sample.min, sample.mean, sample.max) == (of_rows.min, of_rows.mean, of_rows.max)
        assert sample.stddev == of_rows.stddev
        # Of 149, the median has rank 74, and the last finite one rank 108.
        ranked = np.sort(of_rows.finite)
        assert (sample.quantile(0.5), sample.quantile(108 / 148)) == (ranked[74], ranked[108])
        assert sample.quantiles([0.74, 0.9]) == [None, None]
        assert sample.counts is not None
        expanded = np.repeat(sample.values, sample.counts)
        assert (len(expanded), np.isinf(expanded).sum()) == (149, 40)
    with pytest.raises(ValueError, match="no metric `ipdv`; it has round_trip_delay, pdv"):
        run.sample("ipdv")
    table = latlab.figures(run, quantiles=[0.5, 0.9], engine="polars")
    assert table.select("n", "lost", "p90").row(0) == (149, 40, None)


def test_losses_that_cannot_be_a_count_are_damage(imported: Imported, tmp_path: Path) -> None:
    from test_open import rewrite

    recording = tmp_path / "recording"
    for bad in ("-1", "true", "null", "0.5", f"{1 << 62}"):
        shutil.copytree(imported("sockperf.csv"), recording)
        rewrite(recording, lambda text: text.replace('"lost_without_row": 0', f'"lost_without_row": {bad}'))
        with pytest.raises(latlab.DamagedError, match="manifest.json.*without a row"):
            latlab.recording(recording, verify=False).sample()
        shutil.rmtree(recording)


def test_an_imported_stream_has_the_rate_that_its_tool_states(imported: Imported) -> None:
    stated = json.loads((LOGS / "iperf3.json").read_text())["end"]["sum_sent"]["bits_per_second"]
    run = latlab.recording(imported("iperf3.json"))
    assert run.sample("offered_rate").mean == pytest.approx(stated, rel=1e-6)
    assert latlab.figures(run, quantiles=[0.5])["p50"].tolist() == [run.sample().quantile(0.5)]
    assert run.sample().quantile(0.5) == pytest.approx(5e6, rel=0.01)


def test_the_log_of_a_receiver_alone_has_no_offered_rate_and_no_losses(imported: Imported) -> None:
    run = latlab.recording(imported("iperf3-receiver.json"))
    assert run.metrics == ("delivered_rate",)
    assert run.sample().lost is None
    with pytest.raises(ValueError, match="no metric `offered_rate`; it has delivered_rate"):
        run.sample("offered_rate")


def test_a_stream_of_packets_of_unknown_size_has_no_rates(imported: Imported, tmp_path: Path) -> None:
    from test_open import rewrite

    recording = tmp_path / "recording"
    shutil.copytree(imported("iperf3.json"), recording)
    rewrite(recording, lambda text: re.sub(r'"size_bytes": \d+', '"size_bytes": null', text))
    run = latlab.recording(recording, verify=False)
    assert run.manifest["spec"]["work"]["size_bytes"] is None
    assert run.metrics == ()
    with pytest.raises(ValueError, match="no metric `delivered_rate`: the size of its packets is unknown"):
        run.sample()


def test_a_number_beyond_int64_is_a_row_and_damage_of_a_sample(recording: Path) -> None:
    file = recording / "probes.parquet"
    rows = pq.read_table(file)
    numbers = rows["seq"].to_pylist()
    numbers[-1] = 1 << 63
    pq.write_table(rows.set_column(rows.column_names.index("seq"), "seq", pa.array(numbers, pa.uint64())), file)
    run = latlab.recording(recording, verify=False)
    assert run.rows().to_polars()["seq"][-1] == run.rows().to_pandas()["seq"].iloc[-1] == 1 << 63
    assert run.sample().n > 0, "it needs no numbers"
    with pytest.raises(latlab.DamagedError, match="probes.parquet"):
        run.sample("ipdv")


def test_a_run_without_values_has_no_metric_and_an_empty_frame(imported: Imported, tmp_path: Path) -> None:
    from test_open import rewrite

    recording = tmp_path / "recording"
    shutil.copytree(imported("values.csv", "--unit", "us"), recording)
    rewrite(recording, lambda text: re.sub(r'"rows": \d+', '"rows": 0', text))
    file = recording / "values.parquet"
    pq.write_table(pq.read_table(file).slice(0, 0), file)
    run = latlab.recording(recording, verify=False)
    assert (run.metrics, run.table().num_rows, latlab.frame(run, engine="polars").height) == ((), 0, 0)
    with pytest.raises(latlab.LatlabError, match="has no metric"):
        latlab.figures(run)
    with pytest.raises(latlab.LatlabError, match="no run has the metric `delay`; what there is: none"):
        latlab.figures(run, "delay")


def test_values_of_an_imported_log_are_counted_and_null_is_infinite(recording: Path) -> None:
    from test_open import rewrite

    rewrite(
        recording,
        lambda text: text.replace('"kind": "ping"', '"kind": "values"', 1).replace('"rows": 300', '"rows": 3', 1),
    )
    rows: dict[str, pa.Array[Any]] = {
        "seq": pa.array([None, None, None], pa.uint64()),
        "metric": pa.array(["delay", "delay", "round_trip_delay"]),
        "value_ns": pa.array([1_000, None, 7], pa.int64()),
        "count": pa.array([98, 2, 1], pa.uint64()),
    }
    pq.write_table(pa.table(rows), recording / "values.parquet")
    (recording / "probes.parquet").unlink()
    run = latlab.recording(recording, verify=False)
    assert run.tables == ("values", "host")
    assert run.metrics == ("delay", "round_trip_delay")
    sample = run.sample("delay")
    assert (sample.n, sample.lost, sample.mean) == (100, 2, 1000.0)
    assert (sample.quantile(0.9), sample.quantile(0.99)) == (1000.0, None)
    assert run.sample("round_trip_delay").values.tolist() == [7.0]
    assert run.rows().units == {"value_ns": "ns"}
    assert run.rows().to_pandas()["value_ns"].isna().tolist() == [False, True, False]
