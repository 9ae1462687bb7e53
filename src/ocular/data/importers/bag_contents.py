"""Everything of a bag but its images' pixels, in memory: what is needed to match its topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.data.importers import ros
from ocular.data.importers.base import tracked
from ocular.data.importers.seeing import mark_ids, new_marks
from ocular.data.importers.timeline import Stamps
from ocular.footprint import Intrinsics
from ocular.records import Floats


@dataclass(frozen=True, slots=True)
class Topics:
    """Which topic plays which role."""

    odometry: str
    command: str
    depth: str
    label: str
    camera: str


@dataclass(slots=True)
class Messages:
    """What one topic said."""

    received: list[int] = field(default_factory=list)  # [ns]
    made: list[int] = field(default_factory=list)  # [ns]
    values: list[Any] = field(default_factory=list)

    def add(self, message: ros.Message, value: Any) -> None:
        """One message."""
        self.received.append(message.received)
        self.made.append(ros.stamp(message.content))
        self.values.append(value)

    @property
    def stamps(self) -> Stamps:
        """As arrays."""
        return Stamps(np.array(self.received, np.int64), np.array(self.made, np.int64))

    def numbers(self, columns: int) -> Floats:
        """Values as an array (n, columns)."""
        return np.array(self.values, np.float64).reshape(len(self.values), columns)


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of an image without its pixels."""

    width: int
    height: int
    complaint: str  # why it cannot be read, or nothing


@dataclass(slots=True)
class Contents:
    """A bag, looked through."""

    odometry: Messages = field(default_factory=Messages)  # x, y, yaw; speeds ahead and to the left, yaw rate
    commands: Messages = field(default_factory=Messages)
    depths: Messages = field(default_factory=Messages)  # Pictures
    labels: Messages = field(default_factory=Messages)  # Pictures
    ids: npt.NDArray[np.bool_] = field(default_factory=new_marks)  # that label images hold
    lens: Intrinsics | None = None
    lens_changes: int = 0
    bent: bool = False
    base_frame: str = ""
    camera_frame: str = ""


def look_through(bag: ros.Bag, topics: Topics, entries: Sequence[str]) -> Contents:
    """Read a bag once."""
    found = Contents()
    roles = {getattr(topics, role): role for role in ("odometry", "command", "depth", "label", "camera")}
    total = sum(bag.counts[topic] for topic in roles)
    for message in tracked(bag.messages(list(roles)), f"looking through {bag.path.name}", total):
        with ros.damage(bag.path):
            _take(found, roles[message.topic], message, entries)
    return found


def _take(found: Contents, role: str, message: ros.Message, entries: Sequence[str]) -> None:
    """Add what a message of this role says."""
    content = message.content
    if role == "odometry":
        found.odometry.add(message, ros.pose_and_twist(content))
        found.base_frame = found.base_frame or content.child_frame_id
    elif role == "command":
        found.commands.add(message, ros.command(content, entries))
    elif role == "depth":
        found.depths.add(message, _picture(content, ros.pixels(content, ros.DEPTHS)))
    elif role == "label":
        image = ros.pixels(content, ros.LABELS)
        found.labels.add(message, _picture(content, image))
        if not isinstance(image, str):
            mark_ids(image.ravel(), found.ids)
    else:
        lens, bent = ros.intrinsics(content)
        found.lens_changes += found.lens not in (None, lens)
        found.lens, found.bent = lens, found.bent or bent
        found.camera_frame = found.camera_frame or content.header.frame_id


def _picture(content: Any, image: npt.NDArray[Any] | str) -> Picture:
    return Picture(content.width, content.height, image if isinstance(image, str) else "")
