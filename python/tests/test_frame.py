"""All runs of an experiment or a store in one table."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Callable

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latlab


Imported = Callable[..., Path]


def runs_of(path: Path) -> tuple[latlab.Recording, ...]:
    opened = latlab.open(path)
    assert isinstance(opened, latlab.Store)
    return opened.runs


@pytest.fixture
def factors(testdata: Path) -> Path:
    return testdata / "experiments/finished/factors"


def test_rows_of_an_experiment_have_the_factors_of_their_run(factors: Path) -> None:
    experiment = latlab.open(factors)
    assert isinstance(experiment, latlab.Experiment)
    judged = [run for run in experiment.runs if run.is_judged]
    assert len(judged) < len(experiment.runs), "warm-up runs are not judged"
    frame = latlab.frame(factors, engine="pandas", columns=["seq", "size_bytes"])
    assert set(frame["run"]) == {run.run_id for run in judged}
    assert list(frame.columns[:5]) == ["run", "factor_load", "factor_size", "block", "position"]
    assert (frame["factor_size"].astype(int) == frame["size_bytes"]).all()
    assert (frame["condition_size_bytes"] == frame["size_bytes"]).all()
    assert frame.attrs["units"] == {"condition_interval_ns": "ns", "condition_size_bytes": "B", "size_bytes": "B"}
    by_run = {str(run): len(rows) for run, rows in frame.groupby("run", observed=True)}
    assert by_run == {run.run_id: run.table(columns=["seq"]).num_rows for run in judged}


def test_the_three_engines_give_the_same_table(factors: Path) -> None:
    pandas = latlab.frame(factors, engine="pandas")
    polars = latlab.frame(factors, engine="polars")
    arrow = latlab.frame(factors, engine="arrow")
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(arrow, pa.Table)
    assert list(pandas.columns) == polars.columns == arrow.column_names
    for name in ("factor_load", "condition_interval_ns", "seq", "received_ns"):
        expected = arrow[name].to_pylist()
        assert polars[name].to_list() == expected
        assert [None if value is pd.NA else value for value in pandas[name].tolist()] == expected
    with pytest.raises(ValueError, match="an engine is"):
        latlab.frame(factors, engine="numpy")  # type: ignore[call-overload]


def test_figures_have_a_row_for_each_run_as_the_binary_has(factors: Path, summary: Callable[[Path], Any]) -> None:
    table = latlab.figures(factors, quantiles=[0.5, 0.999], engine="polars")
    experiment = latlab.open(factors)
    assert isinstance(experiment, latlab.Experiment)
    judged = [run for run in experiment.runs if run.is_judged]
    assert table["run"].to_list() == [run.run_id for run in judged]
    for row, run in zip(table.to_dicts(), judged):
        figures = summary(run.path)["metrics"]["round_trip_delay"]
        values = {quantile["q"]: quantile["value"] for quantile in figures["quantiles"]}
        assert (row["n"], row["lost"], row["mean"]) == (figures["n"], figures["lost"], figures["mean"])
        assert (row["p50"], row["p99.9"]) == (values[0.5], values[0.999])


def test_figures_of_values_that_no_float_holds_are_exact_integers(imported: Imported, tmp_path: Path) -> None:
    large = (1 << 60) + 1
    (tmp_path / "log.csv").write_text(f"rtt_ns\n{large}\n1000\n-{large}\n")
    run = imported(tmp_path / "log.csv", "--unit", "ns", "--lost", "timeout")
    table = latlab.figures(run, quantiles=[0.5, 0.75], engine="arrow")
    assert (table["min"].to_pylist(), table["max"].to_pylist()) == ([-large], [large])
    assert table.schema.field("min").type == table.schema.field("max").type == pa.int64()
    assert table.schema.field("mean").type == table.schema.field("p50").type == pa.float64()
    assert (table["p50"].to_pylist(), table["p75"].to_pylist()) == ([1000.0], [2.0**59 + 500])
    assert latlab.figures(run)["max"].tolist() == latlab.figures(run, engine="polars")["max"].to_list() == [large]
    assert {latlab.figures(run).attrs["units"][name] for name in ("min", "max", "p50")} == {"ns"}


def test_the_size_of_a_streams_packets_beside_its_probes_has_the_name_that_export_gives_it(
    testdata: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    for form in ("stream-probes", "tcp"):
        shutil.copytree(testdata / "recordings/forms" / form, tmp_path / form)
    stream, ping = (latlab.recording(tmp_path / form) for form in ("stream-probes", "tcp"))
    exported = command("export", stream.path, "--table", "probes", "--format", "jsonl").stdout.splitlines()
    size = json.loads(exported[0])["stream_size_bytes"]
    assert size == stream.condition["size_bytes"] == 1472
    for table in (
        latlab.frame(stream, table="probes", engine="arrow"),
        *(latlab.figures(stream, metric, engine="arrow") for metric in ("round_trip_delay", "send_slip")),
    ):
        assert "condition_size_bytes" not in table.column_names
        assert table["condition_stream_size_bytes"].unique().to_pylist() == [size]
        assert (table.schema.field("condition_stream_size_bytes").metadata or {})[b"unit"] == b"B"
    rows = latlab.frame(stream, table="probes", engine="polars")
    assert rows["size_bytes"].unique().to_list() == [json.loads(exported[0])["size_bytes"]] == [64]
    both = latlab.figures(latlab.open(tmp_path), "round_trip_delay", engine="polars")
    sizes = {row["run"]: (row["condition_size_bytes"], row["condition_stream_size_bytes"]) for row in both.to_dicts()}
    assert sizes == {stream.run_id: (None, size), ping.run_id: (ping.condition["size_bytes"], None)}
    for table in (
        latlab.frame(stream, engine="arrow"),
        latlab.frame(stream, table="host", engine="arrow"),
        latlab.figures(stream, "delivered_rate", engine="arrow"),
    ):
        assert table["condition_size_bytes"].unique().to_pylist() == [size]
        assert "condition_stream_size_bytes" not in table.column_names


def test_a_run_without_an_answer_is_judged_and_its_figures_are_null(testdata: Path) -> None:
    table = latlab.figures(testdata / "experiments/finished/lost", engine="polars")
    silent = table.filter(pl.col("n") == pl.col("lost"))
    assert silent.height > 0
    assert silent["p50"].null_count() == silent["mean"].null_count() == silent.height


def test_a_store_of_several_kinds_needs_the_name_of_a_table(store: Path) -> None:
    with pytest.raises(latlab.LatlabError, match="several kinds .*name the table, such as `probes`, `wakeups`"):
        latlab.frame(store)
    with pytest.raises(ValueError, match="a table is one of probes"):
        latlab.frame(store, table="packets")
    with pytest.warns(latlab.LeftOutWarning, match="2 of 4 runs have no table `probes` .*\\(wakeup\\), .*\\(stream\\)") as found:
        probes = latlab.frame(store, table="probes", columns=["fate"], engine="polars")
    assert [warning.filename for warning in found] == [__file__]
    assert probes["run"].n_unique() == 2
    assert probes["condition_tag_build"].drop_nulls().unique().to_list() == ["one"]
    with pytest.warns(latlab.LeftOutWarning, match="2 of 4 runs have no table `wakeups`"):
        wakeups = latlab.frame(store, table="wakeups", engine="polars", runs="all")
    assert wakeups["run"].n_unique() == 2, "of the wake-up run and of `--with-wakeup`"
    with pytest.warns(latlab.LeftOutWarning, match="3 of 4 runs have no table `intervals`"):
        assert latlab.frame(store, table="intervals", engine="polars")["run"].n_unique() == 1
    assert latlab.frame(store, table="host", engine="polars")["run"].n_unique() == 4
    with pytest.raises(latlab.LatlabError, match="no run has the table `values`; what there is: probes, wakeups"):
        latlab.frame(store, table="values")


def test_a_store_of_several_main_metrics_needs_the_name_of_one(store: Path) -> None:
    for runs in ("judged", "all"):
        message = "2 of `round_trip_delay`, 1 of `wakeup_latency`, 1 of `delivered_rate`.: name the metric"
        with pytest.raises(latlab.LatlabError, match=message):
            latlab.figures(store, runs=runs)
    with pytest.warns(latlab.LeftOutWarning, match="2 of 4 runs have no metric `round_trip_delay`") as found:
        assert len(latlab.figures(store, "round_trip_delay", runs="all")) == 2
    assert [warning.filename for warning in found] == [__file__]
    with pytest.raises(latlab.LatlabError, match="no run has the metric `jitter`; what there is: round_trip_delay"):
        latlab.figures(store, "jitter")


def test_runs_of_several_kinds_with_one_main_metric_are_one_table(imported: Imported, tmp_path: Path) -> None:
    for log in ("ping.txt", "irtt.json"):
        shutil.copytree(imported(log), tmp_path / log)
    assert {run.kind for run in runs_of(tmp_path)} == {"ping", "values"}
    assert sorted(latlab.figures(tmp_path)["n"]) == [12, 24]


def test_loads_that_a_log_does_not_state_are_null_and_no_load_is_none(
    imported: Imported, testdata: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    shutil.copytree(imported("irtt.json"), tmp_path / "import")
    for form in ("tcp", "loaded"):
        shutil.copytree(testdata / "recordings/forms" / form, tmp_path / form)
    frame = latlab.frame(tmp_path, columns=["seq"], engine="polars")
    loads = dict(frame.select("run", "condition_loads").unique().iter_rows())
    assert sorted(loads.values(), key=str) == [None, "cpu=20% + mem=100MB/s", "none"]
    exported = command("export", tmp_path, "--format", "jsonl").stdout.splitlines()
    assert loads == {row["run"]: row["loads"] for row in map(json.loads, exported)}


def test_columns_of_the_condition_have_units_and_typed_text_has_none(store: Path, command: Callable[..., Any]) -> None:
    command("ping", "-n", 20, "--store", store.parent / "tagged", "--tag", "sleep_ns=20us")
    tagged = latlab.frame(store.parent / "tagged", engine="arrow")
    fields = {field.name: (field.metadata or {}).get(b"unit") for field in tagged.schema}
    assert fields["condition_size_bytes"] == fields["size_bytes"] == b"B"
    assert fields["condition_interval_ns"] == fields["sent_ns"] == b"ns"
    assert fields["condition_tag_sleep_ns"] is fields["condition_target"] is fields["run"] is None
    with pytest.warns(latlab.LeftOutWarning, match="left out"):
        rates = latlab.figures(store, "offered_rate")
    assert rates.attrs["units"]["p50"] == "bit/s"
    assert rates.attrs["units"]["condition_size_bytes"] == "B"


def test_a_column_has_one_type_whether_or_not_its_values_are_null(testdata: Path) -> None:
    frames = [
        latlab.frame(testdata / "recordings" / name, engine="arrow")
        for name in ("good/closed", "good/scheduled", "old/1.0-finished", "old/1.11-import", "forms/loaded")
    ]
    closed, scheduled = (frame["condition_interval_ns"] for frame in frames[:2])
    assert closed.null_count == len(closed) > scheduled.null_count == 0
    assert closed.type == scheduled.type == frames[0]["condition_source_port"].type == pa.int64()
    whole = pa.concat_tables(frames, promote_options="default")
    assert whole.num_rows == sum(frame.num_rows for frame in frames)
    of_polars = [frame for frame in map(pl.from_arrow, frames) if isinstance(frame, pl.DataFrame)]
    assert pl.concat(of_polars, how="diagonal").height == whole.num_rows
    of_pandas = pd.concat([latlab.frame(testdata / "recordings" / name) for name in ("good/closed", "good/scheduled")])
    assert str(of_pandas["condition_interval_ns"].dtype) == "int64[pyarrow]"


def test_values_of_different_types_are_text_as_in_the_manifest(recording: Path) -> None:
    from test_open import rewrite

    def setting(value: str) -> Callable[[str], str]:
        return lambda text: text.replace('"condition": {', '"condition": {\n    "new": ' + value + ",", 1)

    shutil.copytree(recording, recording.parent / "other")
    rewrite(recording, setting("true"))
    rewrite(recording.parent / "other", setting("100000000000000000000"))
    frame = latlab.frame(recording.parent, columns=["seq"], engine="polars")
    assert sorted(frame["condition_new"].unique().to_list()) == ["100000000000000000000", "true"]


def test_a_column_that_some_runs_lack_is_null_there_also_if_it_is_named(testdata: Path, tmp_path: Path) -> None:
    for name in ("older", "newer"):
        shutil.copytree(testdata / "recordings/old/1.10-finished", tmp_path / name)
    file = tmp_path / "older/probes.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["reordered"]), file)
    store = latlab.open(tmp_path, verify=False)
    rows = latlab.recording(tmp_path / "newer").table().num_rows
    for columns in (["reordered"], ["reordered", "seq"], ["seq", "reordered"], None):
        frame = latlab.frame(store, columns=columns, engine="arrow")
        assert columns is None or frame.column_names[-len(columns) :] == columns
        assert (frame.num_rows, frame["reordered"].null_count) == (2 * rows, rows)
        assert frame["reordered"].type == pa.bool_()
    with pytest.raises(ValueError, match="`probes` has no column `rtt`; it has seq, phase"):
        latlab.frame(store, columns=["rtt"])


@pytest.mark.parametrize("columns", ["seq", []])
def test_columns_that_would_lose_rows_or_be_letters_are_refused(testdata: Path, columns: Any) -> None:
    path = testdata / "recordings/good/closed"
    with pytest.raises(ValueError, match="columns are a list of at least one name"):
        latlab.frame(path, columns=columns)
    with pytest.raises(ValueError, match="columns are a list of at least one name"):
        latlab.recording(path).rows(columns=columns)


def test_runs_that_are_not_judged_are_marked_among_all_runs(factors: Path, testdata: Path, tmp_path: Path) -> None:
    shutil.copytree(factors, tmp_path / "one")
    shutil.copytree(testdata / "experiments/finished/aa", tmp_path / "two")
    table = latlab.figures(tmp_path, engine="polars", runs="all", quantiles=[])
    judged = latlab.figures(tmp_path, engine="polars", quantiles=[])
    assert table.filter(pl.col("warmup_run")).height == table.height - judged.height > 0
    assert not judged["warmup_run"].any()
    assert table["ending"].unique().to_list() == ["completed"]
    assert judged["experiment"].n_unique() == 2
    assert judged.group_by("experiment", "block", "position").len()["len"].max() == 1, "block alone is ambiguous"


def test_recordings_of_different_versions_are_one_table(testdata: Path, tmp_path: Path) -> None:
    for name in ("1.0-finished", "1.2-finished"):
        shutil.copytree(testdata / "recordings/old" / name, tmp_path / name)
    frame = latlab.frame(tmp_path, engine="polars")
    assert frame["run"].n_unique() == 2
    assert frame.filter(pl.col("fate") == "answered")["received_ns"].null_count() == 0


def test_runs_that_are_not_judged_are_left_out_with_a_warning(factors: Path, testdata: Path, tmp_path: Path) -> None:
    copy = tmp_path / "experiment"
    shutil.copytree(factors, copy)
    experiment = latlab.open(copy)
    assert isinstance(experiment, latlab.Experiment)
    victim = next(run for run in experiment.runs if run.is_judged)
    manifest = json.loads((victim.path / "manifest.json").read_text())
    (victim.path / "manifest.json").write_text(json.dumps({**manifest, "ending": "interrupted"}))
    with pytest.warns(latlab.LeftOutWarning, match=f"1 of .*{victim.path.name} \\(interrupted\\)"):
        frame = latlab.frame(copy, engine="polars", columns=["seq"])
    assert victim.run_id not in frame["run"].unique().to_list()
    shutil.rmtree(victim.path)
    with pytest.warns(latlab.LeftOutWarning, match=f"gone: {victim.path.name}"):
        latlab.frame(copy, engine="arrow", columns=["seq"])


def test_an_unfinished_run_of_a_store_is_an_error_if_all_are_asked_for(testdata: Path, tmp_path: Path) -> None:
    for name in ("1.9-died", "1.9-finished"):
        shutil.copytree(testdata / "recordings/old" / name, tmp_path / name)
    with pytest.warns(latlab.LeftOutWarning, match="1.9-died \\(measuring\\)"):
        assert latlab.frame(tmp_path, engine="arrow")["run"].unique().to_pylist() == [
            latlab.recording(tmp_path / "1.9-finished").run_id
        ]
    for table in (None, "probes"):
        with pytest.raises(latlab.UnfinishedError, match="finishes it"):
            latlab.frame(tmp_path, table=table, runs="all")
    with pytest.raises(latlab.UnfinishedError, match="finishes it"):
        latlab.figures(tmp_path, "round_trip_delay", runs="all")


def test_a_damaged_run_of_a_store_is_an_error(recording: Path) -> None:
    (recording / "manifest.json").write_text("{}")
    store = latlab.open(recording.parent)
    assert isinstance(store, latlab.Store)
    with pytest.raises(latlab.DamagedError):
        latlab.frame(store)


def test_a_table_of_more_runs_than_open_files_is_read(testdata: Path) -> None:
    import resource

    experiment = testdata / "experiments/finished/wakeup-governor-set"
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 10, before[1]))
    try:
        runs = latlab.figures(experiment, engine="arrow")
        assert latlab.frame(experiment, engine="arrow").num_rows > runs.num_rows > 10
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_column_that_a_stream_lacks_is_null_in_each_of_its_rows(testdata: Path, tmp_path: Path) -> None:
    for name in ("older", "newer"):
        shutil.copytree(testdata / "recordings/old/1.4-stream", tmp_path / name)
    file = tmp_path / "older/intervals.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["flow"]), file)
    frame = latlab.frame(latlab.open(tmp_path, verify=False), columns=["flow"], engine="polars")
    rows = latlab.recording(tmp_path / "newer").table().num_rows
    assert (frame.height, frame["flow"].null_count()) == (2 * rows, rows)
