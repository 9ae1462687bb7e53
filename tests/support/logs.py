"""A few steps of the camera world, as a robot would log them: bags, a Replicator folder, arrays."""

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image
from tests.support.bags import SECOND, Event, mounted

from ocular.footprint import Camera
from ocular.records import Transitions
from ocular.seeds import stream
from ocular.worlds.collect import GridSpec, collect_transitions
from ocular.worlds.junction import CAMERA, CLASSES, JunctionWorld, open_junction

DT = 0.2
EVERY = 10  # [s]; steps of a bag are this far apart, so that each is a stretch of its own


@dataclass(frozen=True)
class Logs:
    """Steps, and the images that were seen before each."""

    world: JunctionWorld
    steps: Transitions
    depths: np.ndarray  # (n, h, w) [m]
    semantics: np.ndarray  # (n, h, w), indices into classes
    classes: tuple[str, ...]

    def first(self, n: int) -> "Logs":
        """The first n steps."""
        steps = self.steps.take(np.arange(n))
        return replace(self, steps=steps, depths=self.depths[:n], semantics=self.semantics[:n])


def record(name: str = "icySide", steps: int = 200, camera: Camera = CAMERA) -> Logs:
    """Steps drawn from the grid of a road."""
    world = replace(open_junction(name), camera=camera)
    every = collect_transitions(world, GridSpec(8, 4, 4), stream(0, "logs"))
    chosen = every.take(np.sort(stream(0, "chosen").choice(len(every), steps, replace=False)))
    inputs = chosen.inputs
    images = [
        world.eye.take(state[:2], float(heading))
        for state, heading in zip(inputs.states, inputs.headings, strict=True)
    ]
    depths, semantics = (np.stack([getattr(i, kind) for i in images]) for kind in ("depth", "semantics"))
    return Logs(world, chosen, depths, semantics, images[0].classes)


def events_of(logs: Logs, rows=slice(None), *, millimetres: bool = False) -> list[Event]:
    """The messages of a bag: two of odometry, a command and two images a step."""
    camera = logs.world.camera
    inputs, events = logs.steps.inputs, [Event("camera", 0, camera), mounted(camera, 0)]
    for i in range(len(inputs))[rows]:
        time, yaw = (i + 1) * EVERY * SECOND, inputs.headings[i]
        for at, state in ((time, inputs.states[i]), (time + round(DT * SECOND), logs.steps.next_states[i])):
            ahead = state[2] * np.cos(yaw) + state[3] * np.sin(yaw)
            left = state[3] * np.cos(yaw) - state[2] * np.sin(yaw)
            events.append(Event("odometry", at, (state[0], state[1], yaw, ahead, left, 0.0)))
        events.append(Event("command", time, (*inputs.actions[i], 0.0)))
        depth = logs.depths[i]
        if millimetres:
            whole = np.where(np.isfinite(depth), np.round(1000 * depth), 0).astype(np.uint16)
            events.append(Event("depth", time, whole, "16UC1"))
        else:
            events.append(Event("depth", time, depth, "32FC1"))
        events.append(Event("label", time, logs.semantics[i], "8UC1"))
    return events


def write_replicator(folder: Path, logs: Logs, *, colours: bool = True, ranges: bool = False) -> Path:
    """What BasicWriter writes, and states.csv."""
    folder.mkdir()
    inputs = logs.steps.inputs
    rays = np.linalg.norm(logs.world.camera.rays, axis=-1)
    palette = np.array([[40 + 13 * i, 250 - 11 * i, 7 * i, 255] for i in range(len(logs.classes))], np.uint8)
    for i, (depth, kinds) in enumerate(zip(logs.depths, logs.semantics, strict=True)):
        name = "distance_to_camera" if ranges else "distance_to_image_plane"
        np.save(folder / f"{name}_{i:04d}.npy", (depth * rays if ranges else depth).astype(np.float32))
        pixels = palette[kinds] if colours else kinds.astype(np.uint16)
        Image.fromarray(pixels).save(folder / f"semantic_segmentation_{i:04d}.png")
        keys = [str(tuple(c.tolist())) if colours else str(k) for k, c in enumerate(palette)]
        labels = {key: {"class": name} for key, name in zip(keys, logs.classes, strict=True)}
        (folder / f"semantic_segmentation_labels_{i:04d}.json").write_text(json.dumps(labels))
        params = camera_params(logs.world.camera, inputs.states[i, :2], inputs.headings[i])
        (folder / f"camera_params_{i:04d}.json").write_text(json.dumps(params))
    names = ("x", "y", "vx", "vy")
    with open(folder / "states.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow([*names, "ax", "ay", *(f"next_{n}" for n in names), "heading", "frame"])
        for i in range(len(inputs)):
            row = [*inputs.states[i], *inputs.actions[i], *logs.steps.next_states[i], inputs.headings[i]]
            lines.writerow([*map(repr, map(float, row)), i])
    return folder


def camera_params(camera: Camera, position, heading) -> dict:
    """The world camera's entry of a frame: matrices for row vectors, the camera looking along -z."""
    cosine, sine = np.cos(heading), np.sin(heading)
    turn = np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]])  # robot's axes in the world
    down = camera.pitch
    ahead = np.array([np.cos(down), 0, -np.sin(down)]) @ turn
    right = np.array([0, -1.0, 0]) @ turn
    pose = np.eye(4)
    pose[:3, :3] = [right, np.cross(right, ahead), -ahead]
    pose[3, :3] = [*position, camera.height]
    lens = camera.intrinsics
    projection = np.zeros((4, 4))
    projection[0, 0], projection[1, 1] = 2 * lens.fx / lens.width, 2 * lens.fy / lens.height
    projection[2, 0], projection[2, 1] = 1 - 2 * lens.cx / lens.width, 2 * lens.cy / lens.height - 1
    projection[2, 3] = -1
    return {
        "cameraModel": "pinhole",
        "cameraProjection": projection.ravel().tolist(),
        "cameraViewTransform": np.linalg.inv(pose).ravel().tolist(),
        "metersPerSceneUnit": 1.0,
        "renderProductResolution": [lens.width, lens.height],
    }


def write_arrays(file: Path, logs: Logs, *, compressed: bool = False) -> Path:
    """All in one .npz."""
    inputs, lens = logs.steps.inputs, logs.world.camera.intrinsics
    (np.savez_compressed if compressed else np.savez)(
        file,
        states=inputs.states,
        actions=inputs.actions,
        next_states=logs.steps.next_states,
        headings=inputs.headings,
        depth=logs.depths,
        semantics=logs.semantics,
        classes=np.array(logs.classes),
        intrinsics=np.array([lens.fx, lens.fy, lens.cx, lens.cy]),
    )
    return file


def write_classes(file: Path, *, by_number: tuple[str, ...] = ()) -> Path:
    """The road's class table, by name or by the numbers that these classes have."""
    table = {str(i): CLASSES.label_of[name] for i, name in enumerate(by_number)} or CLASSES.label_of
    file.write_text("".join(f'"{name}" = "{label}"\n' for name, label in table.items()))
    return file
