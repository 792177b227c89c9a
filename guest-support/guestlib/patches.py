# SPDX-License-Identifier: BSD-2-Clause
"""An external patch series: a folder of patches or a mailbox, put into order and applied to a
source tree. Nothing here knows what the patches are about."""

import contextlib
import dataclasses
import email
import email.policy
import mailbox
import pathlib
import re
import subprocess
import tempfile

from .cache import Error


@dataclasses.dataclass(frozen=True)
class Patch:
    name: str
    data: bytes


def _has_diff(data):
    return (
        re.search(rb"^(diff --git |--- )", data, re.MULTILINE) is not None
        and b"\n@@ " in b"\n" + data
    )


def _decoded(data):
    """The text of a patch that was mailed: base64 and quoted-printable undone. Anything else as it
    is."""
    if not data.startswith(b"From "):
        return data
    message = email.message_from_bytes(data)
    body = message.get_payload(decode=True)
    return body if body is not None else data


def _number(subject):
    match = re.search(r"\[[^\]]*?(\d+)/\d+\]", subject)
    return int(match.group(1)) if match else None


def _from_folder(folder):
    series = folder / "series"
    if series.is_file():
        names = [line.split("#")[0].strip() for line in series.read_text().splitlines()]
        paths = [folder / name.split()[0] for name in names if name]
    else:
        paths = sorted(path for path in folder.iterdir() if path.suffix in (".patch", ".diff"))
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise Error(f"{series} names {missing[0].name}, which is not in {folder}")
    return [Patch(path.name, _decoded(path.read_bytes())) for path in paths]


def _from_mailbox(path):
    patches = []
    with contextlib.closing(mailbox.mbox(path, create=False)) as box:
        messages = list(box)
    for index, message in enumerate(messages):
        subject = " ".join(str(message.get("Subject", "")).split())
        body = b""
        for part in message.walk():
            if part.get_content_maintype() == "text":
                body += part.get_payload(decode=True) or b""
        number = _number(subject)
        patches.append(
            (
                index if number is None else number,
                index,
                Patch(subject or f"mail {index + 1}", body),
            )
        )
    return [patch for _, _, patch in sorted(patches, key=lambda item: item[:2])]


def load(path):
    """The patches of PATH in their order: a folder (by its `series` file, else by name), or a
    mailbox (by the n/m in the subjects, else as they come). Cover letters and other text without a
    diff are left out."""
    path = pathlib.Path(path)
    if path.is_dir():
        patches = _from_folder(path)
    elif path.is_file():
        patches = _from_mailbox(path)
        if not patches and _has_diff(path.read_bytes()):
            patches = [Patch(path.name, path.read_bytes())]
    else:
        raise Error(f"no patch series at {path}: name a folder of .patch files or a mailbox")
    patches = [patch for patch in patches if _has_diff(patch.data)]
    if not patches:
        raise Error(f"{path} holds no patch: a folder of .patch files or a mailbox is needed")
    return patches


def apply(patches, tree):
    """Apply PATCHES to the source below TREE, in order. Raises Error naming the first that does not
    apply."""
    for patch in patches:
        with tempfile.NamedTemporaryFile() as file:
            file.write(patch.data)
            file.flush()
            result = subprocess.run(
                [
                    "patch",
                    "-p1",
                    "--forward",
                    "--batch",
                    "--no-backup-if-mismatch",
                    "-i",
                    file.name,
                ],
                cwd=tree,
                text=True,
                errors="replace",
                capture_output=True,
            )
        if result.returncode:
            lines = result.stdout.splitlines() + result.stderr.splitlines()
            failed = [
                line
                for line in lines
                if "FAILED" in line or "can't find" in line or "malformed" in line
            ]
            raise Error(
                f"patch '{patch.name}' does not apply to this kernel: "
                f"{(failed or lines or ['?'])[0]}; "
                "take the kernel version that the series was made for"
            )
