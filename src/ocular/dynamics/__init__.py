"""Approximate Gaussian models of a robot: anything that maps (mean, covariance, action) to a Gaussian."""

from ocular.dynamics.base import GaussianModel
from ocular.dynamics.linear import LinearGaussian, double_integrator

__all__ = ["GaussianModel", "LinearGaussian", "double_integrator"]
