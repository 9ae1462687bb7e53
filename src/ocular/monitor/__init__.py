"""Alarms for a calibration at work: has the world changed, is something new in view, and what to do then."""

from ocular.monitor.martingale import References, TestMartingale
from ocular.monitor.monitor import GROUNDS, Monitor, Reading, Step
from ocular.monitor.novelty import Novelty
from ocular.monitor.policy import Policy, Responses

__all__ = [
    "GROUNDS",
    "Monitor",
    "Novelty",
    "Policy",
    "Reading",
    "References",
    "Responses",
    "Step",
    "TestMartingale",
]
