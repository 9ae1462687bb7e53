"""Approximate Gaussian models of a robot: anything that maps (mean, covariance, action) to a Gaussian."""

from ocular.dynamics.base import GaussianModel, StoredModel
from ocular.dynamics.fit import HeldOut, fit_linear, fit_unicycle, held_out
from ocular.dynamics.linear import LinearGaussian, double_integrator
from ocular.dynamics.model_file import Robot, load_model, load_robot, save_robot
from ocular.dynamics.stored import MODELS
from ocular.dynamics.unicycle import Unicycle, body_displacement, body_velocity, differential_drive, unicycle

__all__ = [
    "MODELS",
    "GaussianModel",
    "HeldOut",
    "LinearGaussian",
    "Robot",
    "StoredModel",
    "Unicycle",
    "body_displacement",
    "body_velocity",
    "differential_drive",
    "double_integrator",
    "fit_linear",
    "fit_unicycle",
    "held_out",
    "load_model",
    "load_robot",
    "save_robot",
    "unicycle",
]
