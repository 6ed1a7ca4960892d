import os
import subprocess

import gradio as gr
import spaces
import torch


@spaces.GPU(duration=600)
def setup():
    home = "/cuda-image/usr/local/cuda-13.0"
    env = {**os.environ, "CUDA_HOME": home}
    subprocess.run(["pip", "install", "git+https://github.com/ashawkey/diff-gaussian-rasterization.git"], env=env)


setup()

from splats.render import render_splats


@spaces.GPU(duration=30)
def splat(image):
    return render_splats(image)


@spaces.GPU(duration=30)
def mesh(path):
    import nvdiffrast.torch as dr

    return path


demo = gr.Interface(fn=lambda image: mesh(splat(image)), inputs="image", outputs="model3d")
demo.launch()
