"""A calibration as one portable file. Loading it runs no code and notices any changed byte."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np

from ocular.calibrators.calibration import Calibration
from ocular.calibrators.features import features
from ocular.calibrators.levels import Levels
from ocular.conformal import CellScores
from ocular.dynamics.stored import model_arrays, model_from_arrays
from ocular.encoding import ConvEncoder
from ocular.errors import InputError, check_covariance, check_path, check_shape, check_type, check_whole
from ocular.partition import Partition, TreePartition, WholeSpace
from ocular.records import FootprintGeometry
from ocular.sealed import Arrays, Sealed, only, read_sealed, sound_content, take, write_sealed

KIND = "calibration"
VERSION = 4  # 2 added levels, 3 models that are not linear, 4 the number of scores
_FIELDS = {"method", "features", "fallback", "provenance", "tree_features", "encoder"}
_LATER_FIELDS = {"leveled", "model", "points"}
LINEAR = "linear"  # the model of files that name none
_TREE_ARRAYS = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "cell": np.int32,
}
_ENCODER_ARRAYS = ("kernel1", "kernel2", "kernel3", "bias1", "bias2", "bias3", "projection", "offset")


def save(calibration: Calibration, path: str | Path) -> None:
    """Write the calibration; the same calibration gives the same bytes."""
    check_type("calibration", calibration, Calibration)
    check_path("path", path)
    partition, encoder = calibration.partition, calibration.encoder
    kind, of_model = model_arrays(calibration.model)
    arrays: Arrays = {f"model.{name}": array for name, array in of_model.items()}
    arrays["state_cov"] = calibration.state_cov
    manifest: dict[str, Any] = {
        "method": calibration.method,
        "model": kind,
        "features": calibration.features.name if calibration.features else None,
        "fallback": calibration.fallback,
        "points": 0 if calibration.scores is None else len(calibration.scores.scores),
        "provenance": {**calibration.provenance, "ocular": importlib.metadata.version("ocular")},
        "tree_features": None,
        "leveled": None,
        "encoder": None,
    }
    if isinstance(partition, TreePartition):
        manifest["tree_features"] = partition.n_features
        arrays |= {f"tree.{name}": getattr(partition, name) for name in _TREE_ARRAYS}
    if calibration.levels is not None:
        manifest["leveled"] = calibration.levels.column
        arrays["levels"] = calibration.levels.values
    if encoder is not None:
        geometry = encoder.geometry
        manifest["encoder"] = {
            "labels": list(encoder.labels),
            "angles": geometry.angles,
            "ranges": geometry.ranges,
            "field_of_view": geometry.field_of_view,
            "max_range": geometry.max_range,
        }
        arrays |= {f"encoder.{name}": array for name, array in encoder.to_arrays().items()}
    if calibration.scores is not None:
        arrays |= {"scores": calibration.scores.scores, "offsets": calibration.scores.offsets}
    write_sealed(path, kind=KIND, version=VERSION, manifest=manifest, arrays=arrays)


def load(path: str | Path) -> Calibration:
    """Read a calibration back."""
    check_path("path", path)
    sealed = read_sealed(path, kind=KIND, version=VERSION)
    with sound_content(path, "calibration"):
        return _rebuild(sealed)


def _rebuild(sealed: Sealed) -> Calibration:
    manifest, arrays = sealed.manifest, dict(sealed.arrays)
    _check_fields(manifest, sealed.version)
    of_model, of_tree, of_encoder = (_pop(arrays, f"{part}.") for part in ("model", "tree", "encoder"))
    leveled, encoder, method = manifest.get("leveled"), manifest["encoder"], manifest["method"]
    has_scores = "scores" in arrays
    dtypes: dict[str, type] = {"state_cov": np.float64}
    dtypes |= {"scores": np.float64, "offsets": np.int64} if has_scores else {}
    dtypes |= {} if leveled is None else {"levels": np.float64}
    arrays = take(arrays, dtypes)
    model = model_from_arrays(
        manifest.get("model", LINEAR), take(of_model, dict.fromkeys(of_model, np.float64))
    )
    dims = model.state_dim, model.action_dim
    check_shape("state_cov", arrays["state_cov"], (dims[0], dims[0]))
    check_covariance("state_cov", arrays["state_cov"])
    if not isinstance(method, str) or not isinstance(manifest["fallback"], bool):
        raise InputError(
            f"method is {method!r} and fallback {manifest['fallback']!r}; allowed are a text, and true or "
            "false"
        )
    calibration = Calibration(
        method=method,
        model=model,
        state_cov=arrays["state_cov"],
        features=None if manifest["features"] is None else features(manifest["features"], *dims),
        encoder=None if encoder is None else _encoder(encoder, of_encoder),
        partition=_partition(manifest["tree_features"], of_tree),
        scores=CellScores(arrays["scores"], arrays["offsets"]) if has_scores else None,
        levels=None if leveled is None else Levels(leveled, arrays["levels"]),
        fallback=manifest["fallback"],
        provenance={k: v for k, v in manifest["provenance"].items() if k != "ocular"},
    )
    _check_agreement(calibration, manifest.get("points"), {} if encoder else of_encoder)
    return calibration


def _check_fields(manifest: dict[str, Any], version: int) -> None:
    wanted = (
        _FIELDS | _LATER_FIELDS if version == VERSION else _FIELDS | manifest.keys() & {"leveled", "model"}
    )
    only(manifest, *wanted)


def _partition(n_features: object, arrays: Arrays) -> Partition:
    if n_features is None:
        take(arrays, {})
        return WholeSpace()
    check_whole("tree_features", n_features, least=1)
    return TreePartition(n_features=n_features, **take(arrays, _TREE_ARRAYS))  # type: ignore[arg-type]


def _check_agreement(calibration: Calibration, points: object, unused: Arrays) -> None:
    """Raise where the parts, each sound on its own, are not of one calibration."""
    take(unused, {})
    partition, scores, levels = calibration.partition, calibration.scores, calibration.levels
    columns = len(calibration.features.columns) if calibration.features else 0
    width = columns + (calibration.encoder.dim if calibration.encoder else 0)
    if isinstance(partition, TreePartition) and (scores is None or partition.n_features != width):
        raise InputError(
            f"a tree over {partition.n_features} features, {'no' if scores is None else 'and'} scores; "
            f"allowed are a tree over the {width} that features and encoder make, and scores"
        )
    if scores is not None and len(scores.counts) != partition.n_cells:
        raise InputError(f"{len(scores.counts)} cells of scores; allowed are {partition.n_cells}")
    if points is not None:  # files of earlier versions do not say
        check_whole("points", points, least=0)
        found = 0 if scores is None else len(scores.scores)
        if points != found:
            raise InputError(f"points is {points}; allowed is the number of scores: {found}")
    if levels is not None and levels.column >= columns:
        raise InputError(f"levels of column {levels.column}; allowed are the {columns} features' columns")


def _encoder(description: dict[str, Any], arrays: Arrays) -> ConvEncoder:
    names = ("angles", "ranges", "field_of_view", "max_range")
    geometry = FootprintGeometry(**{name: description[name] for name in names})
    return ConvEncoder.from_arrays(
        take(arrays, dict.fromkeys(_ENCODER_ARRAYS, np.float32)),
        labels=tuple(description["labels"]),
        geometry=geometry,
    )


def _pop(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin so, without that beginning; they leave the rest."""
    return {name.removeprefix(prefix): arrays.pop(name) for name in [*arrays] if name.startswith(prefix)}
