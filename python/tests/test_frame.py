"""All runs of an experiment or a store in one table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import latlab


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
    assert frame.attrs["units"] == {"size_bytes": "B"}
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


def test_a_run_without_an_answer_is_judged_and_its_figures_are_null(testdata: Path) -> None:
    table = latlab.figures(testdata / "experiments/finished/lost", engine="polars")
    silent = table.filter(pl.col("n") == pl.col("lost"))
    assert silent.height > 0
    assert silent["p50"].null_count() == silent["mean"].null_count() == silent.height


def test_a_store_of_several_kinds_needs_the_name_of_a_table(store: Path) -> None:
    with pytest.raises(latlab.LatlabError, match="several kinds .*name the table"):
        latlab.frame(store)
    probes = latlab.frame(store, table="probes", columns=["fate"], engine="polars")
    assert probes["run"].n_unique() == 2
    assert probes["condition_tag_build"].drop_nulls().unique().to_list() == ["one"]
    wakeups = latlab.frame(store, table="wakeups", engine="polars")
    assert wakeups["run"].n_unique() == 2, "of the wake-up run and of `--with-wakeup`"
    assert latlab.frame(store, table="intervals", engine="polars")["run"].n_unique() == 1
    assert latlab.frame(store, table="host", engine="polars").height > 0


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
    with pytest.raises(latlab.UnfinishedError, match="finishes it"):
        latlab.frame(tmp_path, runs="all")


def test_a_damaged_run_of_a_store_is_an_error(recording: Path) -> None:
    (recording / "manifest.json").write_text("{}")
    store = latlab.open(recording.parent)
    assert isinstance(store, latlab.Store)
    with pytest.raises(latlab.DamagedError):
        latlab.frame(store)
