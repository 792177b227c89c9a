# SPDX-License-Identifier: BSD-2-Clause
"""`vlag image`: a bootable raw disk from a config: GPT, one FAT32 EFI system partition, the files.

Needs mtools, neither root nor loop devices. The same inputs give the same bytes.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import uuid

from . import cfg, gpt
from .errors import ToolError

ESP_START = 1 << 20  # bytes; mtools is told the same as img@@1M
MIN_ESP = 40 << 20  # a FAT32 of one-sector clusters has at least 65,525 of them
CYLINDER = 16 * 63 * gpt.SECTOR  # Bochs sees whole cylinders only
EPOCH = "1577836800"  # the date of all files where SOURCE_DATE_EPOCH does not say another
LOADER = "EFI/BOOT/BOOTX64.EFI"
PATH_MAX = 127  # of a path in the config (hv/config/config.h: CFG_PATH_MAX with its NUL)
_BAD_IN_FAT = set('"*:<>?|') | {chr(code) for code in range(32)}
_NAMESPACE = uuid.UUID("6f3f3c6e-9a0f-5d1c-8f0f-766c61670001")


class Layout:
    """Which host file goes where on the partition; FAT ignores the case of names."""

    def __init__(self):
        self.files = {}  # path on the partition -> pathlib.Path or bytes
        self._taken = {}  # folded path -> "file" or "folder"

    def free(self, target):
        """Whether @target can be added: no file there, nor one where a folder must be."""
        parts = target.lower().split("/")
        if "/".join(parts) in self._taken:
            return False
        return all(self._taken.get("/".join(parts[:n])) != "file" for n in range(1, len(parts)))

    def add(self, target, source):
        parts = target.lower().split("/")
        for n in range(1, len(parts)):
            self._taken["/".join(parts[:n])] = "folder"
        self._taken["/".join(parts)] = "file"
        self.files[target] = source

    def add_mapped(self, name, source):
        """Adds @source under guest/, as @name or, where that is taken, as N-@name."""
        name = "".join("_" if c in _BAD_IN_FAT or c == "," else c for c in name).strip(". ")
        name = name[-100:] or "file"
        target, n = f"guest/{name}", 1
        while not self.free(target):
            n += 1
            target = f"guest/{n}-{name}"
        self.add(target, source)
        return target

    def folders(self):
        """Every folder, parents first, in the spelling that was met first."""
        found = {}
        for target in self.files:
            parts = target.split("/")
            for n in range(1, len(parts)):
                folder = "/".join(parts[:n])
                found.setdefault(folder.lower(), folder)
        return [found[key] for key in sorted(found)]


def _plain(path):
    """The path on the partition under which @path of the config is found, None if it has none."""
    parts = path.replace("\\", "/").split("/")
    if len(path) > PATH_MAX or any(set(part) & _BAD_IN_FAT for part in parts):
        return None
    if any(part in ("", "..") or part != part.rstrip(". ") for part in parts if part != "."):
        return None
    return "/".join(part for part in parts if part != ".") or None


def plan(config, folder, loader, warn):
    """Lays the image out: returns the Layout; the config's text is changed where names must be.

    @folder is where the config's relative paths begin. Files that cannot be read are left out
    with a warning: the hypervisor will say so too, and the other VMs still start.
    """
    layout = Layout()
    layout.add(LOADER, loader)
    layout.add("vlag.cfg", b"")
    renamed, placed = {}, {}
    for path in config.files():
        source = folder / path.replace("\\", "/")
        key = os.path.realpath(source)
        target = _plain(path)
        if target is not None and placed.get(key) == target:
            continue
        if key in placed and target is None:
            renamed[path] = placed[key]
            continue
        if target is None or not layout.free(target):
            target = layout.add_mapped(source.name, source)
            renamed[path] = target
        else:
            layout.add(target, source)
        placed[key] = target
        problem = _unreadable(source)
        if problem:
            warn(f"{path}: {problem}; the image is built without it")
            del layout.files[target]
    config.rename(renamed)
    layout.files["vlag.cfg"] = config.text().encode("utf-8", "surrogateescape")
    return layout


def _unreadable(path):
    try:
        if path.is_dir():
            return "is a folder, not a file"
        with open(path, "rb"):
            return None
    except OSError as error:
        return error.strerror.lower()


def _mtools(program, *args):
    env = dict(os.environ, TZ="UTC", MTOOLSRC="/dev/null", MTOOLS_SKIP_CHECK="1",
               SOURCE_DATE_EPOCH=os.environ.get("SOURCE_DATE_EPOCH") or EPOCH)
    try:
        done = subprocess.run([program, *args], env=env, stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, text=True, errors="replace")
    except FileNotFoundError:
        raise ToolError(f"{program} is not installed; `tools/deps build` installs it") from None
    if done.returncode:
        raise ToolError(f"{program} failed: {(done.stderr or done.stdout).strip()}")


def _size_of(source):
    return len(source) if isinstance(source, bytes) else source.stat().st_size


def build(layout, output):
    """Writes the image @output (a path) with the files of @layout."""
    content = sum(_size_of(source) + 4096 for source in layout.files.values())
    # One-sector clusters cost 4 bytes in each of two FATs; a tenth is left for what firmware adds.
    esp = max(MIN_ESP, content * 9 // 8 + (8 << 20))
    total = -(-(ESP_START + esp + (1 << 20)) // CYLINDER) * CYLINDER
    first, count = ESP_START // gpt.SECTOR, esp // gpt.SECTOR
    temporary = f"{output}.tmp{os.getpid()}"
    if os.path.exists(output) and not os.path.isfile(output):
        # Replacing a device's node would not write to the device.
        raise ToolError(f"{output}: is a folder or a device; name a file, and copy it to a device "
                        "with dd")
    try:
        with open(temporary, "wb") as disk:
            disk.truncate(total)
        drive = f"{temporary}@@{ESP_START}"
        _mtools("mformat", "-i", drive, "-F", "-c", "1", "-T", str(count), "-h", "16", "-s", "63",
                "-H", str(first), "-N", "766c6167", "-v", "VLAG", "::")
        for folder in layout.folders():
            _mtools("mmd", "-i", drive, f"::/{folder}")
        digest = hashlib.sha256()
        for target, source in sorted(layout.files.items()):
            _copy_in(drive, target, source, digest)
        with open(temporary, "r+b") as disk:
            gpt.write(disk, total // gpt.SECTOR, first, count,
                      uuid.uuid5(_NAMESPACE, "disk" + digest.hexdigest()),
                      uuid.uuid5(_NAMESPACE, "esp" + digest.hexdigest()), "vlag")
        os.replace(temporary, output)
    except OSError as error:
        name = error.filename if error.filename not in (None, temporary) else output
        raise ToolError(f"{name}: {error.strerror.lower()}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _copy_in(drive, target, source, digest):
    with tempfile.NamedTemporaryFile() as staged:
        if isinstance(source, bytes):
            staged.write(source)
            staged.flush()
            source = pathlib.Path(staged.name)
        digest.update(target.encode() + b"\0" + hashlib.sha256(source.read_bytes()).digest())
        _mtools("mcopy", "-i", drive, str(source), f"::/{target}")


def read_config(path):
    """The Config in the file @path."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return cfg.Config(file.read())
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror.lower()}; -c names the config, an example is "
                        "vlag.cfg in the project's folder") from None


def default_loader():
    return pathlib.Path(__file__).resolve().parents[2] / "build" / "BOOTX64.EFI"


def build_from_config(config, cfg_path, loader, output, warn):
    """Builds the image @output from a Config; returns its Layout."""
    loader = pathlib.Path(loader)
    problem = _unreadable(loader)
    if problem:
        raise ToolError(f"{loader}: {problem}; `make` builds it, --efi names another one")
    layout = plan(config, pathlib.Path(cfg_path).resolve().parent, loader, warn)
    build(layout, output)
    return layout


def add_parser(commands):
    parser = commands.add_parser(
        "image", help="build a bootable disk image from a config",
        description="Builds a raw disk image (GPT, one FAT32 EFI system partition) that holds the "
                    "hypervisor, the config as \\vlag.cfg and every file that it names. It boots "
                    "from a USB stick, or under QEMU and Bochs. Paths in the config are relative "
                    "to the config's folder; those that leave it are put under \\guest, and the "
                    "config in the image says so.")
    parser.add_argument("-c", "--config", required=True, metavar="CFG")
    parser.add_argument("-o", "--output", required=True, metavar="IMG")
    parser.add_argument("--efi", default=default_loader(), metavar="FILE",
                        help="the hypervisor (default: build/BOOTX64.EFI)")
    parser.set_defaults(run=main)


def main(args):
    def warn(text):
        print(f"vlag image: {args.config}: {text}", file=sys.stderr)
    build_from_config(read_config(args.config), args.config, args.efi, args.output, warn)
    return 0
