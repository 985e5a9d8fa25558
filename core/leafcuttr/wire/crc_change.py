"""The CRC-32C of bytes whose beginning is replaced by as many others, without a look at the rest.

A CRC is linear: the CRC of A and B together is the CRC of A, moved on by the length of B, xor that of B (zlib's
`crc32_combine` rests on this). So with A' in A's place it changes by the difference of the CRCs of A and A', moved on.
A CRC that was wrong stays wrong.

Moving on by one byte is a linear map of 32 bits. Those for 1, 2, 4, 8... bytes are kept as four tables of 256 numbers,
made at their first use, in a millisecond each.
"""

from typing import Final

_POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's, reflected."""

_Map = tuple[list[int], list[int], list[int], list[int]]
"""Of a byte of a CRC, the lowest first, what becomes of it."""

_maps: list[_Map] = []
"""By k the map for 2**k bytes."""


def changed(crc: int, before: int, after: int, behind: int) -> int:
    """The CRC of the whole, which was `crc`, once its beginning has the CRC `after` instead of `before`; `behind` that
    are so many bytes."""
    difference, k = before ^ after, 0
    while behind:
        if behind & 1:
            if k >= len(_maps):
                _extend(k)
            first, second, third, fourth = _maps[k]
            difference = (
                first[difference & 0xFF]
                ^ second[difference >> 8 & 0xFF]
                ^ third[difference >> 16 & 0xFF]
                ^ fourth[difference >> 24]
            )
        behind >>= 1
        k += 1
    return crc ^ difference


def _extend(k: int) -> None:
    while len(_maps) <= k:
        if not _maps:
            columns = [_by_a_byte(1 << bit) for bit in range(32)]
        else:
            columns = [_applied(_maps[-1], _applied(_maps[-1], 1 << bit)) for bit in range(32)]
        _maps.append(_map_of(columns))


def _by_a_byte(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


def _applied(one: _Map, crc: int) -> int:
    return one[0][crc & 0xFF] ^ one[1][crc >> 8 & 0xFF] ^ one[2][crc >> 16 & 0xFF] ^ one[3][crc >> 24]


def _map_of(columns: list[int]) -> _Map:
    """`columns` are what becomes of each bit."""
    tables: list[list[int]] = []
    for place in range(4):
        table = [0]
        for bit in range(8):
            table += [known ^ columns[8 * place + bit] for known in table]
        tables.append(table)
    return tables[0], tables[1], tables[2], tables[3]
