import os
import shlex
import subprocess

import spaces
import gradio as gr
import torch

# The build container has no nvcc: compile at start-up.
subprocess.run(shlex.split("pip install --no-build-isolation ./texture_baker"))

from baking import bake_mesh

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"


@spaces.GPU
def generate(image):
    mesh = bake_mesh(image)
    mesh.export("/tmp/result.glb")
    return "/tmp/result.glb"


with gr.Blocks() as demo:
    image = gr.Image(type="pil")
    result = gr.Model3D()
    gr.Button("Bake").click(generate, inputs=image, outputs=result)

demo.launch()
