import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from ocular.errors import InputError
from ocular.worlds.junction import (
    CAMERA,
    CLASSES,
    ROADS,
    Scene,
    SceneModel,
    Solid,
    box,
    open_junction,
    prism,
    road,
    to_mjcf,
)
from ocular.worlds.map_file import LOW_FRICTION, NOMINAL

YARD = Scene(
    "yard",
    (20.0, 10.0),
    (
        box("asphalt", (0, 20), (0, 10), (-0.1, 0)),
        box("snow", (10, 20), (0, 10), (-0.1, 0.01)),
        prism("building", [(4, 4), (6, 4), (5, 6)], (0, 3)),
    ),
    (2.0, 5.0),
    ((8.0, 8.0), (15.0, 2.0)),
)


@pytest.mark.parametrize("name", ROADS)
def test_every_geom_of_a_road_has_a_class_that_the_table_knows(name):
    model = SceneModel.of(to_mjcf(road(name), CAMERA))
    assert set(model.geom_class) <= set(CLASSES.label_of)
    assert {"asphalt", "snow", "pavement", "kerb", "building", "car", "snowbank"} <= set(model.geom_class)
    CLASSES.numbers(model.classes)


def test_the_three_roads_differ_in_snow_and_obstacles_alone():
    shared = [{e.get("vertex") for e in _meshes(road(name))} for name in ROADS]
    everywhere = set.intersection(*shared)
    assert len(everywhere) > 20
    for own in shared:
        assert 2 <= len(own - everywhere) <= 10


def _meshes(scene):
    return ElementTree.fromstring(to_mjcf(scene, CAMERA)).iter("mesh")


def test_a_scene_of_ones_own_opens_from_its_file(tmp_path):
    path = tmp_path / "yard.xml"
    path.write_text(to_mjcf(YARD, CAMERA))
    world = open_junction(path)
    assert world.map.name == "yard"
    assert world.map.size == pytest.approx((20.0, 10.0))
    assert world.map.start == (2.0, 5.0)
    assert world.map.subgoals == ((8.0, 8.0), (15.0, 2.0))
    grid = world.map.grid
    for point, label in (((1, 1), NOMINAL), ((15, 5), LOW_FRICTION), ((5, 5), "OCCUPIED")):
        assert grid.names[int(grid.at(np.array(point, float)))] == label
    assert world.region(np.array([[15.0, 5.0], [5.0, 1.0]])).tolist() == [True, False]


def test_geoms_are_cast_where_their_mesh_says():
    """MuJoCo moves meshes into frames of their own, which must be undone; boxes need no mesh."""
    mjcf = to_mjcf(YARD, CAMERA).replace(
        "</worldbody>",
        '<geom name="car/0" type="box" size="1 .5 .4" pos="15 8 .4" euler="0 0 30"/></worldbody>',
    )
    corners, geoms = SceneModel.of(mjcf).triangles
    building, car = (corners[geoms == i] for i in (2, 3))
    assert building.reshape(-1, 3).min(axis=0) == pytest.approx([4, 4, 0], abs=1e-6)
    assert building.reshape(-1, 3).max(axis=0) == pytest.approx([6, 6, 3], abs=1e-6)
    half = 1 * np.cos(np.pi / 6) + 0.5 * np.sin(np.pi / 6)
    assert car.reshape(-1, 3).max(axis=0)[0] == pytest.approx(15 + half, abs=1e-6)
    for body in (building, car):  # closed: the faces' areas, as vectors, add up to nothing
        areas = np.cross(body[:, 1] - body[:, 0], body[:, 2] - body[:, 0])
        assert np.abs(areas.sum(axis=0)).max() < 1e-6


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: road("icyNowhere"), "road is 'icyNowhere'; allowed are 'icyMain', 'icyMiddle', 'icySide'"),
        (lambda: open_junction("icyNowhere"), "there is no road 'icyNowhere'; allowed are icyMain"),
        (lambda: SceneModel.load("nowhere.xml"), "there is no scene 'nowhere.xml'"),
        (lambda: SceneModel.of("<mujoco"), "MuJoCo cannot read the scene"),
        (lambda: Solid("a/b", np.eye(3)), "without a slash"),
        (lambda: box("car", (0, 1), (0, 1), (2, 2)), "a body with volume"),
        (lambda: box("car", (0, 1), (0, np.nan), (0, 2)), "not finite"),
    ],
)
def test_bad_scenes_are_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_scenes_that_lack_an_entry_or_have_round_geoms_say_so(tmp_path):
    path = tmp_path / "bare.xml"
    path.write_text('<mujoco><worldbody><geom name="cone/0" size="1"/></worldbody></mujoco>')
    with pytest.raises(InputError, match="'cone/0' is of the type mjGEOM_SPHERE"):
        _ = SceneModel.load(path).triangles
    with pytest.raises(InputError, match="a custom numeric 'size' and a site 'start'"):
        open_junction(path)
