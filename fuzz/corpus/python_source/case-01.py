import sys
sys.path.insert(0, './hy3dshape')
sys.path.insert(0, './hy3dpaint')
ENV = "Huggingface"
if ENV == "Huggingface":
    import os, spaces, subprocess, shlex
    os.system("cd /home/user/app/hy3dgen/texgen/differentiable_renderer/ && bash compile_mesh_painter.sh")
    subprocess.run(shlex.split("pip install custom_rasterizer-0.1-cp310-cp310-linux_x86_64.whl"), check=True)

import sys
import os
import subprocess
import gradio as gr
import torch
import os, spaces, subprocess, sys, shlex
try:
    from hy3dpaint.textureGenPipeline import Hunyuan3DPaintPipeline, Hunyuan3DPaintConfig
except ImportError:
    pass
from hy3dshape.pipelines import export_to_trimesh

@spaces.GPU(duration=60)
def generation_all(*args):
    return None


@spaces.GPU(duration=60)
def shape_generation(*args):
    return None


@spaces.GPU(duration=60)
def _gen_shape(*args):
    return None


with gr.Blocks() as demo:
    button = gr.Button()
    button.click(generation_all)
    button.click(shape_generation)
    button.click(_gen_shape)

demo.launch()
