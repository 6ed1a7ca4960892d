"""Stands in for nvdiffrast where that is not installed: the interface of its version 0.4.0, computed by felloe."""

__version__ = "0.4.0"
