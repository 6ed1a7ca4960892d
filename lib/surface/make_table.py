#!/usr/bin/env python3
"""Derives the triangles of marching cubes for all 256 sign patterns of a cell; prints surface_table.h.

Nothing is copied from a published table. On each face of the cell the crossed edges are joined by segments that keep
the samples below the level on their right, seen from outside the cell. A face with two diagonal samples below is
ambiguous; there each below sample is cut off by itself. The rule looks at the four signs of the face alone, so the
two cells that share it agree and no crack opens. The segments close to loops, and each loop is cut into triangles by
diagonals of which none lies within a face of the cell: such a diagonal could be drawn by the neighbour as well, and
the edge would then have four triangles. Among the cuts that remain, the one whose smallest angle is largest is taken,
with every vertex in the middle of its edge.

Corner c is (c & 1, c >> 1 & 1, c >> 2). Edge e runs along axis e >> 2; of its other two coordinates, in ascending
order of axis, the first is e & 1, the second e >> 1 & 1. A triangle's normal points from below to not below.
"""
import itertools
import math

CORNERS = [(c & 1, c >> 1 & 1, c >> 2) for c in range(8)]


def edge_ends(edge):
    axis = edge >> 2
    others = [a for a in range(3) if a != axis]
    low = [0, 0, 0]
    low[others[0]], low[others[1]] = edge & 1, edge >> 1 & 1
    high = list(low)
    high[axis] = 1
    return tuple(low), tuple(high)


ENDS = [edge_ends(e) for e in range(12)]
EDGE_OF = {frozenset(ends): e for e, ends in enumerate(ENDS)}
MIDDLE = [tuple((a + b) / 2 for a, b in zip(*ends)) for ends in ENDS]


def faces():
    """The four corners of each face, counter-clockwise seen from outside."""
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (0, 1):
            ring = []
            for pu, pv in ((0, 0), (1, 0), (1, 1), (0, 1)):
                corner = [0, 0, 0]
                corner[axis], corner[u], corner[v] = side, pu, pv
                ring.append(tuple(corner))
            yield ring if side else ring[::-1]


FACES = list(faces())
FACE_EDGES = [{EDGE_OF[frozenset((ring[i], ring[(i + 1) % 4]))] for i in range(4)} for ring in FACES]


def segments(below):
    """Directed pairs of edges. Going round a face, each run of below corners is left by one edge and entered by
    another; the segment joins them so that the loop's triangles face away from below. An ambiguous face has two runs
    of one corner, so this also is the rule that separates them."""
    follow = {}
    for ring in FACES:
        for i in range(4):
            if ring[i] in below and ring[i - 1] not in below:
                entered = EDGE_OF[frozenset((ring[i - 1], ring[i]))]
                j = i
                while ring[(j + 1) % 4] in below:
                    j += 1
                left = EDGE_OF[frozenset((ring[j % 4], ring[(j + 1) % 4]))]
                follow.setdefault(entered, []).append(left)
    return follow


def loops(below):
    follow = segments(below)
    assert all(len(v) == 1 for v in follow.values())
    left = {k: v[0] for k, v in follow.items()}
    result = []
    while left:
        start = min(left)
        loop, at = [], start
        while at in left:
            loop.append(at)
            at = left.pop(at)
        assert at == start
        result.append(loop)
    return result


def in_one_face(a, b):
    return any(a in edges and b in edges for edges in FACE_EDGES)


def triangulations(loop):
    """All ways to cut a polygon without a diagonal inside a face of the cell."""
    if len(loop) == 3:
        yield [tuple(loop)]
        return
    first, last = loop[0], loop[-1]
    for k in range(1, len(loop) - 1):
        if k > 1 and in_one_face(first, loop[k]):
            continue
        if k < len(loop) - 2 and in_one_face(loop[k], last):
            continue
        left = triangulations(loop[: k + 1]) if k > 1 else [[]]
        right = list(triangulations(loop[k:])) if k < len(loop) - 2 else [[]]
        for a in left:
            for b in right:
                yield a + [(first, loop[k], last)] + b


def smallest_angle(triangle):
    worst = math.pi
    for i in range(3):
        a, b, c = (MIDDLE[triangle[(i + k) % 3]] for k in range(3))
        u, v = [y - x for x, y in zip(a, b)], [y - x for x, y in zip(a, c)]
        cosine = sum(x * y for x, y in zip(u, v)) / math.sqrt(sum(x * x for x in u) * sum(x * x for x in v))
        worst = min(worst, math.acos(max(-1.0, min(1.0, cosine))))
    return worst


def normal(triangle):
    a, b, c = (MIDDLE[e] for e in triangle)
    u, v = [y - x for x, y in zip(a, b)], [y - x for x, y in zip(a, c)]
    return [u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3] for k in range(3)]


def triangles(case):
    below = {CORNERS[c] for c in range(8) if case >> c & 1}
    result = []
    for loop in loops(below):
        best = max(triangulations(loop), key=lambda cut: round(min(map(smallest_angle, cut)), 9))
        result += best
    return result


def main():
    # the sense of the loops is fixed by the smallest case: corner 0 below, normal along (1, 1, 1)
    flip = sum(normal(triangles(1)[0])) < 0
    print("/* surface/surface_table.h: made by make_table.py, which says how. For each of the 256 patterns of samples")
    print(" * below the level: the number of triangles in the top four bits, then each corner's edge in four bits, the")
    print(" * first corner lowest. */")
    print("#ifndef SURFACE_TABLE_H\n#define SURFACE_TABLE_H\n")
    print("SURFACE_TABLE unsigned long long surface_table[256] = {")
    row = []
    for case in range(256):
        cut = triangles(case)
        assert len(cut) <= 5
        word = len(cut) << 60
        for i, edge in enumerate(itertools.chain.from_iterable(t[::-1] if flip else t for t in cut)):
            word |= edge << 4 * i
        row.append(f"0x{word:016X}ULL,")
        if len(row) == 4:
            print("    " + " ".join(row))
            row = []
    print("};\n\n#endif")


if __name__ == "__main__":
    main()
