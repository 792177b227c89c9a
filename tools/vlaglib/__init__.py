# SPDX-License-Identifier: BSD-2-Clause
"""The parts of tools/vlag, one module a topic. The standard library only."""
