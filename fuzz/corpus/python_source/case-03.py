import shlex
import subprocess

import gradio as gr
import spaces
import torch
from diffusers import DiffusionPipeline

subprocess.run(shlex.split("pip install https://huggingface.co/spaces/dylanebert/LGM-mini/resolve/main/wheel/diff_gaussian_rasterization-0.0.0-cp310-cp310-linux_x86_64.whl"))

pipeline = DiffusionPipeline.from_pretrained("dylanebert/LGM-full", custom_pipeline="dylanebert/LGM-full", trust_remote_code=True).to("cuda")


@spaces.GPU
def run(image):
    path = "/tmp/output.ply"
    return path


demo = gr.Interface(fn=run, inputs="image", outputs=gr.Model3D(), cache_examples=True)
demo.launch()
