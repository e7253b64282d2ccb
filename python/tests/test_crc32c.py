"""CRC-32C against the vectors of RFC 3720, appendix B.4, and against itself in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from latlab._crc32c import crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_the_vectors_of_the_rfc_hold(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize("length", [8_191, 8_192, 8_193, 100_001, 1 << 20])
def test_a_long_input_has_the_checksum_of_its_pieces(length: int) -> None:
    data = np.random.default_rng(length).bytes(length)
    in_pieces = 0
    for start in range(0, length, 5_000):
        in_pieces = crc32c(data[start : start + 5_000], in_pieces)
    assert crc32c(data) == in_pieces
