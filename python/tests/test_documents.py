"""The examples of the documents run as they are, on recordings of these tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("document", ["docs/python.md", "python/README.md"])
def test_examples_run(testdata: Path, document: str) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / document).read_text(), re.MULTILINE | re.DOTALL)
    recording, experiment = "recordings/old/1.10-finished", "experiments/finished/factors"
    example = re.sub(r'"latlab-runs/\w+-ping-\w+"', repr(str(testdata / recording)), example)
    example = re.sub(r'"latlab-runs/\w+-experiment-\w+"', repr(str(testdata / experiment)), example)
    assert "latlab-runs" not in example
    exec(compile(example, document, "exec"), {})
