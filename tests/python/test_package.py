"""The package without torch: loading, errors, numpy. Judge: worked-out values, and central differences in float32 of smooth functions."""

import os
import subprocess
import sys

import pytest

import felloe

np = pytest.importorskip("numpy", reason="numpy is not installed")
raster = pytest.importorskip("felloe.raster")

POSITIONS = [[[-1, -1, -0.5, 1], [6, -2, 0, 2], [-4, 12, 2, 4]]]


def triangle(positions=POSITIONS):
    return np.array(positions, np.float32), np.array([[0, 1, 2]], np.int32)


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_versions_of_package_and_library_agree():
    assert felloe.version() == felloe.__version__


def test_importing_the_package_imports_neither_numpy_nor_torch():
    path = os.pathsep.join(p for p in sys.path if p)
    done = run("import sys, felloe; print(sorted({'numpy', 'torch'} & set(sys.modules)))", PYTHONPATH=path)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_missing_library_is_an_import_error_that_names_it():
    done = run("import felloe", FELLOE_LIBRARY="/no/such.so", PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    assert "ImportError" in done.stderr and "/no/such.so" in done.stderr


def test_a_perspective_triangle_has_the_worked_out_barycentrics():
    rast, db = raster.rasterize(*triangle(), (1, 1))
    np.testing.assert_allclose(rast[0, 0, 0], [8 / 11, 2 / 11, -0.125, 1], atol=2e-6)
    np.testing.assert_allclose(db[0, 0, 0], [-0.462810, -0.330579, 0.429752, 0.099174], atol=2e-6)


def test_non_contiguous_float64_and_int64_inputs_are_converted():
    positions, triangles = triangle()
    wide = np.zeros((1, 3, 8))
    wide[..., ::2] = positions
    rast, _ = raster.rasterize(wide[..., ::2], triangles.astype(np.int64), (4, 5))
    np.testing.assert_array_equal(rast, raster.rasterize(positions, triangles, (4, 5))[0])


def test_unaligned_and_read_only_inputs_are_taken():
    positions, triangles = triangle()
    raw = np.zeros(positions.nbytes + 4, np.uint8)
    moved = raw[4:].view(np.float32).reshape(positions.shape)
    moved[...] = positions
    moved.flags.writeable = False
    assert moved.__array_interface__["data"][0] % 16 == 4
    np.testing.assert_array_equal(raster.rasterize(moved, triangles, (4, 5))[0], raster.rasterize(positions, triangles, (4, 5))[0])


def test_ranges_keep_ids_global():
    positions = np.array([[-1, -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]], np.float32)
    triangles = np.array([[0, 1, 2], [0, 1, 2]], np.int32)
    rast, _ = raster.rasterize(positions, triangles, (2, 2), np.array([[0, 1], [1, 1], [0, 0], [0, 2]], np.int32))
    assert rast[:, 0, 0, 3].tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda p, t: raster.rasterize(p[0], t, (4, 4)), ValueError, "positions: expected [n, v, 4]"),
        (lambda p, t: raster.rasterize(p, t.astype("f"), (4, 4)), TypeError, "triangles: expected integers, got float32"),
        (lambda p, t: raster.rasterize(p, t, (0, 4)), ValueError, "resolution"),
        (lambda p, t: raster.rasterize(p[..., :3], t, (4, 4)), ValueError, "positions: expected float32 [n, v, 4], got float32 [1, 3, 3]"),
        (lambda p, t: raster.rasterize(p.tolist(), t, (4, 4)), TypeError, "positions: expected a torch tensor or a numpy array"),
    ],
)
def test_errors_name_argument_expected_and_got(call, kind, words):
    with pytest.raises(kind) as caught:
        call(*triangle())
    assert words in str(caught.value)
    assert isinstance(caught.value, felloe.FelloeError)


def test_gradients_agree_with_central_differences():
    rng = np.random.default_rng(5)
    positions, triangles = triangle([[[-1, -1, 0, 1], [3, -1, 0.1, 1.5], [-1, 3, 0.2, 1.2]]])
    weights = rng.normal(size=(1, 6, 7, 4)).astype(np.float32)
    weights[..., 2:] = 0
    weights_db = rng.normal(size=(1, 6, 7, 4)).astype(np.float32)

    def loss(at):
        rast, db = raster.rasterize(at.astype(np.float32), triangles, (6, 7))
        return float((rast.astype(float) * weights).sum() + (db.astype(float) * weights_db).sum())

    rast, _ = raster.rasterize(positions, triangles, (6, 7))
    grad = raster.rasterize_backward(positions, triangles, rast, weights, weights_db)
    for vertex in range(3):
        for component in (0, 1, 3):
            step = np.zeros_like(positions, dtype=float)
            step[0, vertex, component] = 2e-3
            expected = (loss(positions + step) - loss(positions - step)) / 4e-3
            assert grad[0, vertex, component] == pytest.approx(expected, rel=2e-2, abs=2e-2)


def test_textures_and_antialiasing_work_on_arrays():
    positions, triangles = triangle([[[-3, -3, 0, 1], [-0.0625, -3, 0, 1], [-0.0625, 3, 0, 1]]])
    rast, db = raster.rasterize(positions, triangles, (8, 8))
    uv, uv_da = raster.interpolate(np.array([[0, 0], [1, 0], [0, 1]], np.float32), rast, triangles, db)
    image = np.ones((1, 8, 8, 1), np.float32)
    color = raster.texture(image, uv, uv_da=uv_da, mips=raster.mips(image)) * (rast[..., 3:] > 0)
    out = raster.antialias(color.astype(np.float32), rast, positions, triangles)
    np.testing.assert_allclose(out[0, 1, 2:6, 0], [1, 0.75, 0, 0], atol=2e-6)


def test_layers_come_nearest_first():
    positions = np.array([[[-1, -1, z, 1], [3, -1, z, 1], [-1, 3, z, 1]] for z in (0.5, -0.5)], np.float32).reshape(1, 6, 4)
    triangles = np.arange(6, dtype=np.int32).reshape(2, 3)
    ids = [rast[0, 1, 1, 3] for rast, _ in raster.peel(positions, triangles, (4, 4), 3)]
    assert ids == [2, 1, 0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_calls_work_in_a_forked_child_and_in_its_parent():
    rng = np.random.default_rng(1)
    positions = rng.normal(size=(1, 3000, 4)).astype(np.float32)
    triangles = np.arange(3000, dtype=np.int32).reshape(-1, 3)
    before, _ = raster.rasterize(positions, triangles, (256, 256))
    child = os.fork()
    if child == 0:
        same = np.array_equal(before, raster.rasterize(positions, triangles, (256, 256))[0])
        os._exit(0 if same else 1)
    np.testing.assert_array_equal(before, raster.rasterize(positions, triangles, (256, 256))[0])
    assert os.waitpid(child, 0)[1] == 0
