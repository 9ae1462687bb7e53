"""`ocular export`: a calibration for software that is not ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Export:
    """Write a calibration as an ONNX encoder and plain arrays, with sixty lines of NumPy that read them.

    Needs the extra `export`. The ONNX encoder is run and compared before it counts as written; its latents
    differ in their last digits, those of the NumPy reader do not.
    """

    calibration: Annotated[Path, tyro.conf.Positional]
    """A file that `ocular calibrate` wrote."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The folder to make."""
    alpha: float = 0.1
    """The thresholds are of regions that hold the next state with probability 1 - alpha."""
    json: bool = False
    """Print what calibration.json says."""

    def run(self) -> None:
        """Write, and say what."""
        import json

        from ocular.calibrators import load
        from ocular.deployment.export import export
        from ocular.errors import check_probability

        check_probability("--alpha", self.alpha)
        about = export(load(self.calibration), self.output, self.alpha)
        if self.json:
            print(json.dumps(about))
            return
        print(f"{self.output}: {about['method']} at alpha = {about['alpha']:g}, {about['cells']} cells")
        if "onnx_deviation" in about:
            print(f"encoder.onnx: latents within {about['onnx_deviation']:.1g} of the library's")
        print("ocular_reader.py: needs NumPy alone; help is in its first line and in calibration.json")
