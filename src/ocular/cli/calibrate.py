"""`ocular calibrate`: logs in, one portable file out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Calibrate:
    """Calibrate a world's double integrator on a store of logs, into one portable file."""

    store: Annotated[Path, tyro.conf.Positional]
    """Directory of the transition store."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The file to write."""
    method: Literal["nocp", "splitcp", "lucca", "ocular", "ocular_no_encode"] = "ocular"
    """Which calibrator."""
    world: Literal["planar", "camera"] = "planar"
    """Where the logs are from: it decides the time step and the noise of the model."""
    without: tuple[str, ...] = ()
    """Parts of the store to leave out."""
    seed: int = 0
    """Seed of the split, the encoder and the tree."""

    def run(self) -> None:
        """Fit, save, and say what came of it."""
        import numpy as np

        from ocular.calibrators import METHODS, save
        from ocular.calibrators.ocular import train_encoder
        from ocular.data import TransitionStore
        from ocular.errors import check_choice
        from ocular.experiments.worlds import SETTINGS, open_map

        store = TransitionStore.open(self.store)
        for part in self.without:
            check_choice("--without", part, store.parts)
        logs = store.load([part for part in store.parts if part not in self.without])
        any_map = SETTINGS[self.world].site.maps[0]  # the nominal model does not depend on it
        _, truth = open_map(self.world, any_map)
        calibrator = METHODS[self.method].make(train_encoder)
        calibration = calibrator.fit(logs, truth.nominal, truth.state_cov, seed=self.seed)
        save(calibration, self.output)
        scales = calibration.scales(0.1)
        print(
            f"{self.output}: {self.method} on {len(logs):,} transitions of {', '.join(logs.environments)}; "
            f"{len(scales)} cells, at alpha = 0.1 xi from {np.min(scales):.2f} to {np.max(scales):.2f}"
        )
