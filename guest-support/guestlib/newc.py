# SPDX-License-Identifier: BSD-2-Clause
"""A writer of "newc" cpio archives, the format of an initramfs (Linux,
Documentation/driver-api/early-userspace/ buffer-format.rst). The same content gives the same bytes:
entries are sorted, everything belongs to root and dates from 1970. Device nodes are only entries
here, so no privilege is needed."""

import stat

MAGIC = b"070701"
TRAILER = "TRAILER!!!"
NEWC_MAX = (1 << 32) - 1


def _padded(data):
    return data + bytes(-len(data) % 4)


def _header(ino, mode, nlink, size, rdev, name):
    fields = (ino, mode, 0, 0, nlink, 0, size, 0, 0, rdev[0], rdev[1], len(name), 0)
    return _padded(MAGIC + b"".join(b"%08X" % field for field in fields) + name)


def clean_path(path):
    """PATH as the archive names it: without leading slash; parents are not allowed. Raises
    ValueError."""
    parts = [part for part in str(path).split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise ValueError(
            f"'{path}' is no path inside an initramfs: name an absolute one without '..'"
        )
    return "/".join(parts)


class Archive:
    """Entries by path. Folders above an entry come by themselves; a path may be given once."""

    def __init__(self):
        self._entries = {}

    def __contains__(self, path):
        return clean_path(path) in self._entries

    def _add(self, path, mode, data=b"", rdev=(0, 0)):
        path = clean_path(path)
        if path in self._entries and not (
            stat.S_ISDIR(mode) and stat.S_ISDIR(self._entries[path][0])
        ):
            raise ValueError(f"'/{path}' is in the initramfs twice")
        if len(data) > NEWC_MAX:
            raise ValueError(f"'/{path}' is larger than the 4 GiB that a cpio entry can hold")
        parent = path.rpartition("/")[0]
        if parent:
            if parent in self._entries and not stat.S_ISDIR(self._entries[parent][0]):
                raise ValueError(f"'/{path}' is below '/{parent}', which is no folder")
            if parent not in self._entries:
                self.directory(parent)
        self._entries[path] = (mode, data, rdev)

    def directory(self, path, mode=0o755):
        self._add(path, stat.S_IFDIR | mode)

    def file(self, path, data, mode=0o644):
        self._add(path, stat.S_IFREG | mode, data)

    def symlink(self, path, target):
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def character_device(self, path, major, minor, mode=0o600):
        self._add(path, stat.S_IFCHR | mode, rdev=(major, minor))

    def tobytes(self):
        # Sorted by components: a folder comes before what is in it.
        order = sorted(self._entries, key=lambda path: path.split("/"))
        out = []
        for ino, path in enumerate(order, start=1):
            mode, data, rdev = self._entries[path]
            nlink = 2 if stat.S_ISDIR(mode) else 1
            out.append(_header(ino, mode, nlink, len(data), rdev, path.encode() + b"\0"))
            out.append(_padded(data))
        out.append(_header(0, 0, 1, 0, (0, 0), TRAILER.encode() + b"\0"))
        return b"".join(out)
