"""What a bag holds, and which of its topics an import would take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ocular.data.importers import ros
from ocular.data.importers.base import check_exists

# Role -> types, image encodings, and words that names of such topics have, the likeliest first.
_ROLES = {
    "odometry-topic": (ros.ODOMETRY, (), ("filtered", "odom")),
    "command-topic": (ros.COMMANDS, (), ("cmd", "command")),
    "depth-topic": (ros.IMAGES, tuple(ros.DEPTHS), ("aligned_depth", "depth")),
    "label-topic": (ros.IMAGES, tuple(ros.LABELS), ("semantic", "segment", "label", "class")),
    "camera-topic": (ros.CAMERA_INFO, (), ("depth", "camera_info")),
}


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic of a bag."""

    name: str
    type: str
    messages: int
    rate: float  # [1/s]
    encoding: str  # of the first image, or ""
    suggested: tuple[str, ...]  # roles that it is the likeliest for


def list_topics(path: Path) -> list[Topic]:
    """All topics, by name, and what each is likely good for."""
    check_exists(path)
    with ros.open_bag(path) as bag:
        encodings = {
            name: next((str(getattr(m.content, "encoding", "")) for m in bag.messages([name])), "")
            for name, kind in bag.topics.items()
            if kind in ros.IMAGES
        }
        chosen = suggest(bag.topics, encodings, bag.counts)
        return [
            Topic(
                name=name,
                type=kind,
                messages=bag.counts[name],
                rate=bag.counts[name] / bag.seconds if bag.seconds else 0.0,
                encoding=encodings.get(name, ""),
                suggested=tuple(role for role, topic in chosen.items() if topic == name),
            )
            for name, kind in sorted(bag.topics.items())
        ]


def suggest(topics: dict[str, str], encodings: dict[str, str], counts: dict[str, int]) -> dict[str, str]:
    """Role -> the topic of a fitting type and encoding whose name fits best; then the one that says most."""
    chosen: dict[str, str] = {}
    for role, (types, allowed, words) in _ROLES.items():
        fitting = [
            name
            for name, kind in topics.items()
            if kind in types
            and counts[name]
            and (not allowed or encodings.get(name) in allowed)
            and name not in chosen.values()
        ]
        if fitting:
            chosen[role] = max(
                fitting, key=lambda name: (*(word in name.lower() for word in words), counts[name])
            )
    return chosen
