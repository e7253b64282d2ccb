"""Rows: columns, phases, batches, units, and the three kinds of tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import latlab


@pytest.fixture
def run(testdata: Path) -> latlab.Recording:
    return latlab.recording(testdata / "recordings/old/1.10-finished")


def test_a_recording_has_the_facts_of_its_manifest(run: latlab.Recording) -> None:
    assert (run.kind, run.ending, run.format) == ("ping", "completed", (1, 10))
    assert run.run_id == run.manifest["run_id"]
    assert run.started_at.endswith("Z")
    assert run.condition == run.manifest["condition"]
    assert run.tables == ("probes", "host")
    assert "response_time" in run.metrics


def test_only_the_columns_and_the_phase_that_are_asked_for_are_read(testdata: Path) -> None:
    run = latlab.recording(testdata / "recordings/good/closed")
    whole = run.table(phase="all")
    rows = run.rows(columns=["received_ns", "seq"])
    table = rows.to_arrow()
    assert table.column_names == ["received_ns", "seq"] == rows.columns
    counts = {phase: run.table(columns=["seq"], phase=phase).num_rows for phase in ("measure", "warmup", "all")}
    assert counts["measure"] + counts["warmup"] == counts["all"] == whole.num_rows
    assert counts["warmup"] > 0
    assert table.num_rows == counts["measure"]
    with pytest.raises(ValueError, match="no column `rtt`; it has seq, phase"):
        run.rows(columns=["rtt"])
    with pytest.raises(ValueError, match="a phase is one of measure, warmup, all"):
        run.rows(phase="both")
    with pytest.raises(ValueError, match="a table is one of"):
        run.rows("packets")
    with pytest.raises(latlab.LatlabError, match="no table `wakeups`"):
        run.rows("wakeups")


def test_batches_have_the_rows_of_the_table(run: latlab.Recording) -> None:
    rows = run.rows(columns=["seq", "sent_ns"])
    batches = list(rows.iter_batches(batch_size=70))
    assert max(batch.num_rows for batch in batches) <= 70
    assert pa.Table.from_batches(batches).equals(rows.to_arrow())


def test_fields_have_units_and_instants_their_clock(run: latlab.Recording) -> None:
    schema = run.table().schema
    assert schema.field("sent_ns").metadata == {b"unit": b"ns", b"clock": b"sender"}
    assert schema.field("reflector_sent_ns").metadata == {b"unit": b"ns", b"clock": b"reflector"}
    assert schema.field("size_bytes").metadata == {b"unit": b"B"}
    assert not schema.field("seq").metadata
    host = run.rows("host", columns=["busy_ns", "frequency_khz", "temperature_millicelsius", "cpu"])
    assert host.units == {"busy_ns": "ns", "frequency_khz": "kHz", "temperature_millicelsius": "m°C"}
    assert run.rows().to_pandas().attrs["units"]["sent_ns"] == "ns"


@pytest.mark.parametrize(
    ("form", "table"), [("sleepers", "wakeups"), ("stream-tcp", "intervals"), ("with-wakeup", "wakeups")]
)
def test_other_tables_are_read_as_probes_are(testdata: Path, form: str, table: str) -> None:
    run = latlab.recording(testdata / "recordings/forms" / form)
    arrow, pandas, polars = (
        run.table(table),
        run.rows(table).to_pandas(),
        run.rows(table).to_polars(),
    )
    assert arrow.num_rows == len(pandas) == polars.height > 0
    assert set(arrow["phase"].to_pylist()) == {"measure"}
    assert run.rows(table, phase="all").to_arrow().num_rows == run.manifest[f"{table[:-1]}_rows"]


def test_pandas_and_polars_have_the_values_of_arrow_and_keep_integers(run: latlab.Recording) -> None:
    rows = run.rows()
    arrow, pandas, polars = rows.to_arrow(), rows.to_pandas(), rows.to_polars()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert arrow["received_ns"].null_count > 0
    for name in ("seq", "sent_ns", "received_ns", "fate", "reordered", "reflector_cpu"):
        expected = arrow[name].to_pylist()
        assert [None if value is pd.NA else value for value in pandas[name].tolist()] == expected
        assert polars[name].to_list() == expected
    assert str(pandas["received_ns"].dtype) == "int64[pyarrow]"
    assert polars["received_ns"].dtype == pl.Int64


def test_the_delay_in_a_frame_is_the_sample(run: latlab.Recording) -> None:
    sample = run.sample()
    frame = run.rows().to_polars().filter(pl.col("fate") == "answered")
    delays = (frame["received_ns"] - frame["sent_ns"]).to_numpy()
    assert np.array_equal(delays, sample.finite)
    pandas = run.rows().to_pandas().query("fate == 'answered'")
    assert (pandas["received_ns"] - pandas["sent_ns"]).tolist() == sample.finite.tolist()


def test_without_checksums_the_same_rows_are_read(testdata: Path) -> None:
    path = testdata / "recordings/old/1.10-finished"
    assert latlab.recording(path).table().equals(latlab.recording(path, verify=False).table())
