"""Meshes, materials, pictures and gaussians in and out of files: GLB, OBJ with MTL, PLY, STL, .splat, PNG.

    asset = read("scan.obj")
    asset.meshes[0].vertices                                             # numpy float32 [v, 3]
    write("scan.glb", asset, orientation="z-up-to-y-up")
    write_mesh("result.glb", vertices, faces, uvs=uvs, texture=image)    # arrays of numpy or torch

    with Session() as session:                                           # files of one user's session: no collisions, no escape
        path = session.path(user_given_name, "glb")

Writes are atomic: the target is the old file or the whole new one. Needs numpy.
"""

import ctypes
from dataclasses import dataclass, field

import numpy as np

from . import _native
from ._native import InvalidArgument, check

__all__ = [
    "Asset", "Gaussians", "Material", "Mesh", "Picture", "Session", "png_decode", "png_encode", "read", "write", "write_mesh",
]

FORMATS = {"glb": 1, "obj": 2, "ply": 3, "stl": 4, "splat": 5}
ENCODINGS = {"little": 0, "big": 1, "ascii": 2}
ORIENTATIONS = {"keep": 0, "z-up-to-y-up": 1, "y-up-to-z-up": 2, "x-front-to-gltf": 3, "turn-round": 4}
ALPHA_MODES = ("opaque", "mask", "blend")

_C, _I32, _I64, _F, _P = ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p


class _Picture(ctypes.Structure):
    _fields_ = [("name", _C), ("mime", _C), ("bytes", _P), ("size", _I64)]


class _Material(ctypes.Structure):
    _fields_ = [("name", _C), ("base_color", _F * 4), ("metallic", _F), ("roughness", _F), ("emissive", _F * 3)]
    _fields_ += [(n + "_texture", _I32) for n in ("base_color", "metallic_roughness", "normal", "occlusion", "emissive")]
    _fields_ += [("alpha_mode", _I32), ("alpha_cutoff", _F), ("double_sided", _I32)]


class _Mesh(ctypes.Structure):
    _fields_ = [("name", _C), ("vertex_count", _I64), ("face_count", _I64)]
    _fields_ += [(n, _P) for n in ("positions", "normals", "uvs", "colors", "faces")] + [("material", _I32)]


class _Gaussians(ctypes.Structure):
    _fields_ = [("count", _I64), ("sh_degree", _I32)]
    _fields_ += [(n, _P) for n in ("positions", "log_scales", "rotations", "logits", "sh")]


class _Asset(ctypes.Structure):
    _fields_ = [
        ("format", _I32), ("meshes", ctypes.POINTER(_Mesh)), ("mesh_count", _I64), ("materials", ctypes.POINTER(_Material)),
        ("material_count", _I64), ("pictures", ctypes.POINTER(_Picture)), ("picture_count", _I64),
        ("gaussians", ctypes.POINTER(_Gaussians)), ("skipped_primitives", _I64),
    ]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("format", _I32), ("encoding", _I32), ("orientation", _I32), ("memory_limit", _I64)]


def _call(name, *types):
    function = getattr(_native.lib, name)
    function.argtypes, function.restype = types, ctypes.c_int
    return function


_read = _call("fel_asset_read", _C, _P, _P)
_read_memory = _call("fel_asset_read_memory", _C, _P, ctypes.c_size_t, _P, _P)
_write = _call("fel_asset_write", _C, _P, _P)
_decode = _call("fel_png_decode", _C, _P, ctypes.c_size_t, _P, _P, _P, _P)
_encode = _call("fel_png_encode", _P, _I32, _I32, _I32, _I32, _I32, _P, _P)
_session_open = _call("fel_session_open", _C, _P)
_session_path = _call("fel_session_path", _P, _C, _C, _P, ctypes.c_size_t)
for _name in ("fel_asset_free", "fel_png_free", "fel_session_close"):
    getattr(_native.lib, _name).argtypes, getattr(_native.lib, _name).restype = [_P], None


@dataclass
class Picture:
    """A picture as its file holds it; bytes is None when a file names one that is not there."""

    bytes: bytes = None
    mime: str = "image/png"
    name: str = None


@dataclass
class Material:
    """Metallic-roughness of glTF. Textures are indices into Asset.pictures, None for none."""

    base_color: tuple = (1.0, 1.0, 1.0, 1.0)
    metallic: float = 0.0
    roughness: float = 1.0
    emissive: tuple = (0.0, 0.0, 0.0)
    base_color_texture: int = None
    metallic_roughness_texture: int = None
    normal_texture: int = None
    occlusion_texture: int = None
    emissive_texture: int = None
    alpha_mode: str = "opaque"
    alpha_cutoff: float = 0.5
    double_sided: bool = False
    name: str = None


@dataclass
class Mesh:
    """Triangles of one material; uvs have their origin at the top left, colors are RGBA in 0..1."""

    vertices: np.ndarray
    faces: np.ndarray
    normals: np.ndarray = None
    uvs: np.ndarray = None
    colors: np.ndarray = None
    material: int = None
    name: str = None


@dataclass
class Gaussians:
    """Scales are logarithms, opacities logits; rotations w x y z; sh [n, (degree + 1)^2, 3]."""

    positions: np.ndarray
    log_scales: np.ndarray
    rotations: np.ndarray
    logits: np.ndarray
    sh: np.ndarray


@dataclass
class Asset:
    meshes: list = field(default_factory=list)
    materials: list = field(default_factory=list)
    pictures: list = field(default_factory=list)
    gaussians: Gaussians = None
    format: str = None
    skipped_primitives: int = 0


def _path(path):
    import os

    return os.fsencode(path)


def _one_of(table, name, value):
    if value not in table:
        raise InvalidArgument("%s: expected one of %s, got %r" % (name, ", ".join(sorted(table)), value))
    return table[value]


def _text(value):
    return None if value is None else value.decode("utf-8", "replace")


def _array(pointer, shape, dtype):
    """A copy of the library's memory; None for NULL."""
    if not pointer:
        return None
    count = int(np.prod(shape))
    return np.frombuffer((ctypes.c_char * (count * dtype().itemsize)).from_address(pointer), dtype, count).reshape(shape).copy()


# ---- reading


def _index(value):
    return None if value < 0 else value


def _material_from(m):
    textures = {n: _index(getattr(m, n)) for n, _ in _Material._fields_ if n.endswith("_texture")}
    return Material(
        tuple(m.base_color), m.metallic, m.roughness, tuple(m.emissive), alpha_mode=ALPHA_MODES[m.alpha_mode],
        alpha_cutoff=m.alpha_cutoff, double_sided=bool(m.double_sided), name=_text(m.name), **textures,
    )


def _mesh_from(m):
    v, f = m.vertex_count, m.face_count
    return Mesh(
        _array(m.positions, (v, 3), np.float32), _array(m.faces, (f, 3), np.int32), _array(m.normals, (v, 3), np.float32),
        _array(m.uvs, (v, 2), np.float32), _array(m.colors, (v, 4), np.float32), _index(m.material), _text(m.name),
    )


def _asset_from(a):
    asset = Asset(format={v: k for k, v in FORMATS.items()}.get(a.format), skipped_primitives=a.skipped_primitives)
    asset.meshes = [_mesh_from(a.meshes[i]) for i in range(a.mesh_count)]
    asset.materials = [_material_from(a.materials[i]) for i in range(a.material_count)]
    for i in range(a.picture_count):
        p = a.pictures[i]
        asset.pictures.append(Picture(ctypes.string_at(p.bytes, p.size) if p.bytes else None, _text(p.mime), _text(p.name)))
    if a.gaussians:
        g = a.gaussians[0]
        n, k = g.count, (g.sh_degree + 1) ** 2
        shapes = ((n, 3), (n, 3), (n, 4), (n,), (n, k, 3))
        pointers = (g.positions, g.log_scales, g.rotations, g.logits, g.sh)
        asset.gaussians = Gaussians(*[_array(p, s, np.float32) for p, s in zip(pointers, shapes)])
    return asset


def read(source, *, orientation="keep", format=None, memory_limit=0):
    """An Asset from a path, or from bytes. Malformed input is a FelloeError with the byte at which it is broken."""
    options = _Options(
        ctypes.sizeof(_Options), 0 if format is None else _one_of(FORMATS, "format", format), 0,
        _one_of(ORIENTATIONS, "orientation", orientation), memory_limit,
    )
    handle = _P()
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        check(_read_memory(None, data, len(data), ctypes.byref(options), ctypes.byref(handle)))
    else:
        check(_read(_path(source), ctypes.byref(options), ctypes.byref(handle)))
    try:
        return _asset_from(_Asset.from_address(handle.value))
    finally:
        _native.lib.fel_asset_free(handle)


# ---- writing


class _Writer:
    """The C structs of an Asset, and what they point to."""

    def __init__(self):
        self.kept = []

    def array(self, value, name, shape, dtype):
        if value is None:
            return None
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        array = np.ascontiguousarray(value, dtype)
        if len(array.shape) != len(shape) or any(s is not None and s != n for n, s in zip(array.shape, shape)):
            expected = ", ".join("any" if s is None else str(s) for s in shape)
            raise InvalidArgument("%s: expected [%s], got %s" % (name, expected, list(array.shape)))
        self.kept.append(array)
        return array.__array_interface__["data"][0]

    def text(self, value):
        return None if value is None else str(value).encode()

    def structs(self, kind, items):
        array = (kind * max(1, len(items)))(*items)
        self.kept.append(array)
        return array

    def mesh(self, m):
        v, f = len(m.vertices), len(m.faces)
        colors = m.colors
        if colors is not None:
            colors = colors.detach().cpu().numpy() if hasattr(colors, "detach") else np.asarray(colors)
            scale = 255.0 if colors.dtype == np.uint8 else 1.0
            colors = np.asarray(colors, np.float32) / np.float32(scale)
            if colors.ndim == 2 and colors.shape[1] == 3:
                colors = np.concatenate([colors, np.ones((len(colors), 1), np.float32)], 1)
        return _Mesh(
            self.text(m.name), v, f, self.array(m.vertices, "vertices", (v, 3), np.float32),
            self.array(m.normals, "normals", (v, 3), np.float32), self.array(m.uvs, "uvs", (v, 2), np.float32),
            self.array(colors, "colors", (v, 4), np.float32), self.array(m.faces, "faces", (f, 3), np.int32),
            -1 if m.material is None else m.material,
        )

    def material(self, m):
        out = _Material(self.text(m.name), (_F * 4)(*m.base_color), m.metallic, m.roughness, (_F * 3)(*m.emissive))
        for name, _ in _Material._fields_:
            if name.endswith("_texture"):
                value = getattr(m, name)
                setattr(out, name, -1 if value is None else value)
        if m.alpha_mode not in ALPHA_MODES:
            raise InvalidArgument("alpha_mode: expected opaque, mask or blend, got %r" % (m.alpha_mode,))
        out.alpha_mode, out.alpha_cutoff, out.double_sided = ALPHA_MODES.index(m.alpha_mode), m.alpha_cutoff, int(m.double_sided)
        return out

    def picture(self, p):
        data = None if p.bytes is None else np.frombuffer(p.bytes, np.uint8)
        pointer = None if data is None else data.__array_interface__["data"][0]
        self.kept.append(data)
        return _Picture(self.text(p.name), self.text(p.mime), pointer, 0 if data is None else len(data))

    def gaussians(self, g):
        n, k = len(g.positions), np.shape(g.sh)[1]
        degree = {1: 0, 4: 1, 9: 2, 16: 3}.get(k)
        if degree is None:
            raise InvalidArgument("sh: expected 1, 4, 9 or 16 coefficients, got %d" % k)
        shapes = {"positions": (n, 3), "log_scales": (n, 3), "rotations": (n, 4), "logits": (n,), "sh": (n, k, 3)}
        return _Gaussians(n, degree, *[self.array(getattr(g, name), name, s, np.float32) for name, s in shapes.items()])

    def asset(self, a):
        meshes, materials, pictures = (
            self.structs(kind, [make(x) for x in items])
            for kind, make, items in (
                (_Mesh, self.mesh, a.meshes), (_Material, self.material, a.materials), (_Picture, self.picture, a.pictures)
            )
        )
        out = _Asset(0, meshes, len(a.meshes), materials, len(a.materials), pictures, len(a.pictures))
        if a.gaussians is not None:
            out.gaussians = self.structs(_Gaussians, [self.gaussians(a.gaussians)])
        return out


def write(path, asset, *, orientation="keep", encoding="little", format=None):
    """Writes an Asset in the format of path's suffix. encoding of a PLY: "little", "big" or "ascii"."""
    options = _Options(
        ctypes.sizeof(_Options), 0 if format is None else _one_of(FORMATS, "format", format),
        _one_of(ENCODINGS, "encoding", encoding), _one_of(ORIENTATIONS, "orientation", orientation), 0,
    )
    writer = _Writer()
    structs = writer.asset(asset)
    check(_write(_path(path), ctypes.byref(structs), ctypes.byref(options)))


def write_mesh(path, vertices, faces, *, normals=None, uvs=None, colors=None, texture=None, orientation="keep", encoding="little"):
    """One mesh, from arrays of numpy or torch. texture: uint8 [h, w, 3 or 4], or floats in 0..1; colors: floats in 0..1 or uint8."""
    asset = Asset([Mesh(vertices, faces, normals, uvs, colors)])
    if texture is not None:
        asset.pictures = [Picture(png_encode(texture))]
        asset.materials = [Material(base_color_texture=0)]
        asset.meshes[0].material = 0
    write(path, asset, orientation=orientation, encoding=encoding)


# ---- PNG


def png_decode(data, name="picture"):
    """uint8 [h, w, channels], channels 1 to 4 as the file has them."""
    data = bytes(data)
    pixels, width, height, channels = ctypes.POINTER(ctypes.c_uint8)(), _I32(), _I32(), _I32()
    refs = [ctypes.byref(x) for x in (pixels, width, height, channels)]
    check(_decode(name.encode(), data, len(data), *refs))
    try:
        return np.ctypeslib.as_array(pixels, (height.value, width.value, channels.value)).copy()
    finally:
        _native.lib.fel_png_free(pixels)


def png_encode(pixels, *, delay_ms=60):
    """PNG bytes of uint8 [h, w, 1 to 4] (floats in 0..1 are rounded); [frames, h, w, channels] makes an animation."""
    pixels = pixels.detach().cpu().numpy() if hasattr(pixels, "detach") else np.asarray(pixels)
    if pixels.dtype.kind == "f":
        pixels = np.clip(pixels * 255 + 0.5, 0, 255)
    pixels = np.ascontiguousarray(pixels, np.uint8)
    if pixels.ndim not in (3, 4):
        raise InvalidArgument("pixels: expected [h, w, c] or [frames, h, w, c], got %s" % list(pixels.shape))
    frames, (height, width, channels) = (1 if pixels.ndim == 3 else pixels.shape[0]), pixels.shape[-3:]
    out, size = _P(), ctypes.c_size_t()
    address = pixels.__array_interface__["data"][0]
    check(_encode(address, width, height, channels, frames, delay_ms, ctypes.byref(out), ctypes.byref(size)))
    try:
        return ctypes.string_at(out, size.value)
    finally:
        _native.lib.fel_png_free(out)


class Session:
    """A private folder for the files of one session; closing it, or leaving its 'with', removes them."""

    def __init__(self, root=None):
        self._handle = _P()
        check(_session_open(None if root is None else _path(root), ctypes.byref(self._handle)))

    def path(self, stem, suffix):
        """A path that no other call gets; of stem only letters, digits, '-' and '_' are kept."""
        import os

        if not self._handle:
            raise InvalidArgument("session: closed")
        buffer = ctypes.create_string_buffer(4096)
        check(_session_path(self._handle, str(stem).encode(), str(suffix).encode(), buffer, len(buffer)))
        return os.fsdecode(buffer.value)

    def close(self):
        handle, self._handle = self._handle, _P()
        _native.lib.fel_session_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
