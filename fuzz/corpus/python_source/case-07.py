import shlex
import subprocess
import spaces
import torch


def install():
    subprocess.run(shlex.split("pip install causal_conv1d-1.0.0-cp310-cp310-linux_x86_64.whl"))
    subprocess.run(shlex.split("pip install mamba_ssm-1.0.1-cp310-cp310-linux_x86_64.whl"))


install()

import gradio as gr
from videomamba_image import videomamba_image_tiny


@spaces.GPU
def inference_video(video):
    return {}


@spaces.GPU
def inference_image(img):
    return {}


with gr.Blocks() as demo:
    button = gr.Button()
    gr.Examples(examples=["a.mp4"], inputs=gr.Video(), outputs=gr.Label(), fn=inference_video, cache_examples=True)
    button.click(fn=inference_video)
    button.click(fn=inference_image)
demo.queue(max_size=20).launch()
