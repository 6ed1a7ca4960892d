"""nvdiffrast.torch where the real one is absent. Judge: the numbers worked out from the definitions, autograd.gradcheck's idea with wide steps."""

import importlib.util
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

if importlib.util.find_spec("nvdiffrast") is not None:
    pytest.skip("the real nvdiffrast is installed", allow_module_level=True)

import felloe.dropin  # noqa: E402

import nvdiffrast  # noqa: E402
import nvdiffrast.torch as dr  # noqa: E402

FULL = [[-1.0, -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]]
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def scene(device, positions=(FULL,)):
    return torch.tensor(positions, device=device), torch.tensor([[0, 1, 2]], dtype=torch.int32, device=device)


def ctx(device):
    return dr.RasterizeCudaContext(device=device)


def test_the_stand_in_says_what_it_is():
    assert nvdiffrast.__version__ == "0.4.0"
    assert felloe.dropin.provided("nvdiffrast.torch")
    assert not felloe.dropin.provided("torch")


def test_a_real_package_wins(tmp_path):
    (tmp_path / "nvdiffrast").mkdir()
    (tmp_path / "nvdiffrast" / "__init__.py").write_text("real = True\n")
    path = os.pathsep.join([str(tmp_path)] + [p for p in sys.path if p])
    code = "import felloe.dropin, nvdiffrast; print(nvdiffrast.real)"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)
    assert done.stdout.strip() == "True"


def test_every_public_name_is_there():
    for name in (
        "RasterizeCudaContext RasterizeGLContext rasterize DepthPeeler interpolate texture texture_construct_mip antialias "
        "antialias_construct_topology_hash get_log_level set_log_level"
    ).split():
        assert callable(getattr(dr, name))


def test_the_gl_context_warns_and_serves(device):
    with pytest.warns(DeprecationWarning):
        context = dr.RasterizeGLContext(output_db=False, device=device)
    context.set_context()
    context.release_context()
    assert isinstance(context, dr.RasterizeCudaContext)
    assert dr.rasterize(context, *scene(device), [4, 4])[0].shape == (1, 4, 4, 4)


def test_a_triangle_over_the_image_has_the_worked_out_channels(device):
    rast, db = dr.rasterize(ctx(device), *scene(device), resolution=[8, 8])
    assert (rast[..., 3] == 1).all()
    assert rast[0, 0, 0, :2].tolist() == [0.9375, 0.03125]
    assert rast[0, 7, 0, 0].item() == 0.5
    assert torch.allclose(db, torch.tensor([-0.0625, -0.0625, 0.0625, 0], device=device))


def test_interpolation_and_its_gradients_have_the_worked_out_values(device):
    rast = torch.tensor([[[[0.25, 0.5, 0, 1]]]], device=device, requires_grad=True)
    db = torch.tensor([[[[0.1, 0.2, 0.3, 0.4]]]], device=device, requires_grad=True)
    attr = torch.tensor([[1.0], [2], [4]], device=device, requires_grad=True)
    tri = torch.tensor([[0, 1, 2]], dtype=torch.int32, device=device)
    out, da = dr.interpolate(attr, rast, tri, rast_db=db, diff_attrs="all")
    assert out.item() == 2.25
    assert torch.allclose(da.flatten(), torch.tensor([-0.9, -1.4], device=device))
    grads = torch.autograd.grad(out.sum(), (attr, rast), retain_graph=True)
    assert grads[0].flatten().tolist() == [0.25, 0.5, 0.25]
    assert grads[1].flatten().tolist() == [-3, -2, 0, 0]
    grads = torch.autograd.grad(da[..., 0].sum(), (attr, db))
    assert torch.allclose(grads[0].flatten(), torch.tensor([0.1, 0.3, -0.4], device=device))
    assert torch.allclose(grads[1].flatten(), torch.tensor([-3.0, 0, -2, 0], device=device))


def test_selected_attributes_keep_order_and_count_from_the_end(device):
    rast, db = dr.rasterize(ctx(device), *scene(device), (4, 4))
    attr = torch.rand(1, 3, 5, device=device)
    tri = scene(device)[1]
    every = dr.interpolate(attr, rast, tri, db, "all")[1]
    two = dr.interpolate(attr, rast, tri, db, [2, 0])[1]
    assert torch.equal(two, every[..., [4, 5, 0, 1]])
    assert torch.equal(dr.interpolate(attr, rast, tri, db, [-1])[1], every[..., 8:])
    assert dr.interpolate(attr, rast, tri, db, [])[1].shape == (1, 4, 4, 0)
    assert dr.interpolate(attr, rast, tri, db)[1].shape == (1, 4, 4, 0)
    with pytest.raises(ValueError):
        dr.interpolate(attr, rast, tri, db, [5])


def test_positions_get_gradients_that_agree_with_differences(device):
    generator = torch.Generator().manual_seed(3)
    weights = torch.randn(1, 6, 7, 2, generator=generator, dtype=torch.float64)
    start = torch.tensor([[[-1.0, -1, 0, 1], [3, -1, 0.1, 1.5], [-1, 3, 0.2, 1.2]]])
    tri = scene(device)[1]

    def loss(pos):
        rast, _ = dr.rasterize(ctx(device), pos.float().to(device), tri, (6, 7))
        return (rast[..., :2].cpu().double() * weights).sum()

    pos = start.clone().requires_grad_()
    loss(pos).backward()
    for vertex in range(3):
        for component in (0, 1, 3):
            step = torch.zeros_like(start)
            step[0, vertex, component] = 2e-3
            expected = ((loss(start + step) - loss(start - step)) / 4e-3).item()
            assert pos.grad[0, vertex, component].item() == pytest.approx(expected, rel=1e-2, abs=1e-2)
    assert (pos.grad[..., 2] == 0).all()


def test_without_grad_db_derivatives_pass_nothing_on(device):
    pos, tri = scene(device)
    pos.requires_grad_()
    _, db = dr.rasterize(ctx(device), pos, tri, (4, 4), grad_db=False)
    db.sum().backward()
    assert (pos.grad == 0).all()


def test_lookups_have_the_worked_out_values_and_gradients(device):
    tex = torch.tensor([[[[0.0], [1]], [[2], [3]]]], device=device, requires_grad=True)
    uv = torch.tensor([[[[0.5, 0.5]]]], device=device, requires_grad=True)
    out = dr.texture(tex, uv)
    out.backward()
    assert out.item() == 1.5
    assert uv.grad.flatten().tolist() == [2, 4]
    assert tex.grad.flatten().tolist() == [0.25] * 4


def test_bias_alone_is_the_level_and_gets_a_gradient(device):
    tex = torch.rand(1, 4, 4, 2, device=device)
    uv = torch.full((1, 1, 1, 2), 0.5, device=device)
    bias = torch.full((1, 1, 1), 1.5, device=device, requires_grad=True)
    first = tex.view(1, 2, 2, 2, 2, 2).mean((2, 4))
    expected = (dr.texture(first, uv) + first.mean((1, 2), keepdim=True)) / 2
    out = dr.texture(tex, uv, mip_level_bias=bias)
    assert torch.allclose(out, expected, atol=1e-6)
    out.sum().backward()
    assert bias.grad.item() == pytest.approx((first.mean((1, 2), keepdim=True) - dr.texture(first, uv)).sum().item(), abs=1e-5)


def test_own_levels_get_gradients_of_their_own(device):
    tex = torch.rand(1, 4, 4, 1, device=device, requires_grad=True)
    levels = [torch.rand(1, 2, 2, 1, device=device, requires_grad=True), torch.rand(1, 1, 1, 1, device=device, requires_grad=True)]
    uv = torch.rand(1, 3, 3, 2, device=device)
    dr.texture(tex, uv, mip_level_bias=torch.full((1, 3, 3), 1.25, device=device), mip=levels).sum().backward()
    assert (tex.grad == 0).all()
    assert levels[0].grad.sum().item() == pytest.approx(9 * 0.75, rel=1e-5)
    assert levels[1].grad.sum().item() == pytest.approx(9 * 0.25, rel=1e-5)


def test_a_prebuilt_stack_equals_the_one_made_on_the_way(device):
    tex = torch.rand(1, 8, 8, 3, device=device, requires_grad=True)
    uv, da = torch.rand(1, 5, 5, 2, device=device), torch.rand(1, 5, 5, 4, device=device)
    out = [dr.texture(tex, uv, da, mip=mip) for mip in (None, dr.texture_construct_mip(tex))]
    assert torch.equal(*out)
    grads = [torch.autograd.grad(o.square().sum(), tex)[0] for o in out]
    assert torch.allclose(*grads, atol=1e-5)


def test_silhouettes_are_blended_by_coverage_and_pull_on_positions(device):
    x = 3.75 / 4 - 1
    pos = torch.tensor([[[-3.0, -3, 0, 1], [x, -3, 0, 1], [x, 3, 0, 1], [-3, 3, 0, 1]]], device=device, requires_grad=True)
    tri = torch.tensor([[0, 1, 2], [0, 2, 3]], dtype=torch.int32, device=device)
    rast, _ = dr.rasterize(ctx(device), pos, tri, (8, 8))
    mask = (rast[..., 3:] > 0).float()
    out = dr.antialias(mask, rast, pos, tri, topology_hash=dr.antialias_construct_topology_hash(tri))
    assert torch.allclose(out[0, 4, :, 0], torch.tensor([1, 1, 1, 0.75, 0, 0, 0, 0], device=device), atol=2e-6)
    out.sum().backward(retain_graph=True)
    assert pos.grad[0, 1, 0].item() == pytest.approx(16, rel=1e-3)
    assert pos.grad[0, 2, 0].item() == pytest.approx(16, rel=1e-3)
    once = pos.grad.clone()
    pos.grad = None
    dr.antialias(mask, rast, pos, tri, pos_gradient_boost=3.0).sum().backward()
    assert torch.allclose(pos.grad, 3 * once, atol=1e-4)


def test_peeling_gives_layers_and_then_background(device):
    pos = torch.tensor([[[x, y, z, 1] for z in (0.5, -0.5, 0) for x, y in ((-1, -1), (3, -1), (-1, 3))]], device=device).float()
    tri = torch.arange(9, dtype=torch.int32, device=device).view(3, 3)
    context = ctx(device)
    with dr.DepthPeeler(context, pos, tri, [4, 4]) as peeler:
        ids = [peeler.rasterize_next_layer()[0][0, 0, 0, 3].item() for _ in range(5)]
        with pytest.raises(RuntimeError):
            dr.rasterize(context, pos, tri, [4, 4])
    assert ids == [2, 3, 1, 0, 0]
    with pytest.raises(RuntimeError):
        peeler.rasterize_next_layer()
    with pytest.raises(RuntimeError):
        peeler.__enter__()


def test_half_precision_comes_back_as_it_was(device):
    rast, _ = dr.rasterize(ctx(device), *scene(device), (4, 4))
    attr = torch.rand(3, 2, device=device).half().requires_grad_()
    out, _ = dr.interpolate(attr, rast, scene(device)[1])
    out.sum().backward()
    assert out.dtype == attr.grad.dtype == torch.float16


def test_incoming_gradients_need_not_be_contiguous(device):
    tex = torch.rand(1, 4, 4, 3, device=device, requires_grad=True)
    uv = torch.rand(1, 5, 6, 2, device=device)
    weights = torch.rand(3, 6, 5, 1, device=device)
    out = dr.texture(tex, uv)
    (out.permute(3, 2, 1, 0) * weights).sum().backward()
    got, tex.grad = tex.grad, None
    dr.texture(tex, uv).backward(weights.permute(3, 2, 1, 0).contiguous())
    assert torch.allclose(got, tex.grad, atol=1e-6)


def test_deterministic_gradients_repeat_to_the_bit(device):
    torch.use_deterministic_algorithms(True)
    try:
        tex = torch.rand(1, 8, 8, 3, device=device, requires_grad=True)
        uv = torch.rand(1, 128, 128, 2, device=device)
        grads = [torch.autograd.grad((dr.texture(tex, uv) ** 2).sum(), tex)[0] for _ in range(3)]
        assert torch.equal(grads[0], grads[1]) and torch.equal(grads[0], grads[2])
    finally:
        torch.use_deterministic_algorithms(False)


def test_second_derivatives_are_refused_aloud(device):
    attr = torch.rand(3, 2, device=device, requires_grad=True)
    rast = dr.rasterize(ctx(device), *scene(device), (4, 4))[0].requires_grad_()
    out, _ = dr.interpolate(attr, rast, scene(device)[1])
    (grad,) = torch.autograd.grad(out.square().sum(), rast, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|twice"):
        grad.sum().backward()


def test_a_square_is_pulled_to_its_target(device):
    tri = torch.tensor([[0, 1, 2], [0, 2, 3]], dtype=torch.int32, device=device)
    corners = torch.tensor([[-0.4, -0.4], [0.4, -0.4], [0.4, 0.4], [-0.4, 0.4]], device=device)

    def draw(xy):
        pos = torch.cat([xy, torch.zeros(4, 1, device=device), torch.ones(4, 1, device=device)], 1)[None]
        rast, _ = dr.rasterize(ctx(device), pos, tri, [64, 64])
        return dr.antialias((rast[..., 3:] > 0).float(), rast, pos, tri)

    with torch.no_grad():
        target = draw(corners + torch.tensor([0.1, -0.06], device=device))
    xy = corners.clone().requires_grad_()
    optimizer = torch.optim.Adam([xy], lr=0.01)
    losses = []
    for _ in range(50):
        loss = (draw(xy) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10


@pytest.mark.parametrize(
    "kinds, words, call",
    [
        ((TypeError, AssertionError), "glctx", lambda c, p, t: dr.rasterize(None, p, t, [4, 4])),
        ((TypeError, AssertionError), "grad_db", lambda c, p, t: dr.rasterize(c, p, t, [4, 4], grad_db=1)),
        ((TypeError, AssertionError), "pos", lambda c, p, t: dr.rasterize(c, p.tolist(), t, [4, 4])),
        ((ValueError, RuntimeError), "range mode", lambda c, p, t: dr.rasterize(c, p[0], t, [4, 4])),
        ((ValueError, RuntimeError), "ranges", lambda c, p, t: dr.rasterize(c, p[0], t, [4, 4], torch.zeros(1, 2))),
        ((ValueError, RuntimeError), "positions: expected float32 [n, v, 4]", lambda c, p, t: dr.rasterize(c, p[..., :3], t, [4, 4])),
        ((TypeError, RuntimeError), "triangles: expected int32 or int64, got float32", lambda c, p, t: dr.rasterize(c, p, t.float(), [4, 4])),
        ((ValueError, KeyError), "auto, nearest, linear", lambda c, p, t: dr.texture(p[None], p[None, ..., :2], filter_mode="cubic")),
        ((ValueError, KeyError), "wrap, clamp, zero", lambda c, p, t: dr.texture(p[None], p[None, ..., :2], boundary_mode="border")),
        (
            (ValueError, AssertionError),
            "needs uv_da or mip_level_bias",
            lambda c, p, t: dr.texture(p[None], p[None, ..., :2], filter_mode="linear-mipmap-linear"),
        ),
        ((ValueError, AssertionError), "max_mip_level", lambda c, p, t: dr.texture_construct_mip(p[None], -1)),
        ((ValueError, AssertionError), "rast_db", lambda c, p, t: dr.interpolate(p, p[None], t, diff_attrs="all")),
        ((ValueError, RuntimeError), "3", lambda c, p, t: dr.texture_construct_mip(torch.rand(1, 6, 6, 1))),
        ((ValueError, RuntimeError), "empty", lambda c, p, t: dr.texture(p[None], p[None, ..., :2], p[None], mip=[])),
    ],
)
def test_errors_are_of_both_kinds_and_name_the_argument(kinds, words, call):
    for kind in kinds:
        with pytest.raises(kind) as caught:
            call(ctx("cpu"), *scene("cpu"))
        assert words in str(caught.value)
