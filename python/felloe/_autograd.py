"""The operators as torch.autograd functions. Imported only when a gradient may be asked for. Arguments come as
_tensors takes them. First derivatives only: asking for second ones is a
RuntimeError of torch's that says so."""

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from . import _ops
from ._tensors import Torch


def _given(backend, grad, like, name):
    """An incoming gradient as the library takes it; none is zeros."""
    return torch.zeros_like(like) if grad is None else backend.take(grad, name)


class Rasterize(Function):
    @staticmethod
    def forward(ctx, pos, tri, backend, ranges, db_gradient, settings):
        rast, rast_db = _ops.rasterize(backend, pos, tri, ranges, *settings)
        # Backward reads ids from rast: torch refuses it, with a message, when they were edited in place since.
        ctx.save_for_backward(pos, tri, rast)
        ctx.db_gradient = db_gradient
        ctx.set_materialize_grads(False)
        return rast, rast_db

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_rast, grad_db):
        pos, tri, rast = ctx.saved_tensors
        grad_db = grad_db if ctx.db_gradient else None
        if grad_rast is None and grad_db is None:
            return torch.zeros_like(pos), None, None, None, None, None
        backend = Torch(torch, pos.device)
        grad_rast = _given(backend, grad_rast, rast, "gradient of rast")
        if grad_db is not None:
            grad_db = backend.take(grad_db, "gradient of rast_db")
        return (_ops.rasterize_backward(backend, pos, tri, rast, grad_rast, grad_db), None, None, None, None, None)


class Interpolate(Function):
    @staticmethod
    def forward(ctx, attr, rast, rast_db, tri, backend, selected):
        ctx.save_for_backward(attr, rast, rast_db, tri)
        ctx.selected = selected  # kept by felloe.raster: may have been made in inference mode, whose tensors torch does not save
        ctx.set_materialize_grads(False)
        return _ops.interpolate(backend, attr, rast, tri, rast_db, selected)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out, grad_da):
        attr, rast, rast_db, tri = ctx.saved_tensors
        if grad_out is None and grad_da is None:
            return None, None, None, None, None, None
        backend = Torch(torch, attr.device)
        if grad_out is None:
            grad_out = attr.new_zeros(tuple(rast.shape[:3]) + (attr.shape[-1],))
        grad_out = backend.take(grad_out, "gradient of out")
        if grad_da is not None:
            grad_da = backend.take(grad_da, "gradient of out_da")
        needs = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.needs_input_grad[2] and grad_da is not None)
        grads = _ops.interpolate_backward(backend, attr, rast, tri, rast_db, ctx.selected, grad_out, grad_da, needs)
        return (*grads, None, None, None)


class Texture(Function):
    """own: the levels are the caller's. They come last, so that each is an input with a gradient."""

    @staticmethod
    def forward(ctx, tex, uv, uv_da, bias, backend, codes, own, *levels):
        ctx.save_for_backward(tex, uv, uv_da, bias, *levels)
        ctx.codes, ctx.own = codes, own
        return _ops.texture(backend, tex, levels, uv, uv_da, bias, *codes)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        tex, uv, uv_da, bias = ctx.saved_tensors[:4]
        levels = ctx.saved_tensors[4:]
        backend = Torch(torch, tex.device)
        grad_out = backend.take(grad_out, "gradient of out")
        needs = ctx.needs_input_grad
        grads, level_grads = _ops.texture_backward(
            backend, tex, levels, ctx.own, uv, uv_da, bias, *ctx.codes, grad_out, needs[:4], needs[7:]
        )
        return (*grads, None, None, None, *(level_grads if ctx.own else [None] * len(levels)))


class Antialias(Function):
    @staticmethod
    def forward(ctx, color, pos, rast, tri, topology, backend, boost):
        ctx.save_for_backward(color, pos, rast, tri, topology)
        ctx.boost = boost
        return _ops.antialias(backend, color, rast, pos, tri, topology)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        color, pos, rast, tri, topology = ctx.saved_tensors
        backend = Torch(torch, color.device)
        grad_out = backend.take(grad_out, "gradient of out")
        needs = ctx.needs_input_grad[:2]
        grads = _ops.antialias_backward(backend, color, rast, pos, tri, topology, grad_out, ctx.boost, needs)
        return (*grads, None, None, None, None, None)
