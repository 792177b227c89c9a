# SPDX-License-Identifier: BSD-2-Clause
"""The cache of what guest-support downloads and builds, by content: an entry's name is the hash of
all that it was made from, so an entry is never stale and never changed. Nothing here knows what is
kept."""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import sys


class Error(Exception):
    """A user's error or a failed tool: one line that says what is wrong and what would be right."""


def say(message):
    print(f"guest-support: {message}", file=sys.stderr, flush=True)


def run_script(main):
    """Run main(); an Error ends the script with that one line and status 1."""
    try:
        sys.exit(main())
    except Error as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def root():
    """The cache folder: $VLAG_CACHE, else $XDG_CACHE_HOME/vlag, else ~/.cache/vlag. Made when
    missing."""
    base = os.environ.get("VLAG_CACHE")
    if not base:
        base = os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "vlag"
        )
    path = pathlib.Path(base).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(
            f"cannot make the cache folder {path}: {error.strerror}; "
            "set VLAG_CACHE to a folder that can be written"
        ) from error
    return path


def key(parts):
    """The name of an entry made from PARTS, a mapping of names to str or bytes. Names and lengths
    are hashed too, so that text cannot move from one part to another unseen. The order of the
    mapping does not matter."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        value = parts[name]
        data = value.encode() if isinstance(value, str) else bytes(value)
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:24]


def file_hash(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def locked(name, wait=True):
    """Hold the cache's lock NAME: two calls that want the same entry make it once. Yields whether
    it is held, which is False only where another call holds it and WAIT is False."""
    locks = root() / "locks"
    locks.mkdir(exist_ok=True)
    with open(locks / name, "w") as file:
        held = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = wait
            if wait:
                say(f"waiting for another call that makes {name}")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield held


def _sweep(folder):
    """Remove what calls that were killed left unfinished in FOLDER: nobody holds its lock."""
    for partial in folder.glob(".*.partial"):
        name = partial.name[1 : -len(".partial")]
        with locked(f"{folder.name}-{name}", wait=False) as held:
            if held:
                shutil.rmtree(partial, ignore_errors=True)


def entry(kind, name, make):
    """The folder of entry KIND/NAME. When it is missing, make(folder) fills an unfinished one,
    which becomes the entry only when make() returned: an interrupted call leaves no half entry."""
    folder = root() / kind / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    with locked(f"{kind}-{name}"):
        if folder.is_dir():
            return folder
        partial = folder.with_name(f".{name}.partial")
        partial.mkdir()
        try:
            make(partial)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return folder


def deliver(source, destination):
    """Copy SOURCE to DESTINATION, whole or not at all; makes the folder."""
    destination = pathlib.Path(destination)
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, temporary)
        temporary.replace(destination)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise Error(f"cannot write {destination}: {error.strerror}") from error
