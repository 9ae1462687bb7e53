"""A robot in a TOML file: its model, and how well its state is known. Commands take it as `--model`.

kind = "differential_drive"   # or "unicycle", "double_integrator", "linear"; the rest are its parameters
dt = 0.5                      # [s]
wheel_radius = 0.3            # [m]
baseline = 1.08               # [m]
Q = [1e-3, 1e-3, 4e-3]        # a matrix: one number (times identity), its diagonal, or its rows
state_cov = 1e-4              # may be left out; covariance of the state estimate, a matrix too
"""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ocular.dynamics.base import GaussianModel
from ocular.dynamics.linear import LinearGaussian, double_integrator
from ocular.dynamics.stored import model_arrays
from ocular.dynamics.unicycle import Unicycle, differential_drive, unicycle
from ocular.errors import InputError, check_choice, check_covariance, check_path, check_shape, check_type
from ocular.records import Floats
from ocular.sealed import atomic_write_bytes


@dataclass(frozen=True)
class Robot:
    """What a model file says."""

    model: GaussianModel
    state_cov: Floats | None  # (d, d); None where the file leaves it out


def load_model(path: str | Path) -> GaussianModel:
    """The model in a TOML file."""
    return load_robot(path).model


def load_robot(path: str | Path) -> Robot:
    """The model in a TOML file, and the covariance of its state estimate if that is there too."""
    check_path("path", path)
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return _robot(table)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; allowed is a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not a TOML file: {error}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def save_robot(robot: Robot, path: str | Path) -> None:
    """Write a model file that `load_robot` reads back to the same numbers."""
    check_type("robot", robot, Robot)
    check_path("path", path)
    kind, arrays = model_arrays(robot.model)
    check_choice("a model file's kind", kind, KINDS)
    if robot.state_cov is not None:
        arrays["state_cov"] = robot.state_cov
    lines = [f"kind = {json.dumps(kind)}", *(f"{name} = {a.tolist()}" for name, a in arrays.items())]
    atomic_write_bytes(Path(path), ("\n".join(lines) + "\n").encode())


def _robot(table: Mapping[str, Any]) -> Robot:
    given = dict(table)
    kind, state_cov = given.pop("kind", None), given.pop("state_cov", None)
    check_choice("kind", kind, KINDS)
    make = KINDS[kind]
    known = inspect.signature(make).parameters
    for name in given:
        check_choice(f"a parameter of the kind {kind!r}", name, [*known, "state_cov"])
    missing = [n for n, p in known.items() if p.default is inspect.Parameter.empty and n not in given]
    if missing:
        raise InputError(f"the kind {kind!r} lacks {', '.join(missing)}; it takes {', '.join(known)}")
    model = make(**given)
    if state_cov is None:
        return Robot(model, None)
    state_cov = _square("state_cov", state_cov, model.state_dim)
    check_covariance("state_cov", state_cov)
    return Robot(model, state_cov)


def _double_integrator(dt: Any, slip: Any = 1.0, noise: Any = 0.1, floor: Any = 0.0) -> LinearGaussian:
    return double_integrator(
        _number("dt", dt),
        slip=_number("slip", slip),
        noise=_number("noise", noise),
        floor=_number("floor", floor),
    )


def _linear(A: Any, B: Any, Q: Any) -> LinearGaussian:
    A = _array("A", A)
    check_shape("A", A, (None, None))
    return LinearGaussian(A, _array("B", B), _square("Q", Q, len(A)))


def _unicycle(dt: Any, Q: Any, speed_gain: Any = 1.0, turn_gain: Any = 1.0, G: Any = None) -> Unicycle:
    dt, Q, speed, turn = _number("dt", dt), _square("Q", Q, 3), *_gains(speed_gain, turn_gain)
    if G is None:
        return unicycle(dt, Q, speed_gain=speed, turn_gain=turn)
    if (speed, turn) != (1.0, 1.0):
        raise InputError("G is given, and gains too; allowed is either: multiply G's rows by the gains")
    return Unicycle(dt, _array("G", G), Q)


def _differential_drive(
    dt: Any, Q: Any, wheel_radius: Any, baseline: Any, speed_gain: Any = 1.0, turn_gain: Any = 1.0
) -> Unicycle:
    speed, turn = _gains(speed_gain, turn_gain)
    return differential_drive(
        _number("dt", dt),
        _square("Q", Q, 3),
        wheel_radius=_number("wheel_radius", wheel_radius),
        baseline=_number("baseline", baseline),
        speed_gain=speed,
        turn_gain=turn,
    )


KINDS: dict[str, Callable[..., GaussianModel]] = {
    "double_integrator": _double_integrator,  # state (x, y, vx, vy), actions (ax, ay)
    "linear": _linear,  # any state: s' = A s + B a + N(0, Q)
    "unicycle": _unicycle,  # state (x, y, yaw), actions (speed, turn rate), or any with G
    "differential_drive": _differential_drive,  # state (x, y, yaw), actions (left, right wheel speed)
}


def _gains(speed: Any, turn: Any) -> tuple[float, float]:
    return _number("speed_gain", speed), _number("turn_gain", turn)


def _number(name: str, value: Any) -> float:
    array = _array(name, value)
    check_shape(name, array, ())
    return float(array)


def _square(name: str, value: Any, d: int) -> Floats:
    """A (d, d) matrix from one number, its diagonal, or its rows."""
    array = _array(name, value)
    if array.ndim == 0:
        return array * np.eye(d)
    if array.ndim == 1:
        check_shape(f"the diagonal of {name}", array, (d,))
        return np.diag(array)
    check_shape(name, array, (d, d))
    return array


def _array(name: str, value: Any) -> Floats:
    try:
        array = np.array(value)
        if array.dtype.kind in "iuf" and array.size:
            return array.astype(np.float64)
    except ValueError:  # rows of different lengths
        pass
    raise InputError(f"{name} is {value!r}; allowed are numbers, and lists of equally long lists of them")
