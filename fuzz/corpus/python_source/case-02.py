import os
import shlex
import subprocess
import spaces
os.system("cd /home/user/app/hy3dpaint/DifferentiableRenderer && bash compile_mesh_painter.sh")
subprocess.run(shlex.split("pip install custom_rasterizer-0.1-cp310-cp310-linux_x86_64.whl"), check=True)
import gradio as gr
import torch
import custom_rasterizer as cr
try:
    from mesh_inpaint_processor import meshVerticeInpaint
except ImportError:
    print("not imported")


@spaces.GPU(duration=60)
def shape_generation(image):
    return "shape.glb"


@spaces.GPU(duration=180)
def generation_all(image):
    return "textured.glb"


with gr.Blocks() as demo:
    b = gr.Button()
    b.click(shape_generation)
    b.click(generation_all)
demo.launch()
