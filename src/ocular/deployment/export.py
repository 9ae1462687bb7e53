"""A calibration as files that other software reads: ONNX for the encoder, plain arrays for all else.

calibration.json     what the arrays mean: method, alpha, labels, footprint geometry, names of the features
encoder.onnx         cells (n, angles, ranges) uint8 -> latent (n, dim) float32
encoder_*.npy        the same network: kernels (4, 4, in, out), projection (places, channels, dim)
tree_*.npy           feature and threshold of each node, its two children (a leaf is its own), its cell
thresholds.npy       of each cell at this alpha; infinite where too few points were logged
levels.npy           logged values of one feature, between which thresholds are raised
model_*.npy          what describes the model, such as the matrices of a linear one
state_cov.npy        the covariance of the state estimate that predictions start from
ocular_reader.py     sixty lines of NumPy that read all this and answer as the library does
checksums.txt        of all these files: `sha256sum --check checksums.txt`, or `check_export`
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.calibrators import Calibration
from ocular.deployment import onnx_encoder
from ocular.dynamics.stored import model_arrays, model_kind
from ocular.encoding import ConvEncoder
from ocular.encoding.kernels import CHANNELS
from ocular.errors import DamagedFileError, InputError
from ocular.locks import temporary_folder
from ocular.partition import TreePartition
from ocular.sealed import check_regular, sync_directory

CHECKSUMS = "checksums.txt"
READER = Path(__file__).with_name("ocular_reader.py")
Arrays = dict[str, npt.NDArray[Any]]


def export(calibration: Calibration, folder: str | Path, alpha: float | Fraction) -> dict[str, Any]:
    """Write a new folder, whole or not at all; what calibration.json says is returned."""
    folder = Path(folder).absolute()
    if folder.exists() or not folder.parent.is_dir():
        state = "exists" if folder.exists() else "would be in a directory that does not exist"
        raise InputError(f"cannot export to {folder}: it {state}; allowed is a new name in a directory")
    encoder = calibration.encoder
    if encoder is not None:
        onnx_encoder.require()
    arrays, about = _arrays(calibration, alpha), _about(calibration, alpha)
    try:
        with temporary_folder(folder) as temporary:
            for name, array in arrays.items():
                np.save(temporary / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
            if encoder is not None:
                about["onnx_deviation"] = onnx_encoder.write(encoder, temporary / "encoder.onnx")
            (temporary / "calibration.json").write_text(json.dumps(about, indent=1) + "\n")
            shutil.copyfile(READER, temporary / READER.name)
            (temporary / CHECKSUMS).write_text(_checksums(temporary))
            os.rename(temporary, folder)
        sync_directory(folder.parent)
    except OSError as error:
        raise InputError(
            f"cannot export to {folder}: {error.strerror or error}; allowed is a writable place"
        ) from error
    return about


def check_export(folder: str | Path) -> None:
    """Raise unless the folder holds the files that were exported, byte for byte, and no others."""
    folder = Path(folder)
    try:
        check_regular(folder / CHECKSUMS)
        said, found = (folder / CHECKSUMS).read_bytes(), _checksums(folder).encode()
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror}; allowed is an exported folder") from error
    if said != found:
        differing = sorted({*said.splitlines()} ^ {*found.splitlines()})
        raise DamagedFileError(
            f"{folder} is damaged: its {CHECKSUMS} and its files differ in {differing}; allowed are the "
            "files that were exported, unchanged"
        )


def _checksums(folder: Path) -> str:
    """A line for each file but the list itself, as sha256sum writes it."""
    lines = []
    for file in sorted(folder.iterdir()):
        if file.name != CHECKSUMS:
            check_regular(file)
            lines.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n")
    return "".join(lines)


def _about(calibration: Calibration, alpha: float | Fraction) -> dict[str, Any]:
    features, encoder, partition = calibration.features, calibration.encoder, calibration.partition
    about: dict[str, Any] = {
        "ocular": importlib.metadata.version("ocular"),
        "method": calibration.method,
        "model": model_kind(calibration.model),
        "alpha": float(alpha),
        "chi2": calibration.chi2(alpha),
        "features": None if features is None else features.name,
        "columns": [] if features is None else list(features.columns),
        "leveled": None if calibration.levels is None else calibration.levels.column,
        "depth": partition.depth if isinstance(partition, TreePartition) else 0,
        "cells": partition.n_cells,
        "provenance": dict(calibration.provenance),
    }
    if encoder is not None:
        geometry = encoder.geometry
        about["columns"] += [f"latent {k}" for k in range(encoder.dim)]
        about["labels"] = list(encoder.labels)
        about["geometry"] = {
            **{"angles": geometry.angles, "ranges": geometry.ranges},
            **{"field_of_view": geometry.field_of_view, "max_range": geometry.max_range},
        }
    return about


def _arrays(calibration: Calibration, alpha: float | Fraction) -> Arrays:
    model, partition = calibration.model, calibration.partition
    arrays: Arrays = {"thresholds": calibration.thresholds(alpha), "state_cov": calibration.state_cov}
    arrays |= {f"model_{name}": array for name, array in model_arrays(model)[1].items()}
    if isinstance(partition, TreePartition):
        arrays |= _tree(partition)
    else:
        arrays["tree_cell"] = np.zeros(1, np.int64)
    if calibration.levels is not None:
        arrays["levels"] = calibration.levels.values
    if calibration.encoder is not None:
        arrays |= _encoder(calibration.encoder)
    return arrays


def _tree(partition: TreePartition) -> Arrays:
    """Leaves lead to themselves, so that all rows take as many steps as the deepest needs."""
    nodes, leaf = np.arange(len(partition.left)), partition.left < 0
    children = [np.where(leaf, nodes, child) for child in (partition.left, partition.right)]
    return {
        "tree_feature": np.where(leaf, 0, partition.feature).astype(np.int64),
        "tree_threshold": partition.threshold,
        "tree_children": np.stack(children, axis=1).astype(np.int64),
        "tree_cell": partition.cell.astype(np.int64),
    }


def _encoder(encoder: ConvEncoder) -> Arrays:
    places = encoder.projection.shape[1] // CHANNELS[-1]
    projection = encoder.projection.reshape(encoder.dim, CHANNELS[-1], places).transpose(2, 1, 0)
    arrays: Arrays = {"encoder_projection": projection, "encoder_offset": encoder.offset}
    for n, (kernel, bias) in enumerate(zip(encoder.kernels, encoder.biases, strict=True), start=1):
        arrays |= {f"encoder_kernel{n}": kernel.transpose(2, 3, 1, 0), f"encoder_bias{n}": bias}
    return arrays
