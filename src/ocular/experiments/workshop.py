"""What the experiments of one world share: settings, logged transitions, one calibration a method and map."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from ocular.calibrators import METHODS, Calibration, EncoderSource, LocalCalibrator, load, save
from ocular.data import TransitionStore
from ocular.encoding import ConvEncoder, Sights, TrainingSettings
from ocular.encoding.settings import CHECKPOINT_KIND, CHECKPOINT_VERSION
from ocular.locks import make_folder, sole_writer
from ocular.planning.belief import BeliefMap
from ocular.planning.mppi import PlannerSettings
from ocular.records import FootprintGeometry, Transitions
from ocular.sealed import read_sealed, sound_content
from ocular.seeds import stream
from ocular.worlds.collect import CALIBRATION_GRID, TEST_GRID, GridSpec, collect_transitions
from ocular.worlds.map_file import PLANAR_LABELS
from ocular.worlds.planar import PlanarWorld

OTHER_FRAME = {"body": "world", "world": "body"}


@dataclass(frozen=True)
class Site:
    """One of the paper's worlds: its maps, what is tested there, and how robots plan on them."""

    name: str
    maps: tuple[str, ...]
    open: Callable[[str, float], PlanarWorld]  # a map's world, by name and slip factor
    geometry: FootprintGeometry
    belief: Callable[[PlanarWorld], BeliefMap]  # a robot's map, still empty
    test_grid: GridSpec = TEST_GRID
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    reach: float = 0.3  # [m], a subgoal this near counts as reached
    rounding: dict[str, Any] = field(default_factory=dict)  # of poses in a latent field


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """Everything that the calibrations of one world depend on; the defaults are the paper's."""

    site: ClassVar[Site]

    alpha: float = 0.1
    slip: float = 1.3
    grid: GridSpec = CALIBRATION_GRID
    training: TrainingSettings = field(default_factory=TrainingSettings)
    other_frame: bool = False  # OCULAR in the paper's world frame, its blind ablation in the body frame
    seed: int = 0  # of everything: logs, split, encoder, tree

    def config(self) -> dict[str, Any]:
        """The settings as plain values, for provenance."""
        return asdict(self)

    def fingerprint(self) -> str:
        """A name for these settings, less the frame and alpha, which change no data and no encoder."""
        text = json.dumps({**self.config(), "other_frame": None, "alpha": None}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def world(self, map_name: str) -> PlanarWorld:
        """The true world on one map."""
        return self.site.open(map_name, self.slip)

    def data_for(self, map_name: str, method: str) -> tuple[str, ...]:
        """The maps whose logs a method may see before it is tested on `map_name`."""
        if METHODS[method].needs_test_map:
            return (map_name,)
        return tuple(other for other in self.site.maps if other != map_name)


@dataclass(frozen=True, slots=True)
class Workshop:
    """A folder of intermediate results for one choice of settings; whatever is there is not made again."""

    folder: Path
    settings: CalibrationSettings

    @classmethod
    def under(cls, parent: Path, settings: CalibrationSettings) -> Workshop:
        """The folder that belongs to these settings, made when needed; a cluster's workers find it, too."""
        folder = parent.absolute() / f"{settings.site.name}-{settings.fingerprint()}"
        for name in ("encoders", "calibrations"):
            make_folder(folder / name)
        return cls(folder, settings)

    def collect(self, map_name: str) -> None:
        """Log this map's calibration grid, unless it is in the store already."""
        path = self.folder / "transitions"
        if path.exists() and map_name in TransitionStore.open(path).parts:
            return
        with sole_writer(path, wait=True):
            if path.exists():
                store = TransitionStore.open(path)
            else:
                store = TransitionStore.create(path, PLANAR_LABELS, self.settings.site.geometry, 4, 2)
            if map_name not in store.parts:
                rng = stream(self.settings.seed, self.settings.site.name, map_name, "transitions")
                truth = self.settings.world(map_name)
                store.append(map_name, collect_transitions(truth, self.settings.grid, rng))

    def transitions(self, map_names: tuple[str, ...]) -> Transitions:
        """The logged transitions of these maps."""
        return TransitionStore.open(self.folder / "transitions").load(map_names)

    def calibration(self, map_name: str, method: str) -> Calibration:
        """The calibration that `method` uses on this map, fitted now if it is not there yet.

        Where another process fits it, we wait: two trainings would write over each other's checkpoint.
        """
        path = self._calibration(map_name, method)
        if not path.exists():
            with sole_writer(path, wait=True):
                if not path.exists():
                    save(self._fit(map_name, method), path)
        return load(path)

    def fitted(self, map_name: str, method: str) -> bool:
        """Whether the calibration is there."""
        return self._calibration(map_name, method).exists()

    def _calibration(self, map_name: str, method: str) -> Path:
        frame = "-other-frame" if self.settings.other_frame else ""
        return self.folder / "calibrations" / f"{map_name}-{method}{frame}.ocular"

    def _fit(self, map_name: str, method: str) -> Calibration:
        calibrator = METHODS[method].make(self._encoder_source(map_name, method))
        if isinstance(calibrator, LocalCalibrator) and self.settings.other_frame:
            calibrator = replace(calibrator, features=OTHER_FRAME[calibrator.features])
        truth = self.settings.world(map_name)
        fitted = calibrator.fit(
            self.transitions(self.settings.data_for(map_name, method)),
            truth.nominal,
            truth.state_cov,
            seed=self.settings.seed,
        )
        return replace(fitted, method=method)

    def training(self, map_name: str, method: str) -> dict[str, Any] | None:
        """How this method's encoder came out, judged on footprints held out; nothing where it has none."""
        path = self._checkpoint(map_name, method)
        if not path.exists():
            return None
        state = read_sealed(path, kind=CHECKPOINT_KIND, version=CHECKPOINT_VERSION).manifest
        with sound_content(path, CHECKPOINT_KIND):
            return {
                "epochs": state["epoch"],
                "best_epoch": state["best_epoch"],
                "held_out_loss": state["best_score"]["loss"],
                "held_out_accuracy": state["best_score"]["accuracy"],
                "seconds": state["seconds"],
            }

    def _checkpoint(self, map_name: str, method: str) -> Path:
        return self.folder / "encoders" / f"{map_name}-{method}.sealed"

    def _encoder_source(self, map_name: str, method: str) -> EncoderSource:
        checkpoint = self._checkpoint(map_name, method)

        def source(footprints: Sights, seed: int) -> ConvEncoder:
            from ocular.encoding.training import train  # loads torch, which most processes never need

            return train(footprints, self.settings.training, seed, checkpoint=checkpoint)[0]

        return source
