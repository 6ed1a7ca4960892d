import os

os.environ["ATTN_BACKEND"] = "flash_attn_3"
os.environ["SPARSE_CONV_BACKEND"] = "flex_gemm"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import gradio as gr
import spaces
import torch

from studio.pipeline import VoxelPipeline

pipeline = VoxelPipeline()


def estimate(image, steps, *args, **kwargs):
    return 30 + 4 * steps


@spaces.GPU(duration=120)
def generate(image, steps):
    latent = pipeline.sample(image, steps)
    torch.cuda.empty_cache()
    return {"latent": latent.cpu().numpy()}


@spaces.GPU(duration=estimate)
def extract(state, steps):
    path = pipeline.decode(state["latent"])
    torch.cuda.empty_cache()
    return path


with gr.Blocks() as demo:
    image = gr.Image()
    steps = gr.Slider(1, 50, value=12)
    state = gr.State()
    result = gr.Model3D()
    image.upload(generate, [image, steps], state).then(extract, [state, steps], result)

demo.launch()
