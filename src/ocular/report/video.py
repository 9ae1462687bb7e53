"""Videos of drives: the ground as it is and as believed, plans and regions, speed and scale."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import imageio_ffmpeg
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ocular.errors import InputError
from ocular.footprint.grid import LabelGrid
from ocular.locks import make_folder
from ocular.records import UNKNOWN
from ocular.report.film import Film, Shot
from ocular.report.ground import extent, picture
from ocular.report.sight import Picture
from ocular.report.style import OUTCOME_MARKS, look
from ocular.sealed import replacing

PANEL = 5.2  # [inch], side of a map
STRIP = 1.5  # [inch], height of the curves below
IMAGES = 1.75  # [inch], height of what the cameras see, where there are cameras
LEGEND = (
    "light ground: the robot's own map · yellow: what it sees · thin lines: sampled plans · "
    "ellipses: regions along its plan · ring: next subgoal"
)
DOTS_PER_INCH = 100
FRAMES_A_SECOND = 20  # real time for a robot with 20 control steps a second
HOLD = 30  # frames, how long the end stays
ENDS = {"success": "arrived", "collision": "collided", "timeout": "ran out of time"}


def write_video(
    path: Path,
    films: Sequence[Film],
    ground: LabelGrid,
    period: float,
    on_progress: Callable[[str], None] = lambda what: None,
) -> None:
    """Films side by side as mp4, a picture a control step; `period` is the time between two of them [s]."""
    if not films or any(not film.shots for film in films):
        raise InputError(
            f"films of {[len(f.shots) for f in films]} control steps; allowed is at least one each"
        )
    make_folder(path.parent)
    with replacing(path) as file:
        encode(Path(file.name), frames(films, ground, period), on_progress)


def encode(path: Path, pictures: Iterator[Picture], on_progress: Callable[[str], None]) -> None:
    """Write pictures of one size as mp4."""
    first = next(pictures)
    size = f"{first.shape[1]}x{first.shape[0]}"
    source = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(FRAMES_A_SECOND), "-i", "-")
    video = ("-vcodec", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-f", "mp4")
    command = (imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-v", "error", *source, "-an", *video, str(path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        pipe = cast(IO[bytes], program.stdin)
        with suppress(BrokenPipeError):  # it has ended, and says below why
            for frame in itertools.chain([first], pictures):
                pipe.write(np.ascontiguousarray(frame).data)
                on_progress("")
        complaint = program.communicate()[1].decode(errors="replace").strip()
    if program.returncode:  # a full disk, say: what is there of the video would play, and stop early
        raise OSError(complaint.splitlines()[-1] if complaint else f"ffmpeg ended with {program.returncode}")


def count_frames(films: Sequence[Film]) -> int:
    """How many pictures a video has: one a control step, then the end for a while."""
    return max(len(film.shots) for film in films) + HOLD


def frames(films: Sequence[Film], ground: LabelGrid, period: float) -> Iterator[Picture]:
    """Pictures (height, width, 3), even in both directions as encoders want it."""
    stage = Stage(films, ground, period)
    longest = max(len(film.shots) for film in films)
    yield from (stage.draw(step) for step in range(longest))
    yield from itertools.repeat(stage.draw(longest), HOLD)


class Stage:
    """The picture of one moment: what stands still is drawn once, what moves is drawn over it."""

    def __init__(self, films: Sequence[Film], ground: LabelGrid, period: float) -> None:
        columns = max(2, len(films))
        x0, x1, y0, y1 = extent(ground)
        height = 0.88 * PANEL * (y1 - y0) / (x1 - x0) + 0.4  # axes are narrower than their panel
        seeing = any(film.look for film in films)
        parts = (height, IMAGES, STRIP) if seeing else (height, STRIP)
        size = (PANEL * columns, sum(parts) + 0.5)
        room = ConstrainedLayoutEngine(h_pad=0.08)  # [inch], so that no title touches the edge
        self._figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout=room)
        self._figure.supxlabel(LEGEND, fontsize=8.5, color="#444444")
        rows = self._figure.add_gridspec(len(parts), 1, height_ratios=parts)
        maps = rows[0].subgridspec(1, len(films)).subplots(squeeze=False)[0]
        curves = rows[-1].subgridspec(1, 2).subplots(squeeze=False)[0]
        self._period, self._films = period, films
        self._images = []
        if seeing:
            panels = rows[1].subgridspec(1, 3 * len(films)).subplots(squeeze=False)[0].reshape(-1, 3)
            self._images = [_Images(axes, film) for axes, film in zip(panels, films, strict=True)]
        self._views = [_View(axes, film, ground) for axes, film in zip(maps, films, strict=True)]
        self._curves = _Curves(curves, films, period)
        self._canvas = cast(Any, FigureCanvasAgg(self._figure))  # its functions bear no types
        self._canvas.draw()
        self._figure.set_layout_engine("none")
        self._still = self._canvas.copy_from_bbox(self._figure.bbox)

    def draw(self, step: int) -> Picture:
        """The picture at a control step; a drive that is over stands still."""
        self._canvas.restore_region(self._still)
        for view, film in zip(self._views, self._films, strict=True):
            view.show(min(step, len(film.shots) - 1), step >= len(film.shots), self._period)
        for images in self._images:
            images.show(step)
        self._curves.show(step)
        pixels = np.asarray(self._canvas.buffer_rgba(), np.uint8)[..., :3]
        return pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2].copy()


class _View:
    """One robot on its map."""

    def __init__(self, axes: Axes, film: Film, ground: LabelGrid) -> None:
        how = look(film.method)
        box = extent(ground)
        self._axes, self._film, self._colour = axes, film, how.colour
        self._way = np.array([shot.state[:2] for shot in film.shots])
        axes.imshow(picture(ground), extent=box, interpolation="nearest")
        self._belief = axes.imshow(np.zeros((1, 1, 4), np.uint8), extent=box, interpolation="nearest")
        self._seen: Any = axes.fill([], [], color="#f5c400", alpha=0.18, linewidth=0)[0]
        self._paths = LineCollection([], colors="#222222", linewidths=0.6, alpha=0.3)
        (self._trail,) = axes.plot([], [], color=how.colour, linewidth=2.0)
        (self._plan,) = axes.plot([], [], color=how.colour, linewidth=1.2, marker=".", markersize=3)
        (self._goal,) = axes.plot([], [], "o", color="none", markeredgecolor="#1a7f37", markersize=15, mew=2)
        (self._robot,) = axes.plot([], [], color="black", markersize=11, markeredgecolor="white")
        axes.add_collection(self._paths)
        box_style = {"boxstyle": "round", "facecolor": "white", "alpha": 0.85, "linewidth": 0}
        self._text = axes.text(0.98, 0.98, "", transform=axes.transAxes, ha="right", va="top", bbox=box_style)
        plans = (self._seen, self._paths, self._plan, self._goal)
        for artist in (self._belief, *plans, self._trail, self._robot, self._text):
            artist.set_animated(True)
        self._plans = plans
        axes.set_title(how.name, fontsize=14, fontweight="bold", color=how.colour)
        axes.set_xlim(box[0], box[1])
        axes.set_ylim(box[2], box[3])
        axes.set_aspect("equal")
        axes.set_xlabel("x [m]")
        axes.set_ylabel("y [m]")

    def show(self, index: int, over: bool, period: float) -> None:
        """Change what moves, and draw it."""
        shot, result = self._film.shots[index], self._film.result
        self._set_belief(shot.believed)
        self._seen.set_xy(shot.seen)
        self._paths.set_segments(list(shot.paths))
        self._plan.set_data(*shot.way.T)
        self._goal.set_data(*shot.goal[:, None])
        end = self._way[index] if result is None or not over else result.states[-1, :2]
        self._trail.set_data(*np.concatenate([self._way[: index + 1], end[None]]).T)
        self._robot.set_data(*end[:, None])
        self._robot.set_marker((3, 0, np.degrees(shot.heading) - 90))
        self._say(shot, over, period)
        plans = () if over else (*self._plans, self._regions(shot))
        for artist in (self._belief, *plans, self._trail, self._robot, self._text):
            self._axes.draw_artist(artist)

    def _say(self, shot: Shot, over: bool, period: float) -> None:
        result = self._film.result
        if over and result is not None:
            mark, colour = OUTCOME_MARKS[result.outcome]
            self._robot.set_marker(mark)
            self._robot.set_color(colour)
            self._text.set_color(colour)
            self._text.set_text(f"{ENDS[result.outcome]} after {result.steps * period:.1f} s")
            return
        scale = f"ξ = {shot.scale:.2f}" if np.isfinite(shot.scale) else "no uncertainty"
        self._text.set_text(f"{shot.step * period:.1f} s   {shot.speed:.2f} m/s   {scale}")

    def _set_belief(self, believed: LabelGrid) -> None:
        colours = picture(believed, believed=True)
        opaque = np.full((*colours.shape[:2], 1), 255, np.uint8)
        known = _known(believed, colours.shape[0])
        self._belief.set_data(np.concatenate([colours, opaque * known[..., None]], axis=-1))
        self._belief.set_extent(extent(believed))

    def _regions(self, shot: Shot) -> Any:
        """The regions along the plan; drawn and forgotten, since their number changes."""
        shapes = np.array(shot.ellipses).reshape(-1, 5)
        values, vectors = np.linalg.eigh(shapes[:, [2, 3, 3, 4]].reshape(-1, 2, 2))
        sides = 2 * np.sqrt(np.maximum(values, 0))
        ellipses = EllipseCollection(
            sides[:, 1],
            sides[:, 0],
            np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1])),
            units="xy",
            offsets=shapes[:, :2],
            offset_transform=self._axes.transData,
            facecolors="none",
            edgecolors=self._colour,
            linewidths=1.3,
        )
        ellipses.axes = self._axes
        cast(Any, ellipses).set_figure(self._axes.get_figure(root=True))
        ellipses.set_clip_path(self._axes.patch)
        return ellipses


def _known(grid: LabelGrid, rows: int) -> npt.NDArray[np.bool_]:
    """Which pixels of the grid's picture show something known."""
    step = -(-grid.labels.shape[0] // rows)
    return np.asarray(grid.labels[::step, ::step][::-1] != grid.index(UNKNOWN))


class _Images:
    """What one robot's camera shows: colour, depth, semantics."""

    def __init__(self, axes: Sequence[Axes], film: Film) -> None:
        self._film = film
        self._drawn = []
        for panel, (name, pixels) in zip(axes, self._pictures(0).items(), strict=True):
            self._drawn.append((panel, panel.imshow(pixels, animated=True)))
            panel.set_title(name, fontsize=9)
            panel.set_axis_off()

    def show(self, index: int) -> None:
        """Draw what is seen at a control step; the last of it when the drive is over."""
        index = min(index, len(self._film.shots) - 1)
        for (panel, drawn), pixels in zip(self._drawn, self._pictures(index).values(), strict=True):
            drawn.set_data(pixels)
            panel.draw_artist(drawn)

    def _pictures(self, index: int) -> dict[str, Picture]:
        sight = self._film.shots[index].sight
        return {} if sight is None else sight.pictures(self._film.geometry.max_range)


class _Curves:
    """Speed and scale of all films over time."""

    def __init__(self, axes: Sequence[Axes], films: Sequence[Film], period: float) -> None:
        self._period = period
        self._lines = []
        longest = max(len(film.shots) for film in films) * period
        for panel, (title, name) in zip(axes, (("speed [m/s]", "speed"), ("scale ξ", "scale")), strict=True):
            values = [np.array([getattr(shot, name) for shot in film.shots]) for film in films]
            for film, y in zip(films, values, strict=True):
                colour = look(film.method).colour
                panel.plot(np.arange(len(y)) * period, y, color=colour, linewidth=0.8, alpha=0.25)
                (line,) = panel.plot([], [], color=colour, linewidth=1.8, animated=True)
                self._lines.append((panel, line, y))
            highest = max([float(np.nanmax(y)) for y in values if np.isfinite(y).any()], default=1.0)
            panel.set_xlim(0, longest)
            panel.set_ylim(0, 1.08 * max(highest, 0.1))
            panel.set_xlabel("time [s]")
            panel.set_ylabel(title)
            panel.locator_params(axis="y", nbins=4)
            panel.grid(color="#e5e5e5", linewidth=0.6)

    def show(self, step: int) -> None:
        """Draw the curves up to this control step."""
        for panel, line, values in self._lines:
            shown = values[: step + 1]
            line.set_data(np.arange(len(shown)) * self._period, shown)
            panel.draw_artist(line)
