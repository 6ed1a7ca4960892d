import os

import torch
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

use_cuda = os.getenv("USE_CUDA", "1" if torch.cuda.is_available() else "0") == "1"
sources = ["csrc/baker.cpp"] + (["csrc/baker_kernel.cu"] if use_cuda else [])

setup(
    name="texture_baker",
    version="0.0.1",
    packages=find_packages(),
    ext_modules=[(CUDAExtension if use_cuda else CppExtension)("texture_baker._C", sources)],
    cmdclass={"build_ext": BuildExtension},
)
