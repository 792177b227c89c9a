# SPDX-License-Identifier: BSD-2-Clause
"""Debian packages, downloaded and looked into, never installed. The system's own apt configuration
says where from; a package that its suites do not have is looked for in the other suites of the same
mirror, with lists of our own, so that the system's are not touched. Needs no root."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

from . import cache
from .cache import Error, say

# Where to look for what the system's suites lack, oldest first: the nearest to the system wins.
OTHER_SUITES = ("bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_MAX_AGE_S = 24 * 3600


@dataclasses.dataclass(frozen=True)
class Package:
    """What apt would download: the file's name says package, version and architecture."""

    name: str
    filename: str
    sha256: str
    apt_options: tuple = ()

    @property
    def version(self):
        return self.filename.split("_")[1].replace("%3a", ":")


_URI = re.compile(r"^'\S+' (\S+\.deb) \d+ SHA256:([0-9a-f]{64})", re.MULTILINE)


def parse_print_uris(text):
    """The (file name, SHA-256) that `apt-get download --print-uris` printed, or None."""
    match = _URI.search(text)
    return match.groups() if match else None


def _run(command, **kwargs):
    environment = dict(os.environ, LC_ALL="C")
    try:
        return subprocess.run(command, text=True, capture_output=True, env=environment, **kwargs)
    except FileNotFoundError as error:
        raise Error(
            f"{command[0]} is missing: downloading kernels needs Debian's apt and dpkg"
        ) from error


def _ask(name, options):
    found = parse_print_uris(_run(["apt-get", *options, "download", "--print-uris", name]).stdout)
    return Package(name, *found, tuple(options)) if found else None


def _mirror():
    """The URI of the main Debian archive in the system's apt configuration, with its trailing
    slash."""
    text = _run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
            "Created-By: Packages",
        ]
    ).stdout
    for line in text.splitlines():
        origin, label, uri = line.split("|", 2)
        if origin == label == "Debian":
            return uri
    return None


def _private_options(name, sources):
    """apt options for lists of our own, under the name NAME, made from the text SOURCES, or from
    the system's sources where that is None. The lists are fetched when they are missing or old."""
    base = cache.root() / "apt" / name
    lists = base / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (base / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    options = [
        "-o",
        f"Dir::State::Lists={lists}",
        "-o",
        f"Dir::Cache={base / 'cache'}",
        "-o",
        "APT::Sandbox::User=",
        "-o",
        "Acquire::Languages=none",
    ]
    if sources is not None:
        (base / "sources.list").write_text(sources)
        options += [
            "-o",
            f"Dir::Etc::SourceList={base / 'sources.list'}",
            "-o",
            "Dir::Etc::SourceParts=-",
        ]
    stamp = base / "updated"
    if not stamp.exists() or time.time() - stamp.stat().st_mtime > LISTS_MAX_AGE_S:
        say(f"fetching the package lists ({name})")
        result = _run(["apt-get", *options, "-q", "update"])
        if result.returncode == 0 and "Failed to fetch" not in result.stderr:
            stamp.touch()
    return options


def find(name, suite=None):
    """The Package NAME as apt would download it; from SUITE when one is named. None when nobody has
    it."""
    mirror = _mirror()
    if suite is None:
        package = _ask(name, []) or _ask(name, _private_options("system", None))
        if package:
            return package
        mirror = mirror or _mirror()
    for other in [suite] if suite else OTHER_SUITES:
        if mirror is None:
            break
        source = f"deb [signed-by={KEYRING}] {mirror} {other} main\n"
        package = _ask(name, _private_options(other, source))
        if package:
            return package
    return None


def find_or_cached(name, suite=None, pattern=None):
    """As find(), and where apt has none, the newest file that was downloaded before: of package
    NAME, or of one whose name matches the regular expression PATTERN. Raises Error."""
    package = find(name, suite)
    if package:
        return package
    files = [
        file
        for file in (cache.root() / "deb").glob("*.deb")
        if re.fullmatch(pattern or re.escape(name), file.name.split("_")[0])
    ]
    if files:
        path = max(files, key=lambda file: file.stat().st_mtime)
        say(f"apt has no {name}: taking {path.name} from the cache")
        return Package(path.name.split("_")[0], path.name, cache.file_hash(path))
    where = f"the suite {suite}" if suite else "any suite"
    raise Error(
        f"apt finds no package {name} in {where}, and none is in the cache {cache.root()}: "
        "check the name, the network, and that `apt-get update` works"
    )


def find_all(names):
    """name -> Package of all NAMES, as find_or_cached(). apt is asked once, which takes it as long
    as for one."""
    text = _run(["apt-get", "download", "--print-uris", *names]).stdout
    found = {match[0].split("_")[0]: Package(match[0].split("_")[0], *match)
             for match in _URI.findall(text)}
    return {name: found.get(name) or find_or_cached(name) for name in names}


def download(package):
    """The path of PACKAGE's file, downloaded when the cache does not have it. Raises Error."""
    folder = cache.root() / "deb"
    path = folder / package.filename
    with cache.locked(f"deb-{package.name}"):
        if path.exists() and cache.file_hash(path) == package.sha256:
            return path
        folder.mkdir(exist_ok=True)
        say(f"downloading {package.filename}")
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as temporary:
            attempts = [list(package.apt_options)]
            if not package.apt_options:
                # Old lists name files that the mirror may no longer have.
                attempts.append(None)
            for options in attempts:
                if options is None:
                    options = _private_options("system", None)
                options = ["-o", "APT::Sandbox::User=", *options]
                result = _run(["apt-get", *options, "-q", "download", package.name], cwd=temporary)
                files = list(pathlib.Path(temporary).glob("*.deb"))
                if result.returncode == 0 and files:
                    files[0].chmod(0o644)
                    return pathlib.Path(shutil.move(files[0], folder / files[0].name))
        reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Error(f"cannot download {package.filename} ({reason}): check the network")


def depends(name, pattern):
    """The first package that NAME depends on and whose name matches PATTERN, or None."""
    text = _run(["apt-cache", "depends", name]).stdout
    match = re.search(rf"Depends: ({pattern})$", text, re.MULTILINE)
    return match.group(1) if match else None


def unpack(deb, folder):
    """Unpack the package's files below FOLDER; runs none of its scripts."""
    result = _run(["dpkg-deb", "-x", str(deb), str(folder)])
    if result.returncode:
        raise Error(f"cannot unpack {deb}: {result.stderr.strip()}")


def extract(deb, pattern, destination):
    """Write the one file of package DEB whose path matches PATTERN to DESTINATION; returns its path
    there."""
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE
    ) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            for member in archive:
                if member.isfile() and re.fullmatch(pattern, member.name):
                    with open(destination, "wb") as out:
                        shutil.copyfileobj(archive.extractfile(member), out)
                    process.kill()
                    return member.name
    raise Error(f"{deb} holds no file {pattern}")
