"""import felloe.dropin

From then on modules of extensions that felloe replaces can be imported where the real ones are not installed. A real one always wins: the finder
is the last that Python asks."""

import importlib.abc
import importlib.util
import os
import sys

# Top-level module -> where its stand-in is, relative to this package.
MODULES = {
    "nvdiffrast": "compat/nvdiffrast",
    "torchmcubes": "compat/torchmcubes",
    "torchmcubes_module": "compat/torchmcubes_module",
    "mcubes": "compat/mcubes",
    "custom_rasterizer": "compat/custom_rasterizer",
    "custom_rasterizer_kernel": "compat/custom_rasterizer_kernel",
    "texture_baker": "compat/texture_baker",
    "mesh_processor": "compat/mesh_processor",
    "mesh_inpaint_processor": "compat/mesh_inpaint_processor",
}


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        place = MODULES.get(fullname)
        if place is None:
            return None
        base = os.path.join(os.path.dirname(os.path.abspath(__file__)), *place.split("/"))
        if os.path.isdir(base):
            return importlib.util.spec_from_file_location(
                fullname, os.path.join(base, "__init__.py"), submodule_search_locations=[base]
            )
        return importlib.util.spec_from_file_location(fullname, base + ".py")


def install():
    """What importing this module does; a second call changes nothing."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())


def provided(name):
    """Whether a module that has been imported is felloe's stand-in."""
    module = sys.modules.get(name)
    home = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compat") + os.sep
    return module is not None and os.path.abspath(getattr(module, "__file__", None) or "").startswith(home)


install()
