"""The C library: finding and loading it, its status codes as exceptions, contexts."""

import ctypes
import glob
import os
import sys
import threading


class FelloeError(RuntimeError):
    """What the library refused; the text names the argument, what was expected and what came."""


class InvalidArgument(FelloeError, ValueError):
    """A value or a shape that does not fit."""


class InvalidType(FelloeError, TypeError):
    """An element type, or a Python type, that does not fit."""


class OutOfMemory(FelloeError, MemoryError):
    """Of the host or of the device."""


class CudaError(FelloeError):
    """The driver or the kernel compiler refused, or there is none."""


INVALID_ARGUMENT, INVALID_SHAPE, INVALID_DTYPE, WRONG_DEVICE = 10, 11, 12, 13
_EXCEPTIONS = {
    INVALID_ARGUMENT: InvalidArgument,
    INVALID_SHAPE: InvalidArgument,
    INVALID_DTYPE: InvalidType,
    WRONG_DEVICE: InvalidArgument,
    20: OutOfMemory,
    30: CudaError,
    31: CudaError,
}

CPU, CUDA = 1, 2

_LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("device_type", ctypes.c_int),
        ("device_id", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
        ("allocate", _ALLOCATE),
        ("release", _RELEASE),
        ("user", ctypes.c_void_p),
        ("threads", ctypes.c_int32),
        ("kernels", ctypes.c_int32),
        ("nvrtc", ctypes.c_char_p),
        ("cache", ctypes.c_char_p),
    ]


def library_path():
    """The shared library in use: $FELLOE_LIBRARY, else the one in this package."""
    return os.environ.get("FELLOE_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libfelloe.so")


def _load():
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError("felloe: %s cannot be loaded: %s" % (path, error)) from None
    library.fel_last_error.restype = ctypes.c_char_p
    library.fel_version.restype = ctypes.c_char_p
    library.fel_status_name.restype = ctypes.c_char_p
    library.fel_context_create.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.fel_context_free.argtypes = [ctypes.c_void_p]
    library.fel_context_free.restype = None
    library.fel_set_log.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.fel_set_log.restype = None
    return library


lib = _load()


def version():
    """Of the C library, such as '0.1.0'."""
    return lib.fel_version().decode()


def check(status):
    """Raises what a status other than FEL_OK stands for."""
    if status:
        raise _EXCEPTIONS.get(status, FelloeError)(lib.fel_last_error().decode("utf-8", "replace"))


_log_kept = None


def set_log(log):
    """log(level, text) gets a line for what a developer may want to know; None turns it off."""
    global _log_kept
    callback = None if log is None else _LOG(lambda user, level, text: log(level, text.decode("utf-8", "replace")))
    lib.fel_set_log(callback, None)
    _log_kept = callback


# ---- contexts: one for each device and stream, made once, kept until the process ends ----

_lock = threading.Lock()
_contexts = {}
_kept = []  # what the library points to


def _create(options):
    handle = ctypes.c_void_p()
    check(lib.fel_context_create(ctypes.byref(options), ctypes.byref(handle)))
    return handle


def cpu_context():
    """The context of CPU calls."""
    return _contexts.get((CPU, 0, 0)) or _make((CPU, 0, 0), None)


def cuda_context(device, stream, torch):
    """The context of a CUDA device and a raw stream; scratch memory comes from torch's allocator."""
    return _contexts.get((CUDA, device, stream)) or _make((CUDA, device, stream), torch)


def _make(key, torch):
    kind, device, stream = key
    options = ContextOptions(size=ctypes.sizeof(ContextOptions), device_type=kind, device_id=device, stream=stream)
    with _lock:
        if key in _contexts:
            return _contexts[key]
        if kind == CUDA:
            allocate, release = _torch_allocator(torch, device)
            options.allocate, options.release = allocate, release
            found = _find_nvrtc()
            options.nvrtc = found.encode() if found else None
            _kept.extend([allocate, release])
        _contexts[key] = _create(options)
        return _contexts[key]


def _torch_allocator(torch, device):
    allocator, free = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete

    def allocate(user, size, stream):
        try:
            return allocator(size, device, stream or 0)
        except Exception:  # nothing may be thrown through C: NULL is how it hears of it
            return None

    def release(user, memory, stream):
        free(memory)

    return _ALLOCATE(allocate), _RELEASE(release)


def _find_nvrtc():
    """torch's own kernel compiler, which pip put beside it; None leaves the search to the library."""
    for folder in sys.path:
        for pattern in ("nvidia/cu1*/lib/libnvrtc.so.1*", "nvidia/cuda_nvrtc/lib/libnvrtc.so.1*", "torch/lib/libnvrtc*.so.1*"):
            found = sorted(glob.glob(os.path.join(folder, pattern)))
            if found:
                return found[-1]
    return None
