# SPDX-License-Identifier: BSD-2-Clause
"""Size: bytes of the loader's file and of the loaded image, and what the hypervisor's memory is."""

import re

from vlaglib.errors import ToolError

from . import table, vlagrun

MANY = 8  # vCPUs of the second run: the difference is what one more costs


def _image(console):
    """KiB of the loaded image, by the monitor's command `memory`."""
    found = re.search(r"^image +(\d+) KiB", console, re.M)
    if not found:
        raise ToolError(f"the monitor's `memory` says no size of the image:\n{console[-1000:]}")
    return int(found.group(1)) << 10


def _run(setup, vcpus, pcpus):
    name = f"size-{vcpus}-{pcpus}"
    config = vlagrun.tiny_config(setup, "hello", vcpus=vcpus)
    console, stats = vlagrun.run(setup, name, config, "vm bench: ended", pcpus,
                                 command="memory")
    return _image(console), stats["memory"]


def measure(setup):
    """Three runs: 1 vCPU on 1 pCPU, more vCPUs, one more pCPU."""
    image, one = _run(setup, 1, 1)
    _, many = _run(setup, MANY, 1)
    _, two = _run(setup, 1, 2)
    own = {use: size for use, size in one.items() if use != "guest RAM"}

    def each(other, count):
        return sum(size - one[use] for use, size in other.items() if use != "guest RAM") // count
    return {"efi": setup.efi.stat().st_size, "image": image, "memory": own,
            "all": image + sum(own.values()), "per_vcpu": each(many, MANY - 1),
            "per_pcpu": each(two, 1)}


def text(result):
    """The table of measure()."""
    rows = [["BOOTX64.EFI", result["efi"]], ["loaded image", result["image"]]]
    rows += [[f"memory: {use}", size] for use, size in result["memory"].items()]
    rows += [["image and memory, one VM with 1 vCPU on 1 pCPU", result["all"]],
             ["each further vCPU", result["per_vcpu"]], ["each further pCPU", result["per_pcpu"]]]
    return "Bytes; guests' RAM is not counted:\n\n" + table.render(["", "bytes"], rows)
