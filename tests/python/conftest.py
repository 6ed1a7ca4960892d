"""$FELLOE_LIBRARY names the library that a build made; without it the installed package is tested."""

import os
import sys

if os.environ.get("FELLOE_LIBRARY"):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
