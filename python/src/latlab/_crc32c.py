"""CRC-32C (RFC 3720, appendix B.4), which the standard library does not have, with numpy."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
# Long inputs are cut into this many parts, whose checksums are computed side by side and then joined.
_PARTS = 1024
_SHORT = 8 * _PARTS

Words = npt.NDArray[np.uint32]


def _table_of_bytes() -> list[int]:
    table = []
    for byte in range(256):
        state = byte
        for _ in range(8):
            state = (state >> 1) ^ (_POLYNOMIAL if state & 1 else 0)
        table.append(state)
    return table


_BYTES = _table_of_bytes()


@lru_cache(maxsize=1)
def _table_of_pairs() -> Words:
    """The effect of two bytes at once."""
    of_bytes = np.array(_BYTES, dtype=np.uint32)
    pairs = np.arange(65536, dtype=np.uint32)
    first = of_bytes[pairs & 0xFF]
    second: Words = of_bytes[(first ^ (pairs >> 8)) & 0xFF] ^ (first >> 8)
    return second


def _images(columns: list[int]) -> Words:
    """Four tables, one for each byte of a state, of the linear map whose columns are `columns`."""
    tables = np.zeros((4, 256), dtype=np.uint32)
    for place in range(4):
        for bit in range(8):
            with_bit = np.arange(256) & (1 << bit) != 0
            tables[place, with_bit] ^= np.uint32(columns[8 * place + bit])
    return tables


def _mapped(tables: Words, states: Words) -> Words:
    image: Words = (
        tables[0, states & 0xFF]
        ^ tables[1, (states >> 8) & 0xFF]
        ^ tables[2, (states >> 16) & 0xFF]
        ^ tables[3, states >> 24]
    )
    return image


@lru_cache(maxsize=64)
def _zeros(power: int) -> Words:
    """The effect of 2**power bytes of zeros on a state."""
    basis = np.array([1 << bit for bit in range(32)], dtype=np.uint32)
    if power == 0:
        return _images([_BYTES[int(state) & 0xFF] ^ (int(state) >> 8) for state in basis])
    half = _zeros(power - 1)
    return _images([int(state) for state in _mapped(half, _mapped(half, basis))])


def _followed_by_zeros(states: Words, length: int) -> Words:
    power = 0
    while length:
        if length & 1:
            states = _mapped(_zeros(power), states)
        length >>= 1
        power += 1
    return states


def _of_long(state: int, data: bytes) -> int:
    """The state after `data`, which has more than four bytes, in parts of one even length."""
    length = -(-len(data) // (2 * _PARTS)) * 2
    # Zeros in front have no effect on a state of 0; the state itself is the same as four changed bytes.
    padded = np.zeros(length * _PARTS, dtype=np.uint8)
    start = padded.size - len(data)
    padded[start:] = np.frombuffer(data, dtype=np.uint8)
    padded[start : start + 4] ^= np.frombuffer(state.to_bytes(4, "little"), dtype=np.uint8)
    columns = np.ascontiguousarray(padded.view("<u2").reshape(_PARTS, length // 2).T)
    states: Words = np.zeros(_PARTS, dtype=np.uint32)
    pairs = _table_of_pairs()
    for column in columns:
        states = pairs[(states ^ column) & 0xFFFF] ^ (states >> 16)
    while states.size > 1:
        states = _followed_by_zeros(states[0::2], length) ^ states[1::2]
        length *= 2
    return int(states[0])


def crc32c(data: Any, value: int = 0) -> int:
    """The checksum of `data`, or of what has the checksum `value` followed by `data`."""
    plain = bytes(data)
    state = value ^ _ONES
    if len(plain) >= _SHORT:
        return _of_long(state, plain) ^ _ONES
    for byte in plain:
        state = _BYTES[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ _ONES
