import gradio
