"""Local conformal calibration of a robot's dynamics uncertainty from semantic images.

Logs and a model in, a calibration out; ask it how far the model can be trusted where the robot is now::

    logs = ocular.TransitionStore.open("logs").load()
    calibration = ocular.ocular().fit(logs, model, state_cov, seed=0)
    ocular.save(calibration, "robot.ocular")

    region = ocular.load("robot.ocular").region(inputs, alpha=0.1)   # holds the next state with 90 %
    region.marginal((0, 1)).semi_axes()                              # its shadow on the ground

On the robot, one action at a time::

    robot = ocular.Deployment.load("robot.ocular", alpha=0.1)
    answer = robot.query(state, action, footprint, heading)          # answer.region, .xi, .ellipse, .verdict
"""

from importlib.metadata import version

from ocular.calibrators import (
    METHODS,
    Calibration,
    Calibrator,
    NoCP,
    SplitCP,
    load,
    lucca,
    ocular,
    ocular_no_encode,
    save,
)
from ocular.conformal import Region
from ocular.data import TransitionStore
from ocular.deployment import Answer, Deployment, Verdict
from ocular.dynamics import (
    GaussianModel,
    LinearGaussian,
    Unicycle,
    differential_drive,
    double_integrator,
    load_model,
    unicycle,
)
from ocular.encoding import ConvEncoder
from ocular.errors import CalibrationWarning, DamagedFileError, InputError, OcularError
from ocular.records import (
    FootprintGeometry,
    Footprints,
    Gaussian,
    Inputs,
    Transitions,
    concatenate,
)

__version__ = version("ocular")

__all__ = [
    "METHODS",
    "Answer",
    "Calibration",
    "CalibrationWarning",
    "Calibrator",
    "ConvEncoder",
    "DamagedFileError",
    "Deployment",
    "FootprintGeometry",
    "Footprints",
    "Gaussian",
    "GaussianModel",
    "InputError",
    "Inputs",
    "LinearGaussian",
    "NoCP",
    "OcularError",
    "Region",
    "SplitCP",
    "TransitionStore",
    "Transitions",
    "Unicycle",
    "Verdict",
    "concatenate",
    "differential_drive",
    "double_integrator",
    "load",
    "load_model",
    "lucca",
    "ocular",
    "ocular_no_encode",
    "save",
    "unicycle",
]
