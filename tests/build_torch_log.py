"""Logs of torch.compile, a record at a time."""

import json
from textwrap import indent

PREFIX = "V1206 15:18:15.925000 1500233 torch/_dynamo/utils.py:1288] "
CODE = """# AOT ID: ['0_forward']
# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.mul, aten.relu]
triton_poi_fused_mul_relu_0 = async_compile.triton('triton_poi_fused_mul_relu_0', '''
''')
    # [Provenance debug handles] triton_poi_fused_mul_relu_0:2
"""
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8]"):
        # File: /home/u/model.py:41 in forward, code: x = x * 2
        x: "f32[8]" = l_x_ * 2
        # File: /opt/site-packages/torch/nn/functional.py:7 in relu, code: return relu(x)
        y: "f32[8]" = torch.relu(x)
"""


def record(payload="", frame=0, **fields):
    whole = {**fields, "frame_id": frame, "frame_compile_id": 0, "has_payload": "d89a"}
    return f"{PREFIX}{json.dumps(whole)}\n{indent(payload, chr(9), lambda _: True)}\n"


def artifact(name, payload, frame=0):
    return record(payload if isinstance(payload, str) else json.dumps(payload), frame, artifact={"name": name})


def stack(*lines):
    return "".join(f'  File "/home/u/model.py", line {line}, in forward\n    code\n' for line in lines)
