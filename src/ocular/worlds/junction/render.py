"""The same camera by MuJoCo's own renderer, which needs OpenGL: what tests compare the ray casting with."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from ocular.errors import InputError
from ocular.footprint.camera import Camera
from ocular.records import Floats, Labels
from ocular.worlds.junction.raycast import Images, SceneModel


class RenderedCamera:
    """A camera that renders; use it in a `with` block. Without a display, set MUJOCO_GL=egl beforehand."""

    def __init__(self, model: SceneModel, camera: Camera, max_range: float) -> None:
        import mujoco

        width, height = camera.intrinsics.width, camera.intrinsics.height
        resolution = model.mujoco.cam_resolution[model.mujoco.camera("camera").id]
        if tuple(resolution) != (width, height):
            raise InputError(
                f"the scene's camera has {resolution[0]} x {resolution[1]} pixels; allowed are {width} x "
                f"{height}, those of the camera asked for: write the scene with it"
            )
        self.model, self.max_range = model, max_range
        self._lengths = np.linalg.norm(camera.rays, axis=-1)
        self._data = mujoco.MjData(model.mujoco)
        self._forward = mujoco.mj_forward
        self._renderer = mujoco.Renderer(model.mujoco, height, width)

    def __enter__(self) -> RenderedCamera:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._renderer.close()

    def take(self, position: Floats, heading: float) -> Images:
        """Depth and semantics from a robot at this position (2,) [m]."""
        self._place(position, heading)
        self._renderer.enable_depth_rendering()
        depth = np.array(self._renderer.render(), np.float32)
        self._renderer.disable_depth_rendering()
        self._renderer.enable_segmentation_rendering()
        geom = np.array(self._renderer.render()[..., 0], np.int64)
        self._renderer.disable_segmentation_rendering()
        depth[(geom < 0) | (depth * self._lengths > self.max_range)] = np.inf
        return Images(depth, self.model.class_of_geom[geom], self.model.classes)

    def picture(self, position: Floats, heading: float) -> Labels:
        """Colours (height, width, 3), for people to look at."""
        self._place(position, heading)
        return np.array(self._renderer.render(), np.uint8)

    def _place(self, position: Floats, heading: float) -> None:
        self._data.mocap_pos[0] = *position, 0.0
        self._data.mocap_quat[0] = np.cos(heading / 2), 0.0, 0.0, np.sin(heading / 2)
        self._forward(self.model.mujoco, self._data)
        self._renderer.update_scene(self._data, "camera")
