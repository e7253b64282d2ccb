"""The versions that the package requires are no older than those with which it is tested."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("package", ["numpy", "pyarrow", "pandas", "polars"])
def test_the_required_major_version_is_the_tested_one(package: str) -> None:
    tested = re.search(rf"^{package}==(\d+)\.", (REPOSITORY / "scripts/python_package.txt").read_text(), re.MULTILINE)
    assert tested
    required = re.findall(rf'"{package}>=([\d.]+)"', (REPOSITORY / "python/pyproject.toml").read_text())
    assert required == [tested[1]]
    for document in ("docs/python.md", "python/README.md"):
        assert f"{package} {tested[1]}" in (REPOSITORY / document).read_text(), document


def test_python_is_new_enough_for_what_is_tested() -> None:
    (required,) = re.findall(r'requires-python = ">=3\.(\d+)"', (REPOSITORY / "python/pyproject.toml").read_text())
    assert sys.version_info[:2] >= (3, int(required))
    for document in ("docs/python.md", "python/README.md"):
        assert f"Python 3.{required}" in (REPOSITORY / document).read_text(), document
