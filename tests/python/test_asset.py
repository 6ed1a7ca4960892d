"""felloe.asset. Judges: trimesh, pygltflib, plyfile and Pillow, which read what we write and write what we read; each is skipped, aloud, where
it is missing."""

import io
import struct
import zlib

import pytest

np = pytest.importorskip("numpy")

from felloe import FelloeError, asset


def sphere(n=12):
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 2 * n, endpoint=False), np.linspace(0, np.pi, n + 1), indexing="ij")
    p = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], -1).reshape(-1, 3).astype(np.float32)
    i, j = np.meshgrid(np.arange(2 * n), np.arange(n), indexing="ij")
    at = lambda a, b: (a % (2 * n)) * (n + 1) + b
    quads = np.stack([at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)], -1).reshape(-1, 4)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int32)
    uvs = np.stack([u / (2 * np.pi), v / np.pi], -1).reshape(-1, 2).astype(np.float32)
    return p, faces, uvs


IMAGE = (np.indices((8, 12)).sum(0)[..., None] * np.array([3, 7, 11]) % 256).astype(np.uint8)


def test_trimesh_reads_our_glb_as_we_wrote_it(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("PIL")
    p, f, uv = sphere()
    path = str(tmp_path / "a.glb")
    asset.write_mesh(path, p, f, normals=p, uvs=uv, texture=IMAGE)
    (mesh,) = trimesh.load(path, process=False).geometry.values()
    assert np.array_equal(mesh.vertices.astype(np.float32), p) and np.array_equal(mesh.faces, f)
    assert np.allclose(mesh.visual.uv, np.stack([uv[:, 0], 1 - uv[:, 1]], 1), atol=1e-6)
    assert np.array_equal(np.asarray(mesh.visual.material.baseColorTexture.convert("RGB")), IMAGE)
    assert np.allclose(mesh.vertex_normals, p, atol=1e-6)


def test_our_glb_keeps_the_rules_of_the_format(tmp_path):
    """What the Khronos validator checks of accessors and buffer views, on the parts that we write."""
    pygltflib = pytest.importorskip("pygltflib")
    p, f, uv = sphere()
    path = str(tmp_path / "a.glb")
    one = asset.Mesh(p, f, p * 3, uv, np.random.default_rng(0).random((len(p), 4)), material=0, name="one")
    two = asset.Mesh(p[:4], f[:1] % 4, colors=np.array([[255, 0, 1, 255]] * 4, np.uint8))
    asset.write(path, asset.Asset([one, two], [asset.Material(base_color_texture=0)], [asset.Picture(asset.png_encode(IMAGE))]))
    data = open(path, "rb").read()
    assert struct.unpack("<4sII", data[:12]) == (b"glTF", 2, len(data))
    gltf = pygltflib.GLTF2().load(path)
    assert gltf.asset.version == "2.0" and len(gltf.meshes) == 2 and len(gltf.images) == 1
    blob = gltf.binary_blob()
    assert len(blob) == gltf.buffers[0].byteLength
    sizes = {5121: 1, 5125: 4, 5126: 4}
    widths = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
    for a in gltf.accessors:
        view = gltf.bufferViews[a.bufferView]
        assert a.count >= 1 and view.byteOffset % 4 == 0
        assert a.count * sizes[a.componentType] * widths[a.type] == view.byteLength <= len(blob) - view.byteOffset
    for mesh in gltf.meshes:
        for primitive in mesh.primitives:
            a = gltf.accessors[primitive.attributes.POSITION]
            view = gltf.bufferViews[a.bufferView]
            v = np.frombuffer(blob, "<f4", 3 * a.count, view.byteOffset).reshape(-1, 3)
            assert np.array_equal(v.min(0), np.float32(a.min)) and np.array_equal(v.max(0), np.float32(a.max))
            i = gltf.accessors[primitive.indices]
            indices = np.frombuffer(blob, "<u4", i.count, gltf.bufferViews[i.bufferView].byteOffset)
            assert indices.max() < a.count and i.count % 3 == 0
            if primitive.attributes.NORMAL is not None:
                n = gltf.bufferViews[gltf.accessors[primitive.attributes.NORMAL].bufferView]
                lengths = np.linalg.norm(np.frombuffer(blob, "<f4", 3 * a.count, n.byteOffset).reshape(-1, 3), axis=1)
                assert np.allclose(lengths, 1, atol=1e-3)
    again = asset.read(path)
    assert np.array_equal(again.meshes[0].vertices, p) and np.array_equal(again.meshes[1].colors[0], np.float32([1, 0, 1 / 255, 1]))


@pytest.mark.parametrize("suffix", ["glb", "obj", "ply", "stl"])
def test_files_of_trimesh_are_read_right(tmp_path, suffix):
    trimesh = pytest.importorskip("trimesh")
    source = trimesh.creation.box((1, 2, 3)).subdivide()
    path = str(tmp_path / ("a." + suffix))
    source.export(path)
    read = asset.read(path)
    assert len(read.meshes) == 1
    mesh = trimesh.Trimesh(read.meshes[0].vertices, read.meshes[0].faces)
    assert mesh.is_watertight and mesh.is_winding_consistent
    assert abs(mesh.volume - 6) < 1e-4 and np.allclose(mesh.bounds, source.bounds, atol=1e-6)


@pytest.mark.parametrize("text, order", [(False, "<"), (False, ">"), (True, "=")])
def test_files_of_plyfile_are_read_right_and_ours_by_it(tmp_path, text, order):
    plyfile = pytest.importorskip("plyfile")
    rng = np.random.default_rng(1)
    vertex = np.empty(5, [("x", "f8"), ("y", "f4"), ("z", "f4"), ("red", "u1"), ("green", "u1"), ("blue", "u1"), ("extra", "i2")])
    for name in vertex.dtype.names:
        vertex[name] = rng.integers(0, 200, 5)
    face = np.empty(2, [("flag", "u1"), ("vertex_indices", "O")])
    face["flag"], face["vertex_indices"] = 7, [np.array([0, 1, 2], "i4"), np.array([0, 2, 3, 4], "i4")]
    elements = [plyfile.PlyElement.describe(vertex, "vertex"), plyfile.PlyElement.describe(face, "face")]
    path = str(tmp_path / "a.ply")
    plyfile.PlyData(elements, text=text, byte_order=order).write(path)
    mesh = asset.read(path).meshes[0]
    assert np.array_equal(mesh.vertices, np.stack([vertex[c] for c in "xyz"], 1).astype(np.float32))
    assert np.allclose(mesh.colors[:, 1], vertex["green"] / 255) and mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 3, 4]]
    for encoding in ("little", "big", "ascii"):
        asset.write(path, asset.Asset([mesh]), encoding=encoding)
        data = plyfile.PlyData.read(path)
        assert np.array_equal(data["vertex"]["x"], mesh.vertices[:, 0]) and data["face"].count == 3
        assert np.array_equal(data["vertex"]["green"], vertex["green"])


def test_gaussians_of_plyfile_are_read_right(tmp_path):
    plyfile = pytest.importorskip("plyfile")
    names = ["x", "y", "z", "nx", "ny", "nz"] + ["f_dc_%d" % i for i in range(3)] + ["f_rest_%d" % i for i in range(24)]
    names += ["opacity"] + ["scale_%d" % i for i in range(3)] + ["rot_%d" % i for i in range(4)]
    rows = np.random.default_rng(2).random((6, len(names))).astype("f4")
    table = np.empty(6, [(n, "f4") for n in names])
    for i, name in enumerate(names):
        table[name] = rows[:, i]
    path = str(tmp_path / "g.ply")
    plyfile.PlyData([plyfile.PlyElement.describe(table, "vertex")]).write(path)
    g = asset.read(path).gaussians
    assert g.sh.shape == (6, 9, 3) and np.array_equal(g.sh[:, 0], rows[:, 6:9])
    assert np.array_equal(g.sh[:, 1:, 2], rows[:, 9 + 16 : 9 + 24])  # the file has a channel after the other
    assert np.array_equal(g.rotations, rows[:, -4:]) and np.array_equal(g.logits, rows[:, 33])
    asset.write(path, asset.Asset(gaussians=g))
    assert np.array_equal(plyfile.PlyData.read(path)["vertex"]["f_rest_17"], table["f_rest_17"])


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pillow_reads_our_png_and_we_its(channels):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(3)
    for shape in ((1, 1), (3, 5), (67, 129)):
        smooth = (np.add.outer(np.arange(shape[0]), np.arange(shape[1]))[..., None] * np.arange(1, channels + 1)) % 256
        for pixels in (smooth.astype(np.uint8), rng.integers(0, 256, shape + (channels,), np.uint8), np.zeros(shape + (channels,), np.uint8)):
            data = asset.png_encode(pixels)
            read = np.asarray(Image.open(io.BytesIO(data)))
            assert np.array_equal(read.reshape(pixels.shape), pixels) and np.array_equal(asset.png_decode(data), pixels)
            out = io.BytesIO()
            Image.fromarray(pixels.squeeze(-1) if channels == 1 else pixels).save(out, "PNG")
            assert np.array_equal(asset.png_decode(out.getvalue()), pixels)


def make_png(kind, depth, interlaced, samples, palette=None, transparent=None):
    """A PNG by the specification alone, unfiltered; samples [h, w, n]."""
    height, width, n = samples.shape
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    raw = b""
    for x, y, dx, dy in passes:
        part = samples[y::dy, x::dx]
        for row in part if part.shape[1] else []:
            bits = "".join(format(int(s), "0%db" % depth) for s in row.reshape(-1))
            bits += "0" * (-len(bits) % 8)
            raw += b"\0" + bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced))
    out += chunk(b"PLTE", palette) if palette else b""
    out += chunk(b"tRNS", transparent) if transparent else b""
    packed = zlib.compress(raw)
    return out + chunk(b"IDAT", packed[:7]) + chunk(b"IDAT", packed[7:]) + chunk(b"IEND", b"")


@pytest.mark.parametrize("interlaced", [0, 1])
@pytest.mark.parametrize("kind, depths, n", [(0, (1, 2, 4, 8, 16), 1), (2, (8, 16), 3), (4, (8, 16), 2), (6, (8, 16), 4)])
def test_every_colour_type_and_depth_is_decoded(kind, depths, n, interlaced):
    rng = np.random.default_rng(4)
    for depth in depths:
        for shape in ((1, 1), (5, 3), (9, 17)):
            samples = rng.integers(0, 2**depth, shape + (n,))
            decoded = asset.png_decode(make_png(kind, depth, interlaced, samples))
            assert np.array_equal(decoded, np.floor(samples * 255 / (2**depth - 1) + 0.5).astype(np.uint8))


def test_palettes_and_transparent_colours_become_channels():
    palette = bytes(range(12))
    samples = np.array([[[0], [1]], [[3], [2]]])
    assert asset.png_decode(make_png(3, 2, 0, samples, palette)).tolist() == [[[0, 1, 2], [3, 4, 5]], [[9, 10, 11], [6, 7, 8]]]
    assert asset.png_decode(make_png(3, 2, 1, samples, palette, b"\x07"))[0].tolist() == [[0, 1, 2, 7], [3, 4, 5, 255]]
    assert asset.png_decode(make_png(0, 2, 0, samples, None, b"\0\x03"))[..., 1].tolist() == [[255, 255], [0, 255]]
    with pytest.raises(FelloeError, match="outside the palette"):
        asset.png_decode(make_png(3, 2, 0, samples, palette[:9]))


def test_an_animation_has_its_frames(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    frames = np.random.default_rng(5).integers(0, 256, (4, 6, 7, 3), np.uint8)
    picture = Image.open(io.BytesIO(asset.png_encode(frames, delay_ms=40)))
    assert picture.n_frames == 4 and picture.info["duration"] == 40
    for i in range(4):
        picture.seek(i)
        assert np.array_equal(np.asarray(picture.convert("RGB")), frames[i])


def test_malformed_input_is_an_error_with_its_place():
    with pytest.raises(FelloeError, match=r"memory: byte 0: expected a GLB"):
        asset.read(b"<html>")
    with pytest.raises(FelloeError, match=r"byte 8: the header says 4096 bytes, the file has 20"):
        asset.read(struct.pack("<4sIIII", b"glTF", 2, 4096, 8, 0x4E4F534A))


def test_a_session_removes_its_files(tmp_path):
    with asset.Session(tmp_path) as session:
        path = session.path("../../name", "glb")
        p, f, _ = sphere(3)
        asset.write_mesh(path, p, f)
        assert path.startswith(str(tmp_path)) and path.endswith("/name-1.glb")
    assert list(tmp_path.iterdir()) == []
