"""On the robot: one query after another from a loaded calibration, or its export to other software."""

from ocular.deployment.query import Answer, Deployment, Ellipse, Verdict

__all__ = ["Answer", "Deployment", "Ellipse", "Verdict"]
