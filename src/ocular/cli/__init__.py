"""The command line: one subcommand a use, one file a subcommand."""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from typing import Annotated, Any

import tyro

from ocular.cli.calibrate import Calibrate
from ocular.cli.collect import Collect
from ocular.cli.demo import Demo
from ocular.cli.diagnose import Diagnose
from ocular.cli.drive import Drive
from ocular.cli.evaluate import Evaluate
from ocular.cli.export import Export
from ocular.cli.import_logs import Import
from ocular.cli.inspect import Inspect
from ocular.cli.report import Report
from ocular.cli.reproduce import Reproduce
from ocular.cli.scene import WriteScene
from ocular.cli.stress import Stress
from ocular.errors import CalibrationWarning, OcularError

# In the order in which they are used: a robot's own logs, the simulated worlds, the paper.
COMMANDS: dict[str, tuple[Any, str]] = {
    "import": (
        tyro.conf.OmitArgPrefixes[Import],
        "Read logs into a transition store: arrays, ROS bags, Replicator folders.",
    ),
    "calibrate": (Calibrate, "Logs and a model in, one portable file and its account out."),
    "evaluate": (Evaluate, "Test a calibration on other logs, and show where it misses."),
    "inspect": (Inspect, "Print a calibration's cells in words."),
    "diagnose": (Diagnose, "What a calibration rests on: small cells, environments that disagree."),
    "export": (Export, "Write a calibration for other software: ONNX and plain arrays."),
    "collect": (Collect, "Log transitions in a simulated world."),
    "drive": (Drive, "Drive a simulated world with calibrations, with video if asked for."),
    "scene": (WriteScene, "Write a road of the camera world, to look at or to change."),
    "demo": (Demo, "The point of it all in a few minutes: a table, a video, a report."),
    "reproduce": (Reproduce, "Make the rows of the paper's tables; goes on where it stopped."),
    "stress": (Stress, "Measure what the monitor promises, and drives on ice unlike any logged."),
    "report": (Report, "Show all rows in one HTML file."),
}


def _any_command(*, brief: bool) -> Any:
    """The union of all commands; described by a line each, or at length by their own docstrings."""
    named: Any = Annotated
    kinds = [
        named[kind, tyro.conf.subcommand(name, description=line if brief else None)]
        for name, (kind, line) in COMMANDS.items()
    ]
    return functools.reduce(operator.or_, kinds)


Command: Any = _any_command(brief=False)

MANUAL = """
from logs to a verdict:
  ocular import bag yard.bag --store logs --environment yard ...
  ocular import bag hall.bag --store logs --environment hall ...    two places are the least to learn from
  ocular calibrate logs --model robot.toml -o robot.ocular
  ocular inspect robot.ocular --store logs            what it trusts, and where
  ocular evaluate robot.ocular elsewhere              does it hold in a new place?
  ocular export robot.ocular -o robot                 for software that has no ocular
without logs, try it on simulated ones: ocular collect --map S --store logs, and --model planar
in Python, on the robot:
  robot = ocular.Deployment.load("robot.ocular", alpha=0.1)
  answer = robot.query(state, action, footprint, heading)    # answer.region, .xi, .verdict

`ocular COMMAND --help` explains a command. Work that stops half way leaves no half file behind."""


def main() -> None:
    """Entry point: errors of ours are one line, not a traceback."""
    warnings.simplefilter("once", CalibrationWarning)
    wants_manual = sys.argv[1:] in ([], ["-h"], ["--help"])
    if not sys.argv[1:]:
        sys.argv.append("--help")
    try:
        command = tyro.cli(
            _any_command(brief=True) if wants_manual else Command,
            prog="ocular",
            description="Local conformal calibration of a robot's dynamics uncertainty from semantic images.",
        )
        command.run()
    except SystemExit:
        if wants_manual:
            print(MANUAL)
        raise
    except OcularError as error:
        sys.exit(f"ocular: {error}")
    except OSError as error:  # what the system refuses, where no message of ours came first
        sys.exit(f"ocular: {error}")
    except KeyboardInterrupt:
        sys.exit("ocular: stopped; run the same command again to go on")
