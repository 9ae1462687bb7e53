"""The command line: one subcommand a use, one file a subcommand."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import tyro

from ocular.cli.calibrate import Calibrate
from ocular.cli.collect import Collect
from ocular.cli.demo import Demo
from ocular.cli.diagnose import Diagnose
from ocular.cli.drive import Drive
from ocular.cli.report import Report
from ocular.cli.reproduce import Reproduce
from ocular.cli.scene import WriteScene
from ocular.cli.stress import Stress
from ocular.errors import CalibrationWarning, OcularError

Command = (
    Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Calibrate, tyro.conf.subcommand("calibrate")]
    | Annotated[Drive, tyro.conf.subcommand("drive")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
    | Annotated[Stress, tyro.conf.subcommand("stress")]
    | Annotated[WriteScene, tyro.conf.subcommand("scene")]
)


def main() -> None:
    """Entry point: errors of ours are one line, not a traceback."""
    warnings.simplefilter("once", CalibrationWarning)
    try:
        command: Command = tyro.cli(
            Command,
            prog="ocular",
            description="Local conformal calibration of a robot's dynamics uncertainty from semantic images.",
        )
        command.run()
    except OcularError as error:
        sys.exit(f"ocular: {error}")
    except KeyboardInterrupt:
        sys.exit("ocular: stopped; run the same command again to go on")
