# SPDX-License-Identifier: BSD-2-Clause
"""What an ELF file says it needs: its loader and its shared libraries. Reads 64-bit little-endian
files, and only what that question takes."""

import struct

MAGIC = b"\x7fELF\x02\x01"
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB = 0, 1, 5


def _segments(data):
    """(type, file offset, address, size in the file) of each program header."""
    offset, size, count = (
        struct.unpack_from("<Q", data, 32)[0],
        *struct.unpack_from("<HH", data, 54),
    )
    for at in range(offset, offset + size * count, size):
        kind, _, where, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        yield kind, where, address, length


def _text(data, at):
    return data[at : data.index(b"\0", at)].decode()


def needed(data):
    """(loader or None, [names of shared libraries]) of the ELF file in DATA; ValueError if it is
    none."""
    if data[:6] != MAGIC:
        raise ValueError("no 64-bit ELF file")
    try:
        segments = list(_segments(data))
        loader = next((_text(data, s[1]) for s in segments if s[0] == PT_INTERP), None)
        dynamic = next((s for s in segments if s[0] == PT_DYNAMIC), None)
        if dynamic is None:
            return loader, []
        entries = []
        for at in range(dynamic[1], dynamic[1] + dynamic[3], 16):
            tag, value = struct.unpack_from("<qQ", data, at)
            if tag == DT_NULL:
                break
            entries.append((tag, value))
        table = next(value for tag, value in entries if tag == DT_STRTAB)
        strings = next(
            table - address + where
            for kind, where, address, length in segments
            if kind == PT_LOAD and address <= table < address + length
        )
        return loader, [_text(data, strings + value) for tag, value in entries if tag == DT_NEEDED]
    except (struct.error, StopIteration, ValueError, OverflowError) as error:
        raise ValueError("a broken ELF file") from error
