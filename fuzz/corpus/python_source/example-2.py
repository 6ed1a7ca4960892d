import os
import shlex
import subprocess

import spaces

subprocess.run(shlex.split("pip install custom_rasterizer-0.1-cp310-cp310-linux_x86_64.whl"), check=True)
os.system("cd /home/user/app/painter && bash compile_painter.sh")

import gradio as gr
import torch
import custom_rasterizer
from painter.inpaint import paint


class Worker:
    @spaces.GPU(duration=40)
    def texture(self, mesh, image):
        mesh = paint(mesh, image)
        mesh.export("textured.glb")
        return "textured.glb"


@spaces.GPU(duration=180, size="xlarge")
def texture(mesh, image):
    colors = torch.zeros(10, 3, device="cuda")
    return {"mesh": "textured.glb", "colors": colors}


demo = gr.Interface(fn=texture, inputs=["file", "image"], outputs="model3d", cache_examples=True)
demo.launch()
