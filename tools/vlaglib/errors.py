# SPDX-License-Identifier: BSD-2-Clause
"""The one exception that ends a command with a line on stderr, and the exit statuses."""

OK = 0
NOT_SEEN = 1  # the machine ended before what was waited for
USAGE = 2  # wrong arguments, a file that cannot be read, a program that is missing
FATAL = 3  # the hypervisor stopped with `vlag: fatal: ...`
CONTROL = 4  # a monitor command failed, or its answer was not what it must be
TIMEOUT = 124
INTERRUPTED = 130


class ToolError(Exception):
    """Ends the command with one line: what is wrong, and what would be right."""

    def __init__(self, text, status=USAGE):
        super().__init__(text)
        self.status = status
