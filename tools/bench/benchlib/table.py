# SPDX-License-Identifier: BSD-2-Clause
"""Tables as text that is Markdown too: aligned columns, numbers to the right."""


def number(value):
    """1234567 -> 1,234,567; None -> a dash; text stays."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def render(head, rows, left=1):
    """The lines of a table; the first @left columns are text."""
    cells = [list(head)] + [[number(cell) for cell in row] for row in rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row):
        return "| " + " | ".join(cell.ljust(width[i]) if i < left else cell.rjust(width[i])
                                 for i, cell in enumerate(row)) + " |"
    rule = "| " + " | ".join("-" * w if i < left else "-" * (w - 1) + ":"
                             for i, w in enumerate(width)) + " |"
    return "\n".join([line(cells[0]), rule] + [line(row) for row in cells[1:]])
