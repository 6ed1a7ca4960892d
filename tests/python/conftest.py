"""$FELLOE_LIBRARY names the library that a build made; without it the installed package is tested."""

import importlib.util
import os
import sys

if os.environ.get("FELLOE_LIBRARY"):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))


def installed(name):
    """Whether the real package is there; once felloe.dropin is imported, Python finds a stand-in where it is not."""
    spec = importlib.util.find_spec(name)
    return spec is not None and os.path.join("felloe", "compat") not in (spec.origin or "")
