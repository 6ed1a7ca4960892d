"""Makes folders for the benchmark of scan: trees.py app OUT, trees.py tree OUT COUNT. Seeded: the same text on every machine."""
import pathlib
import random
import sys

BODY = '''
def f{i}(a, b=2, *rest):
    """Mixes a and b."""
    x = a
    if b > {k}:
        return np.zeros((b, {k}))
    for step in range({k}):
        x = x * 0.5 + step  # decay
        y = [value for value in rest if value is not None]
        x = x + sum(len(str(v)) for v in y) * {{"a": 1, "b": 2}}.get("a", 0)
    return torch.as_tensor([x, {k}]).float().to(a.device)
'''
CLASS = '''
class Block{i}(nn.Module):
    def __init__(self, width, depth={k}):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = self.norm(x + layer(x))
            if mask is not None:
                x = x.masked_fill(~mask, 0.0)
        return x
'''
APP = '''import os
import subprocess
import spaces
os.environ["ATTN_BACKEND"] = "xformers"
subprocess.run(["pip", "install", "--no-build-isolation", "./ext"], check=True)
import gradio as gr
import torch
from pkg0.m0 import f0


@spaces.GPU(duration=120)
def run(image):
    return f0(image)


demo = gr.Interface(fn=run, inputs="image", outputs="model3d")
demo.launch()
'''


def module(rng, i, count):
    imports = "".join(f"from pkg{j // 50}.m{j} import f{j}\n" for j in (2 * i + 1, 2 * i + 2) if j < count)
    parts = [BODY.format(i=i, k=rng.randint(2, 9))]
    for n in range(rng.randint(0, 3)):
        parts.append(rng.choice([BODY, CLASS]).format(i=f"{i}_{n}", k=rng.randint(2, 9)))
    return f"import math\nimport numpy as np\nimport torch\nfrom torch import nn\n{imports}" + "".join(parts)


def main():
    kind, out = sys.argv[1], pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if kind == "tree" else 40
    rng = random.Random(7)
    out.mkdir(parents=True, exist_ok=True)
    (out / "app.py").write_text(APP)
    (out / "requirements.txt").write_text("torch==2.11.0\nxformers\nnumpy\ntrimesh\n")
    (out / "README.md").write_text('---\nsdk: gradio\nsdk_version: 6.1.0\npython_version: "3.12"\napp_file: app.py\n---\n')
    for i in range(count):
        folder = out / f"pkg{i // 50}"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / f"m{i}.py").write_text(module(rng, i, count))


if __name__ == "__main__":
    main()
