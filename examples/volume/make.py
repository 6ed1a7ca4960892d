#!/usr/bin/env python3
"""Writes a volume as NumPy would, without NumPy: python3 make.py FIELD.npy [SAMPLES].

A signed distance, negative inside: a ring round a bumpy ball, on z, y, x in -1..1. `felloe extract` makes a mesh of it."""

import array
import math
import struct
import sys


def value(x, y, z):
    ring = math.hypot(math.hypot(x, y) - 0.6, z + 0.05) - 0.2
    ball = math.sqrt(x * x + y * y + (z - 0.1) ** 2) - 0.42 + 0.04 * math.sin(12 * x) * math.sin(12 * y) * math.sin(12 * z)
    return min(ring, ball)


def main():
    path, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 96
    axis = [2 * i / (n - 1) - 1 for i in range(n)]
    samples = array.array("f", (value(x, y, z) for z in axis for y in axis for x in axis))
    if sys.byteorder == "big":
        samples.byteswap()
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }" % (n, n, n)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + samples.tobytes())


if __name__ == "__main__":
    main()
