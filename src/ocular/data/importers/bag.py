"""ROS bags: odometry, commands and images, matched by time stamps and resampled to the model's time step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.data.importers import ros
from ocular.data.importers.bag_contents import Contents, Topics, look_through
from ocular.data.importers.base import Account, Importer, Recording, Steps, Target, check_exists
from ocular.data.importers.matching import Pairs, Resampling, match
from ocular.data.importers.seeing import Ids, Seer
from ocular.errors import DamagedFileError, InputError
from ocular.footprint import Camera
from ocular.records import Indices, Labels

MOST_TURNED = np.deg2rad(3.0)  # of a camera to the side or about its axis, which the projection does not know

_Key = tuple[str, int]  # a topic, and the place of one of its messages
_Image = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Bag(Resampling, Importer):
    """Import ROS bags: .bag files of ROS 1, folders of ROS 2. `ocular import topics BAG` suggests topics.

    Moments dt apart are laid over odometry, anew after each gap. A moment's state lies between the two
    messages around it, its action is the mean of the commands in force until the next moment, its view the
    depth image nearest to it with the label image nearest to that.
    """

    odometry_topic: str
    """nav_msgs/Odometry."""
    command_topic: str
    """geometry_msgs/Twist or TwistStamped."""
    depth_topic: str
    """sensor_msgs/Image, 32FC1 [m] or 16UC1 [mm], aligned with the labels."""
    label_topic: str
    """sensor_msgs/Image, 8UC1, mono8, 16UC1 or mono16: a class id each pixel; the class table names ids."""
    camera_topic: str
    """sensor_msgs/CameraInfo of the depth image."""
    camera_height: float | None = None
    """Of the camera over the ground [m]; unless told, from tf_static, over odometry's child frame."""
    camera_pitch: float | None = None
    """Of the camera downwards from the horizontal [deg]; unless told, from tf_static."""

    @property
    def topics(self) -> Topics:
        """By their roles."""
        return Topics(
            self.odometry_topic, self.command_topic, self.depth_topic, self.label_topic, self.camera_topic
        )

    def plan(self, path: Path, target: Target) -> Recording:
        """Read all but the images' pixels, and match."""
        check_exists(path)
        account = Account()
        with ros.open_bag(path) as bag:
            bag.check_topic("odometry_topic", self.odometry_topic, ros.ODOMETRY)
            bag.check_topic("command_topic", self.command_topic, ros.COMMANDS)
            bag.check_topic("depth_topic", self.depth_topic, ros.IMAGES)
            bag.check_topic("label_topic", self.label_topic, ros.IMAGES)
            bag.check_topic("camera_topic", self.camera_topic, ros.CAMERA_INFO)
            found = look_through(bag, self.topics, self.entries)
            camera = self._camera(bag, found, account)
        steps, pairs = match(self, found, camera.intrinsics, account)
        ids = np.flatnonzero(found.ids).tolist()
        account.note_classes(target.need_table(), [str(number) for number in ids])
        return _Imaged(path, self, target, steps, account, pairs, camera, ids)

    def _camera(self, bag: ros.Bag, found: Contents, account: Account) -> Camera:
        if found.lens is None or found.lens_changes:
            raise InputError(
                f"{bag.path}: {self.camera_topic} tells of {found.lens_changes + (found.lens is not None)} "
                "cameras, "
                "one after the other; allowed is one"
            )
        if found.bent:
            account.notes.append(
                "the lens bends lines (its distortion is not 0); images are taken for rectified"
            )
        height, pitch = self.camera_height, self.camera_pitch
        if height is None or pitch is None:
            mounted = _mounting(bag, found)
            height = mounted.height if height is None else height
            pitch = float(np.rad2deg(mounted.pitch)) if pitch is None else pitch
            account.notes.append(
                f"the camera is {height:.3f} m over {found.base_frame!r}, which is taken for the ground, "
                "pitched by "
                f"{pitch:.2f} deg, and {mounted.offset:.2f} m off to the side or ahead, which is not "
                "corrected for"
            )
        return Camera(found.lens, height, float(np.deg2rad(pitch)))


def _mounting(bag: ros.Bag, found: Contents) -> ros.Mounting:
    mounted = ros.mounting(bag, found.base_frame, found.camera_frame)
    if mounted is None:
        raise InputError(
            f"{bag.path} has no fixed transforms from {found.camera_frame!r} to {found.base_frame!r}; "
            "allowed then "
            "are a camera_height [m] and a camera_pitch [deg]"
        )
    if mounted.turned > MOST_TURNED:
        raise InputError(
            f"the camera {found.camera_frame!r} is turned by {np.rad2deg(mounted.turned):.1f} deg to the "
            "side or "
            f"about its axis; allowed are {np.rad2deg(MOST_TURNED):.1f}: it is to look ahead"
        )
    return mounted


class _Imaged(Recording):
    """A bag whose images are read a stretch at a time."""

    def __init__(
        self,
        path: Path,
        options: Bag,
        target: Target,
        steps: Steps,
        account: Account,
        pairs: Pairs,
        camera: Camera,
        ids: list[int],
    ) -> None:
        super().__init__(path, asdict(options), target, steps, account)
        self._depth_topic, self._label_topic = options.depth_topic, options.label_topic
        self._pairs, self._camera = pairs, camera
        self._ids, self._classes, self._seer = Ids(ids), [str(number) for number in ids], Seer(target)

    def look(self, views: Indices) -> list[Labels | str]:
        """Read on from the first image of these views to the last; project each pair once it is complete."""
        pairs = [
            ((self._depth_topic, int(self._pairs.depth[v])), (self._label_topic, int(self._pairs.label[v])))
            for v in views
        ]
        places = defaultdict[_Key, list[int]](list)
        for place, pair in enumerate(pairs):
            for key in pair:
                places[key].append(place)
        waiting = Counter({key: len(where) for key, where in places.items()})
        images, found = dict[_Key, _Image](), dict[int, Labels]()
        for new, image in self._images(views, places):
            images[new] = image
            for place in places[new]:
                if all(key in images for key in pairs[place]):
                    depth, ids = (images[key] for key in pairs[place])
                    labels = self._ids.index(ids)
                    found[place] = self._seer.footprint(self._camera, depth, labels, self._classes)
                    waiting.subtract(pairs[place])
                    for key in pairs[place]:
                        if not waiting[key]:
                            del images[key]
        if len(found) != len(views):
            raise DamagedFileError(
                f"{self.path} lacks images that it had when it was looked through; allowed is the same bag"
            )
        return [found[place] for place in range(len(views))]

    def _images(self, views: Indices, wanted: Container[_Key]) -> Iterator[tuple[_Key, _Image]]:
        """Wanted images as they come."""
        start, stop = self._pairs.received(views)
        place = {
            self._depth_topic: int(np.searchsorted(self._pairs.depth_received, start)),
            self._label_topic: int(np.searchsorted(self._pairs.label_received, start)),
        }
        with ros.open_bag(self.path) as bag:
            for message in bag.messages(tuple(place), start, stop + 1):
                key = (message.topic, place[message.topic])
                place[message.topic] += 1
                if key in wanted:
                    with ros.damage(self.path):
                        image = (
                            ros.metres(message.content)
                            if message.topic == self._depth_topic
                            else ros.pixels(message.content, ros.LABELS)
                        )
                    if not isinstance(image, str):
                        yield key, image
