import os
import gradio as gr
import spaces
import torch
import os
import subprocess
import torch
try:
    from engine.SegmentAPI.SAM import SAM2Seg
except ImportError:
    pass
def _use_1():
    from LHM.models import model_dict

def demo_lhm(infer_impl):
    @spaces.GPU(duration=100)
    def core_fn(*args):
        return None

    with gr.Blocks() as demo:
        submit = gr.Button()
        submit.click(core_fn)
    return demo
