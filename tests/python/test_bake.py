"""felloe.bake and its stand-ins. Judge: answers worked out by hand, on a square of two triangles."""

import pytest

np = pytest.importorskip("numpy")

import felloe.dropin  # noqa: F401
from felloe import InvalidArgument, bake

SQUARE = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32)
FACES = np.array([(0, 1, 2), (0, 2, 3)], np.int32)
CLIP = np.array([(-1, -1, 0, 1), (1, -1, 0, 1), (1, 1, 0, 1), (-1, 1, 0, 1)], np.float32)


def test_a_square_covers_every_texel():
    rast = bake.rasterize_uv(SQUARE, FACES, 16)
    assert (rast[..., 3] >= 0).all()
    for at, expected in (((8, 12), (0.25, 0.25, 0.5, 0)), ((15, 0), (15 / 16, 0, 1 / 16, 1)), ((0, 8), (0, 0.5, 0.5, 1)), ((0, 0), (0, 0, 1, 1))):
        assert rast[at].tolist() == list(expected)


@pytest.mark.parametrize("sample, shift, less", [("corner", 0, 0), ("center", 0.5, 0), ("ends", 0, 1)])
@pytest.mark.parametrize("size", [(16, 16), (20, 20), (7, 30), (1000, 3)])
def test_texture_coordinates_come_back_as_themselves(sample, shift, less, size):
    height, width = size
    out = bake.interpolate(SQUARE, FACES, bake.rasterize_uv(SQUARE, FACES, size, sample=sample))
    row, column = np.mgrid[:height, :width]
    expected = np.stack([(column + shift) / (width - less), 1 - (row + shift) / (height - less)], -1)
    assert np.abs(out - expected).max() < 1e-6


def test_a_mesh_of_squares_leaves_no_gap():
    n = 64
    grid = np.stack(np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1)), -1).reshape(-1, 2)
    inner = ((grid > 0) & (grid < 1)).all(1)
    grid[inner] += np.random.default_rng(0).normal(size=(inner.sum(), 2)) * 0.002
    i, j = np.mgrid[:n, :n].reshape(2, -1)
    a = i * (n + 1) + j
    faces = np.concatenate([np.stack([a, a + 1, a + n + 2], 1), np.stack([a, a + n + 2, a + n + 1], 1)]).astype(np.int32)
    rast = bake.rasterize_uv(grid.astype(np.float32), faces, 500)
    assert (rast[..., 3] >= 0).all() and (rast[..., :3] >= 0).all() and np.allclose(rast[..., :3].sum(-1), 1, atol=1e-6)


def test_nothing_covers_nothing():
    far = SQUARE + 2
    for uvs, faces in ((far, FACES), (SQUARE, FACES[:0]), (SQUARE * [1, 0], FACES), (SQUARE * np.float32("nan"), FACES), (SQUARE, FACES + 9)):
        rast = bake.rasterize_uv(np.asarray(uvs, np.float32), faces, 8)
        assert (rast == np.array([0, 0, 0, -1])).all()
        assert (bake.interpolate(SQUARE, FACES, rast) == 0).all()


def test_views_know_depth_perspective_and_what_is_behind():
    found, weights = bake.rasterize_view(CLIP, FACES, (4, 4))
    row, column = np.mgrid[:4, :4]
    assert np.array_equal(found, np.where(column >= row, 1, 2)) and weights[0, 3].tolist() == [0, 1, 0]
    one = np.array([(-1, -1, 0, 1), (2, -2, 0, 2), (-1, 1, 0, 1)], np.float32)
    assert np.allclose(bake.rasterize_view(one, FACES[:1], (5, 5))[1][0, 2], (2 / 3, 1 / 3, 0))
    two = np.concatenate([CLIP + [0, 0, 0.5, 0], CLIP - [0, 0, 0.5, 0]]).astype(np.float32)
    faces = np.concatenate([FACES, FACES + 4])
    assert set(np.unique(bake.rasterize_view(two, faces, (6, 6))[0])) == {3, 4}
    assert set(np.unique(bake.rasterize_view(two, faces, (6, 6), behind=np.full((6, 6), -0.5, np.float32))[0])) == {1, 2}
    assert not bake.rasterize_view(two, faces, (6, 6), behind=np.full((6, 6), 0.5, np.float32))[0].any()
    hostile = np.concatenate([CLIP, [(np.nan, 0, 0, 1), (1e30, 1e30, 0, 1), (0, 0, 0, 0), (0, 0, 0, -1)]]).astype(np.float32)
    more = np.concatenate([FACES, [(4, 0, 1), (5, 6, 7), (0, 1, 7)]]).astype(np.int32)
    assert (bake.rasterize_view(hostile, more, (64, 64))[0] > 0).all()


def test_gutters_grow_as_specified():
    image, mask = np.zeros((7, 7, 1), np.float32), np.zeros((7, 7), np.uint8)
    image[3, 4], mask[3, 2], mask[3, 4] = 1, 1, 1
    out, known = bake.gutter(image, mask, method="grow", reach=1)
    for at, value in (((3, 3), 0.5), ((2, 1), 0), ((2, 2), 1 / 6), ((2, 4), 5 / 6)):
        assert abs(out[at][0] - value) < 1e-6
    assert known.sum() == 255 * 15 and not image[2, 2]
    out, known = bake.gutter(image, mask, reach=2)
    assert out[2, 5] == 1 and out[2, 1] == 0 and known[0, 0] == 0 and known[3, 6] == 255
    image[mask == 0] = np.nan
    out, known = bake.gutter(image, mask, method="smooth")
    assert np.isfinite(out).all() and out.min() >= 0 and out.max() <= 1 and (known == 255).all()


POSITIONS = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], np.float32)


def strip():
    texture, mask = np.zeros((3, 3, 3), np.float32), np.zeros((3, 3), np.uint8)
    texture[2, 0], texture[0, 0], mask[2, 0], mask[0, 0] = (1, 0, 0), (0, 0, 1), 255, 255
    return texture, mask


def test_inpainting_spreads_over_directed_edges():
    texture, mask = strip()
    out, known, colors, state = bake.inpaint(texture, mask, POSITIONS, SQUARE, FACES, FACES)
    for at in ((0, 2), (2, 2)):
        assert np.allclose(out[at], (1 / 3, 0, 2 / 3), atol=1e-6)
    assert known.tolist() == [[255, 0, 255], [0, 0, 0], [255, 0, 255]] and state.tolist() == [1, 2, 2, 1]
    out = bake.inpaint(texture, mask, POSITIONS, SQUARE, FACES, FACES, method="forward")[0]
    assert out[0, 2].tolist() == out[2, 2].tolist() == [1, 0, 0]
    mask[0, 0] = 0
    assert bake.inpaint(texture, mask, POSITIONS, SQUARE, FACES, FACES)[2].tolist() == [[1, 0, 0]] * 4
    assert not bake.inpaint(texture, mask * 0, POSITIONS, SQUARE, FACES, FACES)[1].any()


def test_inpainting_refuses_what_does_not_fit():
    texture, mask = strip()
    import mesh_inpaint_processor
    import mesh_processor

    with pytest.raises(ValueError):
        mesh_inpaint_processor.meshVerticeInpaint(texture, mask, POSITIONS, SQUARE, FACES, FACES, method="x")
    with pytest.raises(ValueError):
        mesh_processor.meshVerticeInpaint(texture, mask, POSITIONS, SQUARE, FACES, FACES, method="forward")
    with pytest.raises(IndexError):
        bake.inpaint(texture, mask, POSITIONS, SQUARE, FACES + 2, FACES)
    assert bake.inpaint(texture, mask, POSITIONS, SQUARE * 1.2, FACES, FACES)[0].shape == (3, 3, 3)
    strided = np.repeat(texture, 2, 1)[:, ::2]
    assert np.array_equal(
        mesh_processor.meshVerticeInpaint(strided, mask, POSITIONS, SQUARE, FACES, FACES)[0],
        mesh_processor.meshVerticeInpaint(texture, mask, POSITIONS, SQUARE, FACES, FACES)[0],
    )
    assert mesh_inpaint_processor.meshVerticeColor(texture, mask, POSITIONS, SQUARE, FACES, FACES)[1].tolist() == [1, 2, 2, 1]


def test_sizes_must_be_positive():
    with pytest.raises(InvalidArgument, match="size"):
        bake.rasterize_uv(SQUARE, FACES, 0)


def test_texture_baker_and_custom_rasterizer_stand_in():
    torch = pytest.importorskip("torch")
    import custom_rasterizer
    import texture_baker

    baker, uv, faces = texture_baker.TextureBaker(), torch.from_numpy(SQUARE), torch.from_numpy(FACES).long()
    attr = torch.rand(4, 3, requires_grad=True)
    rast = baker.rasterize(uv, faces, 20)
    assert baker.get_mask(rast).sum() == 400
    assert torch.allclose(baker.interpolate(attr, rast, faces), baker.interpolate(attr.detach(), rast, faces), atol=1e-6)
    assert torch.equal(baker(attr.detach(), uv, faces, 20), baker.interpolate(attr.detach(), rast, faces))
    found, weights = custom_rasterizer.rasterize(torch.from_numpy(CLIP)[None], faces.int(), (2, 6))
    assert found.shape == (2, 6) and found.dtype == torch.int32
    col = torch.rand(1, 4, 5)
    plain = custom_rasterizer.interpolate(col, found, weights, faces)
    assert plain.shape == (1, 2, 6, 5)
    assert torch.allclose(plain, custom_rasterizer.interpolate(col.requires_grad_(), found.float(), weights, faces), atol=1e-6)
