import numpy as np
import pytest

from ocular.errors import InputError
from ocular.footprint import Camera, ClassTable, Intrinsics, Projector, project_reference
from ocular.records import FootprintGeometry

LABELS = ("OCCUPIED", "UNKNOWN", "GRASS", "ICE")
OCCUPIED, UNKNOWN, GRASS, ICE = range(4)
CLASSES = ("wall", "grass", "ice", "sky")
WALL, SKY = 0, 3
TABLE = ClassTable({"wall": "OCCUPIED", "grass": "GRASS", "ice": "ICE", "sky": "UNKNOWN"}, LABELS)
GEOMETRY = FootprintGeometry(angles=24, ranges=40, field_of_view=np.deg2rad(40.0), max_range=8.0)


def camera(pitch: float = 40.0, height: float = 1.0, size: tuple[int, int] = (160, 120)) -> Camera:
    width, rows = size
    lens = Intrinsics.of_field_of_view(width, rows, np.deg2rad(70.0), np.deg2rad(84.0))
    return Camera(lens, height, np.deg2rad(pitch))


def paint(eye: Camera, surface, wall_at: float = np.inf, wall_height: float = 2.0):
    """Images of a plane whose class is surface(x, y), and a wall across at x = wall_at: by algebra alone."""
    rays = eye.rays
    with np.errstate(divide="ignore", invalid="ignore"):
        ground = np.where(rays[..., 2] < 0, -eye.height / rays[..., 2], np.inf)
        wall = np.where(rays[..., 0] > 0, wall_at / rays[..., 0], np.inf)
        top = eye.height + wall * rays[..., 2]
    wall = np.where((top >= 0) & (top <= wall_height), wall, np.inf)
    depth = np.minimum(ground, wall)
    with np.errstate(invalid="ignore"):
        kinds = surface(depth * rays[..., 0], depth * rays[..., 1])
    kinds = np.where(wall < ground, WALL, np.where(np.isfinite(depth), kinds, SKY))
    return depth, kinds.astype(np.uint8)


def grass(x, _):
    return np.ones(np.shape(x), int)


def icy_beyond(edge):
    return lambda x, y: np.where(x > edge, 2, 1)


def see(projector: Projector, images) -> np.ndarray:
    ours = projector(*images, CLASSES)
    np.testing.assert_array_equal(ours, project_reference(projector, *images, CLASSES))
    return ours


@pytest.mark.parametrize("pitch", [20.0, 40.0, 47.0, 65.0, 90.0])
@pytest.mark.parametrize("size", [(160, 120), (90, 240)])
def test_labels_land_where_they_lie_however_the_camera_is_tilted(pitch, size):
    eye = camera(pitch, size=size)
    cells = see(Projector(eye, GEOMETRY, TABLE), paint(eye, icy_beyond(2.0)))
    x = GEOMETRY.distances * np.cos(GEOMETRY.bearings[:, None])
    seen = cells != UNKNOWN
    assert seen.sum() > 50
    # A pixel low in the image is finer than a cell, one near the horizon is not.
    clear = seen & (np.abs(x - 2.0) > 0.1)
    assert (cells[clear] == np.where(x[clear] > 2.0, ICE, GRASS)).all()


def test_obstacles_show_their_boundary_and_hide_what_lies_behind():
    eye = camera()
    cells = see(Projector(eye, GEOMETRY, TABLE), paint(eye, grass, wall_at=4.0))
    for bearing, line in zip(GEOMETRY.bearings, cells, strict=True):
        at = np.flatnonzero(line == OCCUPIED)
        assert len(at) == 1
        assert abs(GEOMETRY.distances[at[0]] - 4.0 / np.cos(bearing)) <= 0.2
        assert (line[at[0] + 1 :] == UNKNOWN).all()
        assert (line[3 : at[0] - 1] == GRASS).all()


def test_ground_beyond_a_low_obstacle_stays_unknown_although_it_is_seen():
    eye = camera()
    cells = see(Projector(eye, GEOMETRY, TABLE), paint(eye, grass, wall_at=2.0, wall_height=0.1))
    assert (cells[:, 15:] == UNKNOWN).all()
    assert (cells == OCCUPIED).any(axis=1).all()


def test_range_images_say_the_same_as_depth_images():
    eye = camera()
    depth, kinds = paint(eye, icy_beyond(3.0), wall_at=5.0)
    along_rays = depth * np.linalg.norm(eye.rays, axis=-1)
    as_depth = see(Projector(eye, GEOMETRY, TABLE), (depth, kinds))
    as_range = see(Projector(eye, GEOMETRY, TABLE, depth="range"), (along_rays, kinds))
    assert (as_depth == as_range).mean() > 0.999
    # Taken for the other kind, the images would be misread.
    assert (see(Projector(eye, GEOMETRY, TABLE), (along_rays, kinds)) == as_depth).mean() < 0.99


def test_a_finer_image_only_refines():
    coarse, fine = camera(size=(120, 120)), camera(size=(480, 480))
    images = [paint(eye, icy_beyond(2.5), wall_at=6.0) for eye in (coarse, fine)]
    cells = [
        see(Projector(eye, GEOMETRY, TABLE), image) for eye, image in zip((coarse, fine), images, strict=True)
    ]
    assert (cells[0] == cells[1]).mean() > 0.95


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf, 0.0, -3.0])
def test_pixels_without_a_depth_have_seen_nothing(hole):
    eye = camera()
    projector = Projector(eye, GEOMETRY, TABLE)
    depth, kinds = paint(eye, icy_beyond(2.0), wall_at=5.0)
    whole = see(projector, (depth, kinds))
    holed = np.where(np.random.default_rng(1).random(depth.shape) < 0.3, hole, depth)
    cells = see(projector, (holed, kinds))
    ground = (cells != UNKNOWN) & (cells != OCCUPIED)
    assert (cells[ground] == whole[ground]).all()
    assert (see(projector, (np.full_like(depth, hole), kinds)) == UNKNOWN).all()


def test_ground_that_is_not_flat_is_unknown_beyond_the_tolerance():
    eye = camera()
    projector = Projector(eye, GEOMETRY, TABLE, tolerance=0.25)
    depth, kinds = paint(eye, grass)
    flat = see(projector, (depth, kinds))
    assert (see(projector, (0.8 * depth, kinds)) == flat).all()
    assert (see(projector, (0.7 * depth, kinds)) == UNKNOWN).all()
    assert (see(projector, (1.3 * depth, kinds)) == UNKNOWN).all()


@pytest.mark.parametrize(
    "eye", [camera(height=-0.5), camera(height=0.0), camera(pitch=-90.0), camera(pitch=-60.0)]
)
def test_a_camera_below_ground_or_looking_at_the_sky_sees_nothing(eye):
    depth = np.full((eye.intrinsics.height, eye.intrinsics.width), 2.0)
    assert (see(Projector(eye, GEOMETRY, TABLE), (depth, np.ones(depth.shape, int))) == UNKNOWN).all()


def test_agrees_with_the_reference_on_noise():
    rng = np.random.default_rng(2)
    for pitch in (10.0, 45.0, 80.0):
        eye = camera(pitch, height=rng.uniform(0.3, 2.0))
        depth = rng.uniform(-1, 9, (120, 160)).astype(np.float32)
        depth[rng.random(depth.shape) < 0.1] = np.nan
        kinds = rng.choice(4, p=[0.02, 0.48, 0.48, 0.02], size=depth.shape)
        for tolerance in (0.1, 0.9):
            see(Projector(eye, GEOMETRY, TABLE, tolerance=tolerance), (depth, kinds))


def test_bad_images_are_refused():
    eye = camera()
    projector = Projector(eye, GEOMETRY, TABLE)
    depth, kinds = paint(eye, grass)
    with pytest.raises(InputError, match=r"depth image of these intrinsics has shape \(120, 159\)"):
        projector(depth[:, 1:], kinds, CLASSES)
    with pytest.raises(InputError, match=r"semantic image of these intrinsics has shape \(119, 160\)"):
        projector(depth, kinds[1:], CLASSES)
    with pytest.raises(InputError, match="depth image is int64"):
        projector(np.ones(depth.shape, np.int64), kinds, CLASSES)
    with pytest.raises(InputError, match="semantic image is an array of float64"):
        projector(depth, kinds.astype(float), CLASSES)
    with pytest.raises(InputError, match=r"holds 9 to 9; allowed are 0 to 3"):
        projector(depth, np.where(kinds == 0, 0, 9), CLASSES)
    with pytest.raises(InputError, match=r"holds -1 to"):
        projector(depth, kinds.astype(np.int8) - 1 - kinds.min(), CLASSES)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Intrinsics(10, 10, 5.0, 5.0, 11.0, 5.0), r"\(11.0, 5.0\) does not fit an image of 10 x 10"),
        (lambda: Intrinsics(10, 10, 5.0, 5.0, np.nan, 5.0), "does not fit"),
        (lambda: Intrinsics(0, 10, 5.0, 5.0, 0.0, 5.0), "at least 1 x 1 pixels"),
        (lambda: Intrinsics(10, 10, -5.0, 5.0, 5.0, 5.0), "focal lengths from 0.001 to"),
        (lambda: Intrinsics.of_field_of_view(10, 10, np.pi, 1.0), "less than pi"),
        (lambda: camera(pitch=100.0), "a pitch from -pi/2 to pi/2"),
        (lambda: camera(height=np.nan), "allowed are at most 1e.06 m"),
        (lambda: Projector(camera(), GEOMETRY, TABLE, depth="disparity"), "depth is 'disparity'"),
        (lambda: Projector(camera(), GEOMETRY, TABLE, tolerance=0.0), "tolerance is 0.0"),
    ],
)
def test_bad_cameras_are_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()
