"""Keeps what a robot with a camera saw: for every control step of a drive, its images, footprint and map."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ocular.evaluation.episodes import Moment
from ocular.locks import make_folder
from ocular.sealed import atomic_write_bytes
from ocular.worlds.junction.junction import JunctionWorld
from ocular.worlds.junction.pictures import depth_png, labels_png, rgb_png, semantics_png


class Sightings:
    """Watches one drive and writes NNNN-rgb.png, -depth.png [mm], -semantics.png, -footprint.png, -map.png.

    Footprints have the leftmost bearing on top and the nearest range on the left; maps have north on top.
    What the numbers of their pixels mean is in sightings.json, with the poses.
    """

    def __init__(self, folder: Path, world: JunctionWorld) -> None:
        make_folder(folder)
        self._folder, self._world = folder, world
        self._poses: list[dict[str, object]] = []

    def __call__(self, moment: Moment) -> None:
        """Write one step."""
        position = moment.estimate[:2]
        images = self._world.eye.take(position, moment.heading)
        names = moment.belief.names
        pictures = {
            "rgb": rgb_png(self._world.eye.picture(position, moment.heading)),
            "depth": depth_png(images.depth),
            "semantics": semantics_png(images),
            "footprint": labels_png(moment.cells[::-1], names),
            "map": labels_png(moment.belief.labels[::-1], names),
        }
        for kind, data in pictures.items():
            atomic_write_bytes(self._folder / f"{moment.step:04d}-{kind}.png", data)
        self._poses.append(
            {
                "step": moment.step,
                "position": np.round(position, 6).tolist(),
                "heading": round(moment.heading, 6),
                "map_origin": list(moment.belief.origin),
            }
        )
        legend = {
            "classes": list(images.classes),
            "labels": list(names),
            "map_cell": moment.belief.resolution,
        }
        text = json.dumps({**legend, "steps": self._poses}, indent=1)
        atomic_write_bytes(self._folder / "sightings.json", text.encode())
