"""The encoder as an ONNX graph, checked against the library by onnxruntime before it counts as written."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from ocular.encoding import ConvEncoder
from ocular.encoding.kernels import CHANNELS
from ocular.errors import InputError, OcularError
from ocular.records import Labels
from ocular.seeds import stream

OPSET, IR_VERSION = 17, 8  # old enough for what runs on robots
LARGEST_DEVIATION = 1e-4  # of a latent, relative to the largest one


def require() -> None:
    """Raise before any work where the extra is not installed."""
    missing = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)} not installed; allowed is an environment with the extra: "
            "pip install 'ocular[export]'"
        )


def write(encoder: ConvEncoder, path: Path) -> float:
    """Write the graph, run it, and return by how much its latents deviate, relative to the largest."""
    import onnx

    model = _graph(encoder)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    probes = _probes(encoder)
    ours, theirs = encoder.encode(probes), run(path, probes)
    deviation = float(np.abs(ours - theirs).max() / np.abs(ours).max())
    if not deviation <= LARGEST_DEVIATION:
        raise OcularError(
            f"the exported encoder's latents deviate by {deviation:.2g} of the largest; allowed is "
            f"{LARGEST_DEVIATION:g}: onnxruntime computes something else"
        )
    return deviation


def run(path: Path, cells: Labels) -> Any:
    """Latents (n, dim) by onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"cells": cells})[0]


def _probes(encoder: ConvEncoder) -> Labels:
    """Footprints of one label each, in large patches, and in noise."""
    rng, labels = stream(0, "onnx"), len(encoder.labels)
    shape = encoder.geometry.angles, encoder.geometry.ranges
    uniform = [np.full(shape, label, np.uint8) for label in range(labels)]
    coarse = rng.integers(0, labels, (8, shape[0] // 8, shape[1] // 8), dtype=np.uint8)
    patches = coarse.repeat(8, axis=1).repeat(8, axis=2)
    return np.concatenate([uniform, patches, rng.integers(0, labels, (8, *shape), dtype=np.uint8)])


def _graph(encoder: ConvEncoder) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    arrays = encoder.to_arrays()
    arrays |= {"depth": np.array(len(encoder.labels)), "off_on": np.array([0, 1], np.float32)}
    nodes = [
        helper.make_node("Cast", ["cells"], ["numbers"], to=TensorProto.INT64),
        helper.make_node("OneHot", ["numbers", "depth", "off_on"], ["hidden0"], axis=1),
    ]
    for n in range(1, len(CHANNELS) + 1):
        weights = [f"hidden{n - 1}", f"kernel{n}", f"bias{n}"]
        nodes += [
            helper.make_node(
                "Conv", weights, [f"sum{n}"], kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1]
            ),
            helper.make_node("Relu", [f"sum{n}"], [f"hidden{n}"]),
        ]
    nodes += [
        helper.make_node("Flatten", [f"hidden{len(CHANNELS)}"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "projection", "offset"], ["latent"], transB=1),
    ]
    size: list[str | int | None] = ["n", encoder.geometry.angles, encoder.geometry.ranges]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("cells", TensorProto.UINT8, size)],
        [helper.make_tensor_value_info("latent", TensorProto.FLOAT, ["n", encoder.dim])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="ocular")
    model.ir_version = IR_VERSION
    return model
