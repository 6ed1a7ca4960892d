"""Arrays of numpy and torch as DLTensor, with one small allocation each and no copy of the data."""

import ctypes
import struct
import sys

from . import _native
from ._native import CPU, CUDA, InvalidArgument, InvalidType

# struct DLTensor: data, device type, device id, ndim, type code, bits, lanes, shape, strides, byte offset; its shape follows
_PACK = [struct.Struct("=QiiiBBHQQQ%dq" % ndim).pack_into for ndim in range(9)]
_SLOTS = [ctypes.c_char * (48 + 8 * ndim) for ndim in range(9)]
_addressof = ctypes.addressof

F32, I32 = (2, 32), (0, 32)
_TYPES = {"float32": F32, "int32": I32}


def slot(address, kind, index, dtype, shape):
    """A DLTensor with its shape behind it, to be passed where the library takes a pointer to one."""
    ndim = len(shape)
    if ndim > 8:
        raise InvalidArgument("expected at most 8 dimensions, got %d" % ndim)
    memory = _SLOTS[ndim]()
    _PACK[ndim](memory, 0, address, kind, index, ndim, dtype[0], dtype[1], 1, _addressof(memory) + 48, 0, 0, *shape)
    return memory


class Numpy:
    """numpy arrays, on the CPU."""

    def __init__(self, numpy):
        self.numpy = numpy
        self.context = _native.cpu_context()
        self.float32, self.int32 = numpy.dtype("float32"), numpy.dtype("int32")
        self.deterministic = False

    def place(self, array):
        return self

    def take(self, array, name, integer=False):
        """As the library takes it: float32 or int32, contiguous, aligned. Copied only when it is not."""
        np = self.numpy
        if not isinstance(array, np.ndarray):
            raise InvalidType("%s: expected a numpy array like the other arguments, got %s" % (name, type(array).__name__))
        if array.dtype.kind not in ("iu" if integer else "f"):
            expected = "integers" if integer else "float32"
            raise InvalidType("%s: expected %s, got %s" % (name, expected, array.dtype))
        array = np.ascontiguousarray(array, self.int32 if integer else self.float32).reshape(array.shape)
        if array.shape[-1:] != (4,) or array.__array_interface__["data"][0] % 16 == 0:
            return array
        return array.copy()  # malloc's memory is aligned

    host = track = take

    def records(self, *arrays):
        return False

    def empty(self, shape, integer=False):
        return self.numpy.empty(shape, self.int32 if integer else self.float32)

    def view(self, array):
        dtype = F32 if array.dtype == self.float32 else I32
        return slot(array.__array_interface__["data"][0], CPU, 0, dtype, array.shape)

    view_host = view

    def is_integer_sequence(self, value):
        return isinstance(value, self.numpy.ndarray) and value.dtype.kind in "iu"


def _raw_stream(torch, index):
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # what torch's own compiler calls; not there in a build without CUDA
    return quick(index) if quick else torch.cuda.current_stream(index).cuda_stream


class Torch:
    """torch tensors on one device and the stream that is current there now."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.deterministic = torch.are_deterministic_algorithms_enabled()
        if device.type == "cpu":
            self.kind, self.index, self.context = CPU, 0, _native.cpu_context()
        elif device.type == "cuda":
            index = torch.cuda.current_device() if device.index is None else device.index
            stream = _raw_stream(torch, index)
            self.kind, self.index, self.context = CUDA, index, _native.cuda_context(index, stream, torch)
        else:
            raise InvalidArgument("expected tensors on the CPU or on a CUDA device, got %s" % device)

    def take(self, tensor, name, integer=False):
        """As the library takes it: float32 or int32, contiguous, aligned, without history. Copied only when it is not."""
        tensor = self.track(tensor, name, integer)
        return tensor.detach() if tensor.requires_grad else tensor

    def track(self, tensor, name, integer=False):
        """As take, with the tensor's history: what a conversion does is undone on a gradient's way back."""
        if not isinstance(tensor, self.torch.Tensor):
            raise InvalidType("%s: expected a torch tensor like the other arguments, got %s" % (name, type(tensor).__name__))
        device = tensor.device
        if device != self.device and (device.type, device.index or 0) != (self.device.type, self.index):
            raise InvalidArgument("%s: expected a tensor on %s, got one on %s" % (name, self.device, device))
        return self._convert(tensor, name, integer)

    def records(self, *tensors):
        """Whether a gradient may be asked for with respect to one of them."""
        return self.torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)

    def _convert(self, tensor, name, integer):
        torch, wanted = self.torch, self.torch.int32 if integer else self.torch.float32
        if tensor.dtype is not wanted:
            taken = (torch.int64, torch.int16, torch.uint8, torch.int8) if integer else (torch.float16, torch.bfloat16)
            if tensor.dtype not in taken:
                expected = "int32 or int64" if integer else "float32, float16 or bfloat16"
                raise InvalidType("%s: expected %s, got %s" % (name, expected, str(tensor.dtype).replace("torch.", "")))
            tensor = tensor.to(wanted)
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        # Only rows of four are read as vectors.
        return tensor if tensor.data_ptr() % 16 == 0 or tensor.shape[-1:] != (4,) else tensor.clone()

    def host(self, tensor, name, integer=False):
        """As take, for what lies in host memory whatever the device."""
        if not isinstance(tensor, self.torch.Tensor):
            raise InvalidType("%s: expected a torch tensor, got %s" % (name, type(tensor).__name__))
        if tensor.device.type != "cpu":
            raise InvalidArgument("%s: expected a tensor in host memory, got one on %s" % (name, tensor.device))
        return self._convert(tensor, name, integer)

    def empty(self, shape, integer=False):
        torch = self.torch
        return torch.empty(shape, dtype=torch.int32 if integer else torch.float32, device=self.device)

    def view(self, tensor):
        dtype = F32 if tensor.dtype is self.torch.float32 else I32
        return slot(tensor.data_ptr(), self.kind, self.index, dtype, tensor.shape)

    def view_host(self, tensor):
        return slot(tensor.data_ptr(), CPU, 0, I32, tensor.shape)

    def is_integer_sequence(self, value):
        return isinstance(value, self.torch.Tensor) and not value.dtype.is_floating_point


_numpy = None


def backend_of(array, name):
    """The library that an array belongs to, with the context for where it lies."""
    global _numpy
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return Torch(torch, array.device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray):
        if _numpy is None:
            _numpy = Numpy(numpy)
        return _numpy
    raise InvalidType("%s: expected a torch tensor or a numpy array, got %s" % (name, type(array).__name__))
