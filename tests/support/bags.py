"""Writes ROS 1 and ROS 2 bags from a list of events that a test can spoil first."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from ocular.footprint import Camera

SECOND = 10**9
TOPICS = {
    "odometry": "/robot/odom",
    "command": "/robot/cmd_vel",
    "depth": "/camera/depth/image",
    "label": "/camera/semantic/image",
    "camera": "/camera/depth/camera_info",
    "tf": "/tf_static",
}


@dataclass(frozen=True)
class Event:
    """A message to be: its kind decides which."""

    kind: str  # odometry, command, stamped_command, depth, label, camera or tf
    time: int  # [ns]
    value: object
    encoding: str = ""
    received: int | None = None  # [ns]; as it was made, unless told
    topic: str | None = None

    @property
    def name(self) -> str:
        """Of its topic."""
        return self.topic or TOPICS[self.kind.removeprefix("stamped_")]

    @property
    def came(self) -> int:
        """When it was received [ns]."""
        return self.time if self.received is None else self.received

    def moved(self, by: int) -> "Event":
        """Received and made later."""
        return replace(self, time=self.time + by, received=self.came + by)


def write_bag(path: Path, events: list[Event], version: int, *, storage=StoragePlugin.SQLITE3) -> Path:
    """A .bag file (version 1), or a directory (2)."""
    messages = Messages(version)
    writer = Writer1(path) if version == 1 else Writer2(path, version=9, storage_plugin=storage)
    with writer:
        connections = {}
        for event in sorted(events, key=lambda event: event.came):
            kind, message = messages.of(event)
            if event.name not in connections:
                connections[event.name] = writer.add_connection(event.name, kind, typestore=messages.store)
            writer.write(connections[event.name], event.came, messages.bytes_of(message, kind))
    return path


class Messages:
    """Messages of one version of ROS."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.store = get_typestore(Stores.ROS1_NOETIC if version == 1 else Stores.ROS2_HUMBLE)
        if version == 1:
            transforms = "geometry_msgs/TransformStamped[] transforms"
            self.store.register(get_types_from_msg(transforms, "tf2_msgs/msg/TFMessage"))

    def bytes_of(self, message, kind: str) -> bytes:
        """As in the bag."""
        serialize = self.store.serialize_ros1 if self.version == 1 else self.store.serialize_cdr
        return bytes(serialize(message, kind))

    def make(self, kind: str, *fields):
        """A message, field by field."""
        package, name = kind.split("/")
        return self.store.types[f"{package}/msg/{name}"](*fields)

    def of(self, event: Event):
        """Its type, and the message."""
        return getattr(self, f"_{event.kind}")(event)

    def _header(self, event: Event, frame: str):
        stamp = self.make("builtin_interfaces/Time", event.time // SECOND, event.time % SECOND)
        return self.make("std_msgs/Header", *([0] if self.version == 1 else []), stamp, frame)

    def _vector(self, x=0.0, y=0.0, z=0.0):
        return self.make("geometry_msgs/Vector3", float(x), float(y), float(z))

    def _twist(self, ahead, left, rate):
        return self.make("geometry_msgs/Twist", self._vector(ahead, left), self._vector(z=rate))

    def _odometry(self, event: Event):
        x, y, yaw, ahead, left, rate = event.value
        turned = self.make("geometry_msgs/Quaternion", 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2))
        pose = self.make("geometry_msgs/Pose", self.make("geometry_msgs/Point", x, y, 0.0), turned)
        none = np.zeros(36)
        message = self.make(
            "nav_msgs/Odometry",
            self._header(event, "odom"),
            "base_link",
            self.make("geometry_msgs/PoseWithCovariance", pose, none),
            self.make("geometry_msgs/TwistWithCovariance", self._twist(ahead, left, rate), none),
        )
        return "nav_msgs/msg/Odometry", message

    def _command(self, event: Event):
        return "geometry_msgs/msg/Twist", self._twist(*event.value)

    def _stamped_command(self, event: Event):
        message = self.make(
            "geometry_msgs/TwistStamped", self._header(event, "base_link"), self._twist(*event.value)
        )
        return "geometry_msgs/msg/TwistStamped", message

    def _image(self, event: Event):
        pixels = np.ascontiguousarray(event.value)
        height, width = pixels.shape[:2]
        data = pixels.view(np.uint8).reshape(-1)
        big = int(pixels.dtype.byteorder == ">")
        message = self.make(
            "sensor_msgs/Image",
            self._header(event, "camera_optical"),
            *(height, width, event.encoding, big, len(data) // height, data),
        )
        return "sensor_msgs/msg/Image", message

    _depth = _label = _image

    def _camera(self, event: Event):
        lens = event.value.intrinsics
        matrix = np.array([[lens.fx, 0, lens.cx - 0.5], [0, lens.fy, lens.cy - 0.5], [0, 0, 1]])
        region = self.make("sensor_msgs/RegionOfInterest", 0, 0, 0, 0, False)
        message = self.make(
            "sensor_msgs/CameraInfo",
            self._header(event, "camera_optical"),
            *(lens.height, lens.width, "plumb_bob", np.zeros(5), matrix.ravel(), np.eye(3).ravel()),
            *(np.column_stack([matrix, np.zeros(3)]).ravel(), 0, 0, region),
        )
        return "sensor_msgs/msg/CameraInfo", message

    def _tf(self, event: Event):
        transforms = [
            self.make(
                "geometry_msgs/TransformStamped",
                self._header(event, parent),
                child,
                self.make(
                    "geometry_msgs/Transform",
                    self._vector(*offset),
                    self.make("geometry_msgs/Quaternion", *map(float, turned)),
                ),
            )
            for parent, child, offset, turned in event.value
        ]
        return "tf2_msgs/msg/TFMessage", self.make("tf2_msgs/TFMessage", transforms)


def mounted(camera: Camera, time: int) -> Event:
    """The transforms of a camera over base_link: its place and pitch, then the turn to an optical frame."""
    half = camera.pitch / 2
    link = ("base_link", "camera_link", (0.0, 0.0, camera.height), (0, np.sin(half), 0, np.cos(half)))
    optical = ("camera_link", "camera_optical", (0.0, 0.0, 0.0), (-0.5, 0.5, -0.5, 0.5))
    return Event("tf", time, [link, optical])
