# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of guest-support share: where it is, and its scripts as modules."""

import importlib.machinery
import importlib.util
import pathlib
import sys

ROOM = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOM))
sys.dont_write_bytecode = True


def load_script(name):
    """One of the scripts, which have no .py in their names, as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOM / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
