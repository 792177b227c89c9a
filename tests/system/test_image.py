# SPDX-License-Identifier: BSD-2-Clause
"""The disk image, read back by a checker that shares nothing with the one that writes it."""

import re
import struct
import subprocess
import unittest
import uuid
import zlib

import vlagtest

CONFIG = """\
[vm one]
kernel = kernels/A long name.bin
initrd = ../outside
[vm two]
kernel = missing
"""


class ImageTest(vlagtest.SystemTest):
    def setUp(self):
        super().setUp()
        (self.folder / "outside").write_bytes(b"o" * 100_000)
        self.folder = self.folder / "in"
        self.folder.mkdir()
        self.loader = self.folder / "loader.efi"
        self.loader.write_bytes(b"MZ" + bytes(range(256)) * 1000)
        self.image = self.folder / "disk.img"

    def build(self, config=CONFIG, name=None, **env):
        path = self.write_config(config, {"kernels/A long name.bin": b"k" * 3_000_000})
        image = self.folder / (name or "disk.img")
        done = vlagtest.vlag("image", "-c", path, "-o", image, "--efi", self.loader, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.messages = done.stderr
        return image.read_bytes()

    def mtools(self, *args):
        done = subprocess.run(args, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_gpt(self, disk):
        """Checks MBR and both partition tables; returns the partition's (first, last) sector."""
        sectors = len(disk) // 512
        self.assertEqual(len(disk) % (16 * 63 * 512), 0, "whole cylinders, for Bochs")
        self.assertEqual(disk[510:512], b"\x55\xaa")
        kind, first, count = disk[450], *struct.unpack_from("<II", disk, 454)
        self.assertEqual((kind, first, count), (0xEE, 1, sectors - 1))
        self.assertEqual(disk[462:510], bytes(48), "one MBR entry")
        tables = []
        for here, other in ((1, sectors - 1), (sectors - 1, 1)):
            header = disk[here * 512:here * 512 + 92]
            (magic, revision, size, crc, zero, my_lba, alternate, usable_first, usable_last, guid,
             entries_lba, entries, entry_size, table_crc) = struct.unpack("<8sIIIIQQQQ16sQIII",
                                                                          header)
            self.assertEqual((magic, revision, size, zero), (b"EFI PART", 0x10000, 92, 0))
            self.assertEqual(crc, zlib.crc32(header[:16] + bytes(4) + header[20:]))
            self.assertEqual((my_lba, alternate), (here, other))
            table = disk[entries_lba * 512:entries_lba * 512 + entries * entry_size]
            self.assertEqual(table_crc, zlib.crc32(table))
            self.assertEqual((entries, entry_size), (128, 128))
            table_last = entries_lba + len(table) // 512 - 1
            self.assertTrue(table_last < usable_first or entries_lba > usable_last)
            self.assertNotEqual(guid, bytes(16))
            tables.append((guid, table, usable_first, usable_last))
        self.assertEqual(*tables, "primary and backup agree")
        guid, table, usable_first, usable_last = tables[0]
        self.assertEqual(table[128:], bytes(127 * 128), "one partition")
        self.assertEqual(uuid.UUID(bytes_le=table[:16]),
                         uuid.UUID("C12A7328-F81F-11D2-BA4B-00A0C93EC93B"))
        self.assertNotIn(table[16:32], (bytes(16), guid))
        first, last = struct.unpack_from("<QQ", table, 32)
        self.assertTrue(usable_first <= first <= last <= usable_last)
        self.assertEqual(first % 2048, 0, "aligned to 1 MiB")
        return first, last

    def check_fat32(self, volume, sectors):
        """The boot sector says FAT32, fits the partition, and has enough clusters to be one."""
        sector, per_cluster, reserved, fats, root, total16 = struct.unpack_from("<HBHBHH", volume,
                                                                                11)
        hidden, total, per_fat = struct.unpack_from("<III", volume, 28)
        self.assertEqual((sector, root, total16, volume[510:512]), (512, 0, 0, b"\x55\xaa"))
        self.assertEqual((total, hidden), (sectors, 2048))
        clusters = (total - reserved - fats * per_fat) // per_cluster
        self.assertGreaterEqual(clusters, 65525)
        self.assertGreaterEqual(per_fat * 128, clusters + 2)

    def test_tables_and_file_system_are_valid(self):
        disk = self.build()
        first, last = self.check_gpt(disk)
        self.check_fat32(disk[first * 512:first * 512 + 512], last - first + 1)

    def test_the_files_are_on_it(self):
        self.build()
        drive = f"{self.image}@@1M"
        listing = self.mtools("mdir", "-/", "-b", "-i", drive, "::").decode().split("\n")
        self.assertEqual(sorted(line for line in listing if line and not line.endswith("/")),
                         ["::/EFI/BOOT/BOOTX64.EFI", "::/guest/outside",
                          "::/kernels/A long name.bin", "::/vlag.cfg"])
        for name, content in (("EFI/BOOT/BOOTX64.EFI", self.loader.read_bytes()),
                              ("guest/outside", b"o" * 100_000),
                              ("kernels/A long name.bin", b"k" * 3_000_000),
                              ("vlag.cfg", CONFIG.replace("../outside", "guest/outside").encode())):
            self.assertEqual(self.mtools("mtype", "-i", drive, f"::/{name}"), content)

    def test_a_missing_file_is_a_warning(self):
        self.build()
        self.assertRegex(self.messages, r"missing: no such file .*the image is built without it")
        self.assertEqual(len(re.findall("^vlag image", self.messages, re.M)), 1)

    def test_the_same_inputs_give_the_same_bytes(self):
        self.assertEqual(self.build(), self.build(name="again.img", TZ="Asia/Tokyo"))

    def test_other_inputs_give_another_disk(self):
        one, two = self.build(), self.build(CONFIG + "# more\n", name="again.img")
        self.assertNotEqual(one[512 + 56:512 + 72], two[512 + 56:512 + 72], "disk GUID")

    def test_the_date_can_be_set(self):
        self.build(SOURCE_DATE_EPOCH="1000000000")
        self.assertIn(b"2001-09-09", self.mtools("mdir", "-i", f"{self.image}@@1M", "::"))

    def test_a_large_file_makes_a_larger_disk(self):
        path = self.write_config("[vm a]\nkernel = big\n", {"big": bytes(90_000_000)})
        done = vlagtest.vlag("image", "-c", path, "-o", self.image, "--efi", self.loader)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, last = self.check_gpt(self.image.read_bytes())
        self.assertGreater((last - first) * 512, 90_000_000)


if __name__ == "__main__":
    unittest.main()
