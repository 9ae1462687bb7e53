import numpy as np
import pytest
from PIL import Image

from ocular.errors import DamagedFileError, InputError
from ocular.worlds import load_map, map_file, packaged_maps

ROOM = """
size = [2.0, 1.0]
resolution = 0.1
[[free]]
x = [0.1, 1.9]
y = [0.1, 0.9]
[[slippery]]
x = [1.0, 2.0]
y = [0.0, 1.0]
"""
LEGEND = """
image = "map.png"
resolution = 0.5
[legend]
"#000000" = "OCCUPIED"
"#FFFFFF" = "NOMINAL"
"#0000ff" = "LOW_FRICTION"
"""


def written(folder, text, name="room.toml"):
    path = folder / name
    path.write_text(text)
    return path


def painted(folder, pixels, mode="RGB"):
    Image.fromarray(np.array(pixels, np.uint8), mode=None).convert(mode).save(folder / "map.png")


@pytest.mark.parametrize(
    ("name", "free", "slippery", "start", "subgoals"),
    [  # areas by hand from the rectangles [m^2]
        ("S", 2.4 * 0.95 + 0.9 * 2.95 + 1.5 * 0.95, 0.9 * 3.9, (0.6, 0.6), 9),
        ("L", 3.9 * 0.75 + 0.75 * 3.15, 2.45 * 0.75 + 0.75 * 1.7, (0.4, 3.68), 10),
        ("H", 2 * 0.7 * 3.9 + 2.5 * 0.6, 2 * 0.7 * 1.0 + 2.5 * 0.6, (0.5, 0.6), 10),
        ("U", (1.325 + 1.32) * 3.27 + 3.9 * 0.63, (1.325 + 1.32) * 1.74 + 3.9 * 0.63, (0.8, 0.8), 13),
    ],
)
def test_the_packaged_maps_have_the_paper_s_areas_exactly(name, free, slippery, start, subgoals):
    planar_map = load_map(name)
    area = np.bincount(planar_map.grid.labels.ravel(), minlength=4) * planar_map.grid.resolution**2
    assert planar_map.name == name
    assert planar_map.size == pytest.approx((4.2, 4.2))
    assert area[2] + area[3] == pytest.approx(free)
    assert area[3] == pytest.approx(slippery)
    assert planar_map.start == start
    assert len(planar_map.subgoals) == subgoals
    route = np.array([start, *planar_map.subgoals])
    assert np.hypot(*np.diff(route, axis=0).T).max() < 0.82


def test_the_packaged_maps_are_the_four_of_the_paper():
    assert packaged_maps() == ("H", "L", "S", "U")


def test_rectangles_become_cells_by_their_centres(tmp_path):
    room = load_map(written(tmp_path, ROOM))
    assert room.name == "room"
    assert room.grid.labels.shape == (10, 20)
    assert (room.grid.labels[1:9, 1:10] == 2).all()
    assert (room.grid.labels[1:9, 10:19] == 3).all()
    assert np.count_nonzero(room.grid.labels) == 8 * 18
    assert room.start is None
    assert room.subgoals == ()


def test_an_image_is_read_top_row_last(tmp_path):
    painted(tmp_path, [[[255, 255, 255], [0, 0, 255]], [[0, 0, 0], [0, 0, 0]]])
    world = load_map(written(tmp_path, LEGEND))
    assert world.grid.labels.tolist() == [[0, 0], [2, 3]]
    assert world.size == (1.0, 1.0)


def test_an_image_of_a_palette_is_read_like_one_of_colours(tmp_path):
    painted(tmp_path, [[[255, 255, 255], [0, 0, 255]], [[0, 0, 0], [0, 0, 0]]], mode="P")
    assert load_map(written(tmp_path, LEGEND)).grid.labels.tolist() == [[0, 0], [2, 3]]


def test_an_unknown_colour_is_named_with_its_pixel_and_the_legend(tmp_path):
    painted(tmp_path, [[[255, 255, 255], [0, 0, 0]], [[0, 0, 0], [1, 2, 255]]])
    with pytest.raises(InputError, match=r"#0102ff at column 1, row 1 from its top.*#ffffff = NOMINAL"):
        load_map(written(tmp_path, LEGEND))


def test_a_colour_that_is_not_opaque_is_unknown(tmp_path):
    painted(tmp_path, [[[255, 255, 255, 128]]], mode="RGBA")
    with pytest.raises(InputError, match="colour #ffffff80"):
        load_map(written(tmp_path, LEGEND))


def test_an_image_that_is_missing_or_broken_says_so(tmp_path):
    path = written(tmp_path, LEGEND)
    with pytest.raises(InputError, match=r"image is 'map.png'; allowed is an existing file"):
        load_map(path)
    (tmp_path / "map.png").write_bytes(b"not a picture")
    with pytest.raises(DamagedFileError, match=r"map.png, the image of room.toml, is not readable"):
        load_map(path)
    painted(tmp_path, np.zeros((200, 200, 3)))
    whole = (tmp_path / "map.png").read_bytes()
    (tmp_path / "map.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedFileError, match="not readable"):
        load_map(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x = [0.1, 1.9]", "x = [0.1, 2.1]", r"room.toml: free\[0\].x is \[0.1, 2.1\]; allowed is .*<= 2.0"),
        ("y = [0.0, 1.0]", "y = [-0.1, 1.0]", r"slippery\[0\].y is \[-0.1, 1.0\]"),
        ("x = [0.1, 1.9]", "x = [1.9, 0.1]", r"free\[0\].x is \[1.9, 0.1\]; .*low < high"),
        ("x = [0.1, 1.9]", "x = [0.5, 0.5]", r"free\[0\].x is \[0.5, 0.5\]; .*low < high"),
        ("x = [0.1, 1.9]", "x = [0.11, 0.12]", r"free\[0\].x .*use a finer resolution"),
        ("x = [0.1, 1.9]", "x = [0.1, nan]", r"free\[0\].x\[1\] is nan; allowed is a finite number"),
        ("x = [0.1, 1.9]", 'x = "wide"', r"free\[0\].x is 'wide'; allowed is two numbers"),
        ("x = [0.1, 1.9]", "x = [false, true]", r"free\[0\].x\[0\] is False; allowed is a finite number"),
        ("x = [0.1, 1.9]", "", r"free\[0\].x is None; allowed is two numbers"),
        ("x = [0.1, 1.9]", "x = [0.1, 1.9]\nz = 1", r"has the key 'free\[0\].z'; allowed are x, y"),
        ("size = [2.0, 1.0]", "", "has no 'size', which it needs"),
        ("size = [2.0, 1.0]", "size = [2.0, inf]", r"size\[1\] is inf"),
        ("size = [2.0, 1.0]", "size = [2.0, -1.0]", r"size\[1\] is -1.0; allowed is a positive number"),
        ("size = [2.0, 1.0]", "size = [2.05, 1.0]", r"size\[0\] is 2.05; allowed is a whole number of cells"),
        ("resolution = 0.1", "resolution = 0", "resolution is 0; allowed is a positive number"),
        ("resolution = 0.1", "resolution = 1e-5", "resolution is 1e-05; allowed is .* at most 100,000,000"),
        ("resolution = 0.1", "colour = 1", "has the key 'colour'; allowed are name, resolution, start"),
        ("resolution = 0.1", 'name = ""', "name is ''; allowed is a text"),
        (
            "resolution = 0.1",
            "start = [0.0, 0.5]",
            r"start is \[0.0, 0.5\]; allowed is a free point.*OCCUPIED",
        ),
        (
            "resolution = 0.1",
            "subgoals = [[0.5, 0.5], [9, 9]]",
            r"subgoals\[1\] is \[9, 9\]; allowed is a free",
        ),
        ("resolution = 0.1", "subgoals = 3", r"subgoals is 3; allowed is a list"),
        ("[[free]]", "[[slippery]]", "leaves no free space"),
        ("[[free]]", "[free]", r"free is \{.*\}; allowed is tables \[\[free\]\]"),
        ("size = [", "size = ", "room.toml is not a TOML file: .*line 2"),
    ],
)
def test_a_mistake_in_a_map_is_named_with_file_key_and_remedy(tmp_path, old, new, message):
    with pytest.raises(InputError, match=message) as caught:
        load_map(written(tmp_path, ROOM.replace(old, new, 1)))
    assert "room.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "NOMINAL",
            "GRASS",
            "legend.#FFFFFF is 'GRASS'; allowed is OCCUPIED, UNKNOWN, NOMINAL, LOW_FRICTION",
        ),
        ("#FFFFFF", "white", "legend is 'white'; allowed is colours such as"),
        ("resolution = 0.5", "size = [1, 1]", "has the key 'size'; allowed are .*image, legend"),
        ("[legend]", "[colours]", "has the key 'colours'"),
        ('"map.png"', "3", "image is 3; allowed is the path of an image"),
    ],
)
def test_a_mistake_beside_an_image_is_named_too(tmp_path, old, new, message):
    painted(tmp_path, [[[255, 255, 255]]])
    with pytest.raises(InputError, match=message):
        load_map(written(tmp_path, LEGEND.replace(old, new, 1)))


def test_an_unknown_map_lists_those_there_are():
    with pytest.raises(InputError, match="no map 'Z'; allowed are H, L, S, U or the path"):
        load_map("Z")


@pytest.mark.parametrize(
    "text",
    [
        ROOM.replace("size = [2.0, 1.0]", "size = [1e300, 1e300]"),
        ROOM.replace("resolution = 0.1", "resolution = 1e-300"),
        ROOM.replace("resolution = 0.1", f"resolution = {10**400}"),
        "size = " + "[" * 9000,
    ],
)
def test_a_map_beyond_all_size_or_depth_is_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"room\.toml"):
        load_map(written(tmp_path, text))


def test_an_image_that_a_program_would_have_to_draw_is_not_opened(tmp_path):
    (tmp_path / "map.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    with pytest.raises(DamagedFileError, match="not readable"):
        load_map(written(tmp_path, LEGEND))


def test_an_image_of_too_many_pixels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(map_file, "MOST_CELLS", 3)
    painted(tmp_path, [[[255, 255, 255]] * 2] * 2)
    with pytest.raises(InputError, match=r"image is 'map\.png'; allowed is an image of at most 3 pixels"):
        load_map(written(tmp_path, LEGEND))
