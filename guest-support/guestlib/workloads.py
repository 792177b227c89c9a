# SPDX-License-Identifier: BSD-2-Clause
"""Debian's load programs for the guests: taken out of their packages with the shared libraries that
they need, never installed. Each is an entry of the cache, a tree as it lies in the guest."""

import inspect
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import cache, debian, elf
from .cache import Error, say

LIBRARIES = "lib/x86_64-linux-gnu"  # where Debian's loader looks without a cache of its own


def short_dbench_script(lines, count):
    """The first COUNT of dbench's LINES without its filler files, which take 20 MB a client and are
    only written: each line has an operation, then the name or the number of a file."""
    fillers, kept = set(), []
    for line in lines:
        words = line.split()
        if len(kept) == count:
            break
        if b"filler." in line:
            if words[0] == b"NTCreateX":
                fillers.add(words[-2])
            continue
        if len(words) > 1 and words[1] in fillers:
            if words[0] == b"Close":
                fillers.remove(words[1])
            continue
        kept.append(line)
    return kept


def _shorten_dbench(root, out):
    """dbench's script of file operations is 25 MB, more than a small guest has. Its beginning has
    the same mix of operations, and dbench starts over at the end."""
    source = next(root.glob("usr/share/dbench/client.txt"), None)
    if source is None:
        raise Error("the package dbench holds no usr/share/dbench/client.txt")
    target = out / "share/dbench/client.txt"
    target.parent.mkdir(parents=True)
    with open(source, "rb") as lines:
        target.write_bytes(b"".join(short_dbench_script(lines, DBENCH_LINES)))


DBENCH_LINES = 20000

# name of the workload: (package, program in it, what else to do with the unpacked package)
PROGRAMS = {
    "hackbench": ("rt-tests", "usr/bin/hackbench", None),
    "dbench": ("dbench", "usr/bin/dbench", _shorten_dbench),
    "pigz": ("pigz", "usr/bin/pigz", None),
    "sysbench": ("sysbench", "usr/bin/sysbench", None),
    "stress-ng": ("stress-ng", "usr/bin/stress-ng", None),
}


def parse_depends(text):
    """The packages that a Depends field names; of alternatives the first."""
    names = []
    for part in re.split(r"\s*,\s*", text.strip()):
        match = re.match(r"[a-z0-9][a-z0-9+.-]*", part)
        if match and match.group() not in names:
            names.append(match.group())
    return names


class Packages:
    """Debian packages unpacked below FOLDER, each with its dependencies when something in them is
    looked for."""

    def __init__(self, folder):
        self.folder = folder
        self._libraries = {}  # file name -> path
        self._waiting = []  # packages that may be unpacked next, nearest first
        self._seen = set()

    def unpack(self, name):
        """Unpack package NAME: the folder with its files."""
        self._seen.add(name)
        deb = debian.download(debian.find_or_cached(name))
        root = self.folder / name
        root.mkdir()
        debian.unpack(deb, root)
        for path in sorted(root.rglob("*.so*")):
            self._libraries.setdefault(path.name, path)
        for field in ("Depends", "Pre-Depends"):
            done = subprocess.run(["dpkg-deb", "-f", str(deb), field], text=True,
                                  capture_output=True)
            self._waiting += parse_depends(done.stdout)
        return root

    def library(self, name):
        """The file of the shared library NAME, or of the loader, from the packages unpacked so far
        or the nearest of those that they depend on. Raises Error."""
        while name not in self._libraries:
            package = next((p for p in self._order(name) if p not in self._seen), None)
            if package is None:
                raise Error(f"no package that is depended on has the shared library {name}")
            self.unpack(package)
        # Names of libraries are mostly links to the file with the full version.
        return self._libraries[name].resolve()

    def _order(self, name):
        """The packages to look into: first those whose name begins as the library's does."""
        stem = re.split(r"[.-]", name.lower())[0]
        alike = [p for p in self._waiting if p.startswith(stem)]
        return alike + sorted(self._waiting, key=lambda p: not p.startswith("lib"))


def resolve(program, library):
    """{path in the guest: file} of the loader and all shared libraries of the ELF file PROGRAM;
    library(name) finds one by its name."""
    found, waiting = {}, [program]
    while waiting:
        path = waiting.pop()
        try:
            loader, names = elf.needed(path.read_bytes())
        except ValueError as error:
            raise Error(f"{path} is {error}") from error
        if loader and loader.lstrip("/") not in found:
            found[loader.lstrip("/")] = library(pathlib.PurePath(loader).name)
        for name in names:
            target = f"{LIBRARIES}/{name}"
            if name == pathlib.PurePath(loader or "ld-linux-x86-64.so.2").name:
                continue
            if target not in found:
                found[target] = library(name)
                waiting.append(found[target])
    return found


def _make(workload, folder):
    package, program, further = PROGRAMS[workload]
    out = folder / "root"
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        packages = Packages(pathlib.Path(temporary))
        root = packages.unpack(package)
        file = root / program
        if not file.is_file():
            raise Error(f"the package {package} holds no {program}")
        files = {f"bin/{workload}": file, **resolve(file, packages.library)}
        for path, source in files.items():
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, out / path)
            (out / path).chmod(0o755)
        if further:
            further(root, out)
    sizes = {path: (out / path).stat().st_size for path in sorted(files)}
    (folder / "info.json").write_text(json.dumps(sizes, indent=1) + "\n")
    say(f"{workload}: {sum(sizes.values()) >> 10} KiB with its {len(sizes) - 1} libraries")


def trees(workloads):
    """The folders with the files of WORKLOADS as they lie in the guest."""
    packages = debian.find_all([PROGRAMS[workload][0] for workload in workloads])
    return [_tree(workload, packages[PROGRAMS[workload][0]]) for workload in workloads]


def _tree(workload, package):
    steps = (_make, resolve, Packages, *filter(None, [PROGRAMS[workload][2]]))
    recipe = "\n".join(
        [repr(PROGRAMS[workload][:2]), str(DBENCH_LINES), inspect.getsource(short_dbench_script)]
        + [inspect.getsource(step) for step in steps]
    )
    key = cache.key({"package": f"{package.filename} {package.sha256}", "recipe": recipe})
    return cache.entry("workload", key, lambda folder: _make(workload, folder)) / "root"
