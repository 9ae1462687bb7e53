"""A method looks the same everywhere, and like no other: also to somebody who is colour-blind."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from ocular.report.figures.leaves import SURROUNDINGS
from ocular.report.style import METHOD_LOOKS, SPEED_COLOURS, in_order, look

SOURCES = Path(__file__).parents[3] / "src" / "ocular" / "report"

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# Ottosson's OKLab, in which equal distances look about equally large; 0.02 can just be told apart.
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(colour: str):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    return np.cbrt(TO_CONES @ rgb) @ TO_LAB.T


def apart(first: str, second: str, vision: str) -> float:
    seen = [oklab(np.clip(VISIONS[vision] @ linear(c), 0, 1)) for c in (first, second)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def test_the_simulation_finds_red_and_green_that_are_hard_to_tell_apart():
    assert apart("#a05000", "#6a6a00", "normal") > 2 * apart("#a05000", "#6a6a00", "deuteranopia")


@pytest.mark.parametrize("vision", VISIONS)
def test_any_two_methods_can_be_told_apart(vision):
    for first, second in itertools.combinations(METHOD_LOOKS.values(), 2):
        assert apart(first.colour, second.colour, vision) > 0.1, (first.name, second.name)


@pytest.mark.parametrize("vision", VISIONS)
def test_surroundings_can_be_told_apart(vision):
    for (_, mark, first), (_, other, second) in itertools.combinations(SURROUNDINGS.values(), 2):
        assert apart(first, second, vision) > (0.1 if mark == other else 0.05)


@pytest.mark.parametrize("vision", VISIONS)
def test_speed_gets_lighter_all_the_way(vision):
    lightness = [oklab(np.clip(VISIONS[vision] @ linear(c), 0, 1))[0] for c in SPEED_COLOURS]
    assert (np.diff(lightness) > 0).all()


def test_methods_are_seen_on_white_and_on_black():
    for how in METHOD_LOOKS.values():
        luminance = float(np.array([0.2126, 0.7152, 0.0722]) @ linear(how.colour))
        on_white, on_black = 1.05 / (luminance + 0.05), (luminance + 0.05) / (0.0085 + 0.05)
        assert min(on_white, on_black) > 2.5, how.name


def test_nothing_but_colour_is_shared():
    looks = list(METHOD_LOOKS.values())
    for attribute in ("colour", "dash", "dashes", "marker", "name", "short"):
        assert len({getattr(how, attribute) for how in looks}) == len(looks), attribute


def test_no_other_file_knows_a_methods_colour():
    for path in SOURCES.rglob("*"):
        if path.suffix in (".py", ".js", ".css", ".html") and path.name != "style.py":
            text = path.read_text()
            for how in METHOD_LOOKS.values():
                if path.suffix != ".css":  # the page's accent is OCULAR's
                    assert how.colour not in text, (path.name, how.name)


def test_a_method_of_ones_own_is_shown_after_the_papers():
    assert in_order(["mine", "ocular", "nocp"]) == ["nocp", "ocular", "mine"]
    assert look("mine").name == "mine"
