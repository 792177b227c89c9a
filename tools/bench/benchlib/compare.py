# SPDX-License-Identifier: BSD-2-Clause
"""Two results side by side: what changed from one hypervisor to another, to the tick."""

import json

from vlaglib.errors import ToolError

from . import table

FORMAT = 1


def load(path):
    """The results in a file that tools/bench/run wrote."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ToolError(f"{path}: {error}") from None
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise ToolError(f"{path}: not a bench.json of format {FORMAT}")
    return results


def flat(results):
    """name -> number of all that can be compared."""
    found = {}
    for rows in (results.get("paths", {}).get(kind, []) for kind in ("exits", "no_exit", "also")):
        found.update({f"path: {row['line']}": row["ticks"] for row in rows})
    if "token" in results:
        found["token: per pass"] = results["token"]["ticks"]
    boot = results.get("boot", {})
    found.update({f"boot: {key}": boot[key] for key in ("direct", "guest", "hypervisor")
                  if key in boot})
    for row in boot.get("exits", []):
        found[f"boot: {row['reason']}, exits"] = row["count"]
        found[f"boot: {row['reason']}, median"] = row["median"]
    size = results.get("size", {})
    found.update({f"size: {key}": value for key, value in size.items() if isinstance(value, int)})
    return found


def text(old, new):
    """A table of what differs, of the parts that both have."""
    before, after = flat(old), flat(new)
    both = [name for name in after if name in before]
    rows = [[name, before[name], after[name], after[name] - before[name]] for name in both
            if before[name] != after[name] and None not in (before[name], after[name])]
    head = f"{len(rows)} of {len(both)} figures differ from those of " \
           f"{old['hypervisor']['commit']}:"
    return head + ("\n\n" + table.render(["figure", "before", "now", "difference"], rows)
                   if rows else "")
