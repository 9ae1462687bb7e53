"""A drive as a Rerun recording, to go through it step by step. Needs the extra `rerun`, loaded only here."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ocular.errors import InputError
from ocular.footprint.grid import LabelGrid
from ocular.locks import make_folder
from ocular.records import Floats
from ocular.report.film import Film, Shot
from ocular.report.ground import extent, label_colours, picture
from ocular.report.style import look

ELLIPSE_POINTS = 33
APPLICATION = "ocular"
CAMERA = {"rgb": "its camera", "depth": "depth [m]", "semantics": "semantics"}


def write_recording(
    path: Path,
    film: Film,
    ground: LabelGrid,
    period: float,
    on_progress: Callable[[str], None] = lambda what: None,
) -> None:
    """Map, belief, robot, plans, regions, footprint, speed and scale on one timeline, with a layout."""
    rr = rerun_or_error()
    make_folder(path.parent)
    unfinished = path.with_name(f".{path.stem}-{secrets.token_hex(4)}.rrd")
    try:
        stream = rr.RecordingStream(APPLICATION, recording_id=f"{film.method} {path.stem}")
        stream.save(str(unfinished), default_blueprint=_layout(ground, camera=film.look is not None))
        _log_still(rr, stream, film, ground)
        unit = max(ground.size) / 100  # [m], so that marks can be seen on any map
        for shot in film.shots:
            stream.set_time("time", duration=shot.step * period)
            _log_shot(rr, stream, shot, film, unit)
            on_progress("")
        stream.flush()
        stream.disconnect()
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def rerun_or_error() -> Any:
    """The module, or an error that tells how to get it."""
    try:
        import rerun
    except ImportError as error:
        raise InputError(
            "recordings need rerun, which is not installed; allowed is: pip install 'ocular[rerun]'"
        ) from error
    return rerun


def _layout(ground: LabelGrid, *, camera: bool) -> Any:
    """Ground and belief side by side, what a camera shows and the curves below."""
    import rerun.blueprint as rrb

    x0, x1, y0, y1 = extent(ground)
    bounds = rrb.VisualBounds2D(x_range=[x0, x1], y_range=[-y1, -y0])
    views = [rrb.Spatial2DView(origin=f"/camera/{k}", name=name) for k, name in CAMERA.items()]
    images = [rrb.Horizontal(*views)] if camera else []
    return rrb.Blueprint(
        rrb.Vertical(
            rrb.Horizontal(
                rrb.Spatial2DView(origin="/world", contents="/world/**", name="ground", visual_bounds=bounds),
                rrb.Spatial2DView(origin="/robot", contents="/robot/**", name="belief and plans"),
                rrb.Spatial2DView(origin="/footprint", name="what it sees"),
                column_shares=[2, 2, 1],
            ),
            *images,
            rrb.Horizontal(
                rrb.TimeSeriesView(origin="/speed", name="speed [m/s]"),
                rrb.TimeSeriesView(origin="/scale", name="scale ξ"),
            ),
            row_shares=[3, *([1.5] if camera else []), 1],
        ),
        collapse_panels=True,
    )


def _log_still(rr: Any, stream: Any, film: Film, ground: LabelGrid) -> None:
    """What does not change."""
    colour = look(film.method).colour
    stream.log("world/map", rr.Image(picture(ground)), static=True)
    stream.log("world/map", _image_frame(rr, ground, picture(ground).shape[1]), static=True)
    names = film.shots[0].believed.names
    colours = label_colours(names)
    classes = [rr.AnnotationInfo(i, names[i], colours[i]) for i in range(len(names))]
    for where in ("footprint", "camera/semantics"):
        stream.log(where, rr.AnnotationContext(classes), static=True)
    for name, title in (("speed", "speed [m/s]"), ("scale", "ξ")):
        stream.log(name, rr.SeriesLines(colors=[_rgb(colour)], names=[title], widths=[2]), static=True)


def _image_frame(rr: Any, grid: LabelGrid, pixels_across: int) -> Any:
    """Puts an image of a grid where the grid lies; y is drawn downwards, so it is counted negative."""
    x0, x1, _, y1 = extent(grid)
    side = (x1 - x0) / pixels_across
    return rr.Transform3D(translation=[x0, -y1, 0], scale=[side, side, 1])


def _within(grid: LabelGrid, frame: LabelGrid) -> LabelGrid:
    """The grid, enlarged to a later one of the same belief: viewers want all pictures to be of one size."""
    column, row = (round((a - b) / grid.resolution) for a, b in zip(grid.origin, frame.origin, strict=True))
    labels = np.full_like(frame.labels, grid.index(grid.outside))
    rows, columns = grid.labels.shape
    labels[row : row + rows, column : column + columns] = grid.labels
    return replace(frame, labels=labels)


def _log_shot(rr: Any, stream: Any, shot: Shot, film: Film, unit: float) -> None:
    """One control step."""
    colour = _rgb(look(film.method).colour)
    way = np.array([earlier.state[:2] for earlier in film.shots[: shot.step + 1]])
    nose = shot.state[:2] + 3 * unit * np.array([np.cos(shot.heading), np.sin(shot.heading)])
    belief = _within(shot.believed, film.shots[-1].believed)
    believed = picture(belief, believed=True)
    stream.log("robot/belief", rr.Image(believed).compress(), _image_frame(rr, belief, believed.shape[1]))
    stream.log("footprint", rr.SegmentationImage(np.flipud(shot.cells.T)))
    if shot.sight is not None:
        stream.log("camera/rgb", rr.Image(shot.sight.rgb).compress())
        depth = np.where(np.isfinite(shot.sight.depth), shot.sight.depth, 0)  # which it takes for unknown
        stream.log("camera/depth", rr.DepthImage(depth.astype(np.float32), meter=1.0))
        stream.log("camera/semantics", rr.SegmentationImage(shot.sight.labels))
    stream.log("speed", rr.Scalars(shot.speed))
    if np.isfinite(shot.scale):
        stream.log("scale", rr.Scalars(shot.scale))
    for where in ("world", "robot"):
        stream.log(f"{where}/way", rr.LineStrips2D([_down(way)], colors=[colour]))
        stream.log(
            f"{where}/robot", rr.LineStrips2D([_down(np.stack([shot.state[:2], nose]))], colors=[0, 0, 0])
        )
        stream.log(f"{where}/goal", rr.Points2D(_down(shot.goal[None]), colors=[26, 127, 55], radii=unit))
        rims = [_down(_rim(ellipse)) for ellipse in shot.ellipses]
        stream.log(f"{where}/regions", rr.LineStrips2D(rims, colors=[colour]))
    stream.log("robot/seen", rr.LineStrips2D([_down(shot.seen)], colors=[245, 196, 0]))
    stream.log("robot/plan", rr.LineStrips2D([_down(shot.way)], colors=[colour]))
    stream.log("robot/samples", rr.LineStrips2D([_down(path) for path in shot.paths], colors=[120, 120, 120]))


def _rim(ellipse: tuple[float, ...]) -> Floats:
    """Points on the rim of {p : (p - μ)ᵀ M⁻¹ (p - μ) <= 1}."""
    x, y, a, b, c = ellipse
    values, vectors = np.linalg.eigh(np.array([[a, b], [b, c]]))
    turn = np.linspace(0, 2 * np.pi, ELLIPSE_POINTS)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    root = vectors * np.sqrt(np.maximum(values, 0))
    return np.asarray((np.array([[x], [y]]) + root @ circle).T)


def _down(points: Floats) -> Floats:
    """Rerun's 2D views have y downwards."""
    return points * (1.0, -1.0)


def _rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
