import os
import subprocess
os.environ["SPCONV_ALGO"] = "native"
os.environ["ATTN_BACKEND"] = "xformers"
import spaces


@spaces.GPU(duration=600)
def setup():
    home = "/cuda-image/usr/local/cuda-13.0"
    env = {**os.environ, "CUDA_HOME": home, "TORCH_CUDA_ARCH_LIST": "12.0"}
    subprocess.run(["pip", "install", "--no-build-isolation", "./extensions/nvdiffrast"], env=env, check=True)
    subprocess.run(["git", "clone", "--depth", "1", "https://github.com/autonomousvision/mip-splatting.git", "/tmp/mip-splatting"], check=True)
    subprocess.run(["pip", "install", "--no-build-isolation", "--no-deps", "/tmp/mip-splatting/submodules/diff-gaussian-rasterization"], env=env, check=True)


setup()
import ctypes
ctypes.CDLL("/cuda-image/usr/local/cuda-13.0/lib64/libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
import gradio as gr
import torch
import nvdiffrast.torch as dr
import diff_gaussian_rasterization
import spconv.pytorch as spconv
import xformers.ops as xops


@spaces.GPU(duration=120)
def image_to_3d(image):
    return {}


with gr.Blocks() as demo:
    b = gr.Button()
    b.click(image_to_3d)
demo.launch()
