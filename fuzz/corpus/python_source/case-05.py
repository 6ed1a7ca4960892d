import subprocess
import sys
import spaces


def install_dependencies(enable_optimization=False):
    subprocess.run(f"{sys.executable} -m pip install flash-attn --no-build-isolation", env={"FLASH_ATTENTION_SKIP_CUDA_BUILD": "TRUE"}, shell=True)
    subprocess.run(f'{sys.executable} -m pip install -v --disable-pip-version-check --no-cache-dir --no-build-isolation --config-settings "--build-option=--cpp_ext" --config-settings "--build-option=--cuda_ext" git+https://github.com/NVIDIA/apex.git', shell=True)
    subprocess.run(f"{sys.executable} -m pip install ninja", shell=True)
    subprocess.run(f"{sys.executable} -m pip install -v -U git+https://github.com/facebookresearch/xformers.git@main#egg=xformers", shell=True)

import os
import subprocess
import sys
import spaces
import torch
import gradio as gr
def _use_1():
    from opensora.models.stdit.stdit3 import STDiT3
from opensora.models.text_encoder.t5 import text_preprocessing

@spaces.GPU(duration=200)
def run_image_inference(*args):
    return None


@spaces.GPU(duration=200)
def run_video_inference(*args):
    return None


with gr.Blocks() as demo:
    button = gr.Button()
    button.click(run_image_inference)
    button.click(run_video_inference)

demo.launch()
