"""What is read from ROS bags, of ROS 1 and 2 alike, by `rosbags`: no ROS is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.errors import DamagedFileError, InputError, OcularError
from ocular.footprint import Intrinsics
from ocular.records import Floats

ODOMETRY = ("nav_msgs/msg/Odometry",)
COMMANDS = ("geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped")
IMAGES = ("sensor_msgs/msg/Image",)
CAMERA_INFO = ("sensor_msgs/msg/CameraInfo",)
TRANSFORMS = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")

DEPTHS = {"32FC1": ("f4", 1.0), "16UC1": ("u2", 1e-3)}  # encoding -> dtype, metres a unit
LABELS = {"8UC1": ("u1", 1.0), "mono8": ("u1", 1.0), "16UC1": ("u2", 1.0), "mono16": ("u2", 1.0)}


@dataclass(frozen=True, slots=True)
class Message:
    """One message, and when it was received [ns]."""

    topic: str
    received: int
    content: Any


class Bag:
    """An opened bag."""

    def __init__(self, path: Path, reader: Any) -> None:
        self.path, self._reader = path, reader
        self.topics: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        for connection in reader.connections:
            self.topics[connection.topic] = connection.msgtype
        for name, topic in reader.topics.items():
            self.counts[name] = topic.msgcount

    @property
    def seconds(self) -> float:
        """How long it was recorded."""
        return max(0.0, float(self._reader.duration) * 1e-9)

    def check_topic(self, role: str, topic: str, types: Sequence[str]) -> None:
        """Raise unless there is such a topic, of one of these types."""
        if topic not in self.topics:
            fitting = [name for name, kind in self.topics.items() if kind in types]
            raise InputError(
                f"{self.path} has no topic {topic!r} for {role}; of the right type are "
                f"{', '.join(fitting) or 'none'}, in all there are {', '.join(self.topics) or 'none'}"
            )
        if self.topics[topic] not in types:
            raise InputError(
                f"{role}: the topic {topic} of {self.path} is of the type {self.topics[topic]}; allowed are "
                f"{', '.join(types)}"
            )

    def messages(
        self, topics: Sequence[str], start: int | None = None, stop: int | None = None
    ) -> Iterator[Message]:
        """Messages of these topics, as received from `start` until before `stop` [ns]."""
        connections = [each for each in self._reader.connections if each.topic in topics]
        if not connections:
            return
        with damage(self.path):
            for connection, received, data in self._reader.messages(connections, start=start, stop=stop):
                yield Message(connection.topic, received, self._reader.deserialize(data, connection.msgtype))


@contextmanager
def open_bag(path: Path) -> Iterator[Bag]:
    """A .bag file of ROS 1, or the directory of a bag of ROS 2."""
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise InputError("bags are read by rosbags, which is not installed: 'ocular[bags]'") from error
    with damage(path):
        for database in path.glob("*.db3") if path.is_dir() else ():
            _check_whole(database)
        reader = AnyReader([path], default_typestore=get_typestore(Stores.LATEST))
        reader.open()
    try:
        yield Bag(path, reader)
    finally:
        reader.close()


def _check_whole(database: Path) -> None:
    """Raise if pages are missing at the end of an SQLite file, which SQLite itself reads as zeros."""
    with open(database, "rb") as file:
        header = file.read(100)
    page = int.from_bytes(header[16:18], "big")
    wanted = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    trusted = header[24:28] == header[92:96]  # the number of pages is that of the last change
    if len(header) < 100 or (trusted and database.stat().st_size < wanted):
        raise DamagedFileError(
            f"cannot read {database}: it was cut to {database.stat().st_size} bytes; allowed is a whole bag, "
            f"of {wanted} bytes"
        )


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Whatever trips over the content of a bag tells of its damage: a codec, a database, a message of ours.

    A bag brings the definitions of its messages, so that even a message of a known type may lack its fields.
    """
    try:
        yield
    except OcularError:
        raise
    except Exception as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFileError(
            f"cannot read {path}: {what}; allowed is a whole bag (one that was cut short: rosbag reindex, or "
            "ros2 bag reindex)"
        ) from error


def stamp(content: Any) -> int:
    """What a message says of when it was made [ns]; 0 if it says nothing."""
    header = getattr(content, "header", None)
    return 0 if header is None else int(header.stamp.sec) * 10**9 + int(header.stamp.nanosec)


def pose_and_twist(content: Any) -> tuple[float, ...]:
    """x, y, yaw in the world; velocity ahead, to the left and turning, in the body."""
    position, turned = content.pose.pose.position, content.pose.pose.orientation
    norm = sum(
        part * part for part in (turned.x, turned.y, turned.z, turned.w)
    )  # ** would raise beyond 1e308
    if not abs(norm - 1.0) < 0.1:  # no rotation, not even one that was never set
        return (float("nan"),) * 6
    yaw = np.arctan2(2 * (turned.w * turned.z + turned.x * turned.y), norm - 2 * (turned.y**2 + turned.z**2))
    moving = content.twist.twist
    return position.x, position.y, float(yaw), moving.linear.x, moving.linear.y, moving.angular.z


def command(content: Any, entries: Sequence[str]) -> tuple[float, ...]:
    """Entries such as linear.x of a Twist, stamped or not."""
    twist = getattr(content, "twist", content)
    return tuple(float(getattr(getattr(twist, part), axis)) for part, axis in (e.split(".") for e in entries))


def pixels(content: Any, encodings: dict[str, tuple[str, float]]) -> npt.NDArray[Any] | str:
    """The image (height, width) in its own units, or why it cannot be read."""
    if content.encoding not in encodings:
        return f"the encoding {content.encoding!r}; allowed are {', '.join(encodings)}"
    dtype = np.dtype(encodings[content.encoding][0]).newbyteorder(">" if content.is_bigendian else "<")
    height, width, stride = int(content.height), int(content.width), int(content.step)
    if stride < width * dtype.itemsize or len(content.data) != height * stride or not height * width:
        return f"{len(content.data)} bytes for {height} rows of {stride}"
    rows = np.asarray(content.data, np.uint8).reshape(height, stride)[:, : width * dtype.itemsize]
    return np.ascontiguousarray(rows).view(dtype).astype(dtype.newbyteorder("="), copy=False)


def metres(content: Any) -> npt.NDArray[np.float32] | str:
    """A depth image [m], or why it cannot be read."""
    found = pixels(content, DEPTHS)
    if isinstance(found, str):
        return found
    scale = DEPTHS[content.encoding][1]
    return found if scale == 1.0 else found * np.float32(scale)


def intrinsics(content: Any) -> tuple[Intrinsics, bool]:
    """The pinhole of a CameraInfo, and whether it tells of a lens that bends lines.

    ROS counts from the centre of the first pixel, where we count from its corner.
    """
    matrix = np.asarray(content.K if hasattr(content, "K") else content.k, float).reshape(3, 3)
    bent = np.asarray(content.D if hasattr(content, "D") else content.d, float)
    pinhole = Intrinsics(
        width=int(content.width),
        height=int(content.height),
        fx=float(matrix[0, 0]),
        fy=float(matrix[1, 1]),
        cx=float(matrix[0, 2]) + 0.5,
        cy=float(matrix[1, 2]) + 0.5,
    )
    return pinhole, bool(np.any(bent != 0))


@dataclass(frozen=True, slots=True)
class Mounting:
    """How a camera stands on the robot."""

    height: float  # over the base frame [m]
    pitch: float  # downwards [rad]
    turned: float  # to the side, or about its axis, whichever is more [rad]
    offset: float  # from the base frame, along the ground [m]


def mounting(bag: Bag, base: str, camera: str) -> Mounting | None:
    """From the fixed transforms that lead from the camera (an optical frame) to the base, if they do."""
    parents: dict[str, tuple[str, Floats]] = {}
    topics = [name for name, kind in bag.topics.items() if kind in TRANSFORMS and name.endswith("tf_static")]
    with damage(bag.path):
        for message in bag.messages(topics):
            for each in message.content.transforms:
                parents[each.child_frame_id.strip("/")] = (
                    each.header.frame_id.strip("/"),
                    _matrix(each.transform),
                )
    pose, frame, seen = np.eye(4), camera.strip("/"), set[str]()
    while frame != base.strip("/"):
        if frame not in parents or frame in seen:
            return None
        seen.add(frame)
        frame, step = parents[frame]
        with np.errstate(over="ignore", invalid="ignore"):  # which no camera's height can be, as is said then
            pose = step @ pose
    right, ahead = pose[:3, 0], pose[:3, 2]
    return Mounting(
        height=float(pose[2, 3]),
        pitch=float(-np.arcsin(np.clip(ahead[2], -1, 1))),
        turned=float(max(abs(np.arctan2(ahead[1], ahead[0])), abs(np.arcsin(np.clip(right[2], -1, 1))))),
        offset=float(np.hypot(pose[0, 3], pose[1, 3])),
    )


def _matrix(transform: Any) -> Floats:
    q, t = transform.rotation, transform.translation
    norm = math.sqrt(sum(part * part for part in (q.x, q.y, q.z, q.w)))
    x, y, z, w = np.array([q.x, q.y, q.z, q.w]) / (norm if 0 < norm < math.inf else math.nan)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), t.x],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), t.y],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), t.z],
            [0, 0, 0, 1],
        ]
    )
