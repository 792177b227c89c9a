# SPDX-License-Identifier: BSD-2-Clause
"""Writes a GUID partition table with one EFI system partition (UEFI 2.10, chapter 5).

Only the tables: the file system inside the partition is image.py's affair.
"""

import struct
import uuid
import zlib

SECTOR = 512
ENTRIES = 128
ENTRY_SIZE = 128
TABLE_SECTORS = ENTRIES * ENTRY_SIZE // SECTOR
FIRST_USABLE = 2 + TABLE_SECTORS
ESP_TYPE = uuid.UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")


def protective_mbr(sectors):
    """The MBR that tells old tools that the whole disk of @sectors is taken."""
    size = min(sectors - 1, 0xFFFFFFFF)
    entry = struct.pack("<B3sB3sII", 0, b"\x00\x02\x00", 0xEE, b"\xff\xff\xff", 1, size)
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


def _header(disk_guid, sectors, this_lba, other_lba, table_lba, table_crc):
    def pack(crc):
        return struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x00010000, 92, crc, 0, this_lba,
                           other_lba, FIRST_USABLE, sectors - FIRST_USABLE, disk_guid.bytes_le,
                           table_lba, ENTRIES, ENTRY_SIZE, table_crc)
    return pack(zlib.crc32(pack(0))).ljust(SECTOR, b"\0")


def write(disk, sectors, first, count, disk_guid, part_guid, name):
    """Writes both tables into the open file @disk of @sectors.

    The one partition has @count sectors from sector @first on.
    """
    last = first + count - 1
    if first < FIRST_USABLE or last > sectors - FIRST_USABLE:
        raise ValueError("the partition overlaps the partition tables")
    entry = struct.pack("<16s16sQQQ72s", ESP_TYPE.bytes_le, part_guid.bytes_le, first, last, 0,
                        name.encode("utf-16-le"))
    table = entry.ljust(ENTRIES * ENTRY_SIZE, b"\0")
    crc = zlib.crc32(table)
    end = sectors - 1
    disk.seek(0)
    disk.write(protective_mbr(sectors))
    disk.write(_header(disk_guid, sectors, 1, end, 2, crc))
    disk.write(table)
    disk.seek((end - TABLE_SECTORS) * SECTOR)
    disk.write(table)
    disk.write(_header(disk_guid, sectors, end, 1, end - TABLE_SECTORS, crc))
