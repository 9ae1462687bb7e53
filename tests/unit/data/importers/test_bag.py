"""Bags as robots record them: rates that differ, clocks that jump, messages that are missing or damaged."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin
from tests.support.bags import SECOND, TOPICS, Event, mounted, write_bag

from ocular.data.importers import Bag, Target, import_recordings, list_topics, ros
from ocular.data.store import TransitionStore
from ocular.errors import DamagedFileError, InputError
from ocular.footprint import Camera, ClassTable, Intrinsics
from ocular.records import FootprintGeometry

LABELS = ("OCCUPIED", "UNKNOWN", "ROAD")
GEOMETRY = FootprintGeometry(angles=8, ranges=8, field_of_view=1.0, max_range=4.0)
CAMERA = Camera(Intrinsics.of_field_of_view(40, 30, 1.2, 1.4), height=1.0, pitch=0.7)
TARGET = Target("yard", LABELS, GEOMETRY, ClassTable({"1": "ROAD", "2": "OCCUPIED"}, LABELS))
OPTIONS = Bag(
    **{f"{role}_topic": TOPICS[role] for role in ("odometry", "command", "depth", "label", "camera")}, dt=0.2
)
START = 100 * SECOND
TURN, SPEED = 0.3, 0.8  # [rad/s], [m/s]
EYE = np.divide(
    -CAMERA.height, CAMERA.rays[..., 2], where=CAMERA.rays[..., 2] < 0, out=np.full((30, 40), np.inf)
)


def truth(t: float) -> tuple[float, ...]:
    """Round a circle: x, y, yaw, speed ahead and to the left, yaw rate, t seconds after the start."""
    yaw = TURN * t
    return SPEED / TURN * np.sin(yaw), SPEED / TURN * (1 - np.cos(yaw)), yaw, SPEED, 0.0, TURN


def every(rate: float, seconds: float) -> list[int]:
    return [START + round(i * SECOND / rate) for i in range(int(seconds * rate) + 1)]


def drive(seconds: float = 4.0) -> list[Event]:
    """Odometry at 50 Hz, commands at 10, images at 5, a little after the moments they are meant for."""
    odometry = [Event("odometry", t, truth((t - START) / SECOND)) for t in every(50, seconds)]
    commands = [Event("command", t, (0.1 * i, 0.2, -0.1 * i)) for i, t in enumerate(every(10, seconds))]
    ground = np.ones((30, 40), np.uint8)
    depths = [Event("depth", t + 10**6, EYE.astype(np.float32), "32FC1") for t in every(5, seconds)]
    labels = [Event("label", t + 2 * 10**6, ground, "mono8") for t in every(5, seconds)]
    return [Event("camera", START, CAMERA), mounted(CAMERA, START), *odometry, *commands, *depths, *labels]


def of_kind(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


def without(events: list[Event], kind: str, keep=lambda event: False) -> list[Event]:
    return [event for event in events if event.kind != kind or keep(event)]


def changed(events: list[Event], kind: str, place: int, **fields) -> list[Event]:
    victim = of_kind(events, kind)[place]
    return [replace(event, **fields) if event is victim else event for event in events]


@pytest.fixture
def plan(tmp_path):
    def of(events: list[Event], options: Bag = OPTIONS, target: Target = TARGET, version: int = 2):
        path = tmp_path / ("drive.bag" if version == 1 else "drive")
        return options.plan(write_bag(path, events, version), target)

    return of


@pytest.mark.parametrize("version", [1, 2])
def test_states_are_interpolated_and_commands_averaged(plan, version):
    recording = plan(drive(), version=version)
    steps = recording.steps
    assert len(steps) == 20
    assert not recording.account.dropped
    times = 0.2 * np.arange(21)
    x, y, yaw, *_ = np.array([truth(t) for t in times]).T
    states = np.stack([x, y, SPEED * np.cos(yaw), SPEED * np.sin(yaw)], axis=1)
    np.testing.assert_allclose(steps.states, states[:-1], atol=1e-9)
    np.testing.assert_allclose(steps.next_states, states[1:], atol=1e-9)
    np.testing.assert_allclose(steps.headings, yaw[:-1], atol=1e-9)
    # Two commands hold for half of each step.
    np.testing.assert_allclose(steps.actions[:, 0], 0.1 * (2 * np.arange(20) + 0.5), atol=1e-9)
    np.testing.assert_allclose(steps.actions[:, 1], 0.2)
    transitions, dropped = recording.read(slice(0, 20))
    assert not dropped
    assert (transitions.inputs.footprints.cells == LABELS.index("ROAD")).mean() > 0.5


def test_moments_between_messages(plan):
    """Odometry that starts between two commands: every state lies between two messages."""
    shifted = [event.moved(7 * 10**6) if event.kind == "odometry" else event for event in drive()]
    steps = plan(shifted, replace(OPTIONS, dt=0.05, state="pose_velocity", tolerance=0.11)).steps
    want = np.array([truth(0.05 * i) for i in range(len(steps))])
    np.testing.assert_allclose(steps.states, want[:, [0, 1, 2, 3, 5]], atol=1e-4)
    np.testing.assert_allclose(steps.states[:, 2], want[:, 2], atol=1e-9)


def test_a_yaw_that_passes_half_a_turn_goes_on(plan):
    turned = [
        replace(e, value=(*e.value[:2], e.value[2] + 3.0, *e.value[3:])) if e.kind == "odometry" else e
        for e in drive()
    ]
    steps = plan(turned, replace(OPTIONS, state="pose")).steps
    assert (np.abs(steps.states[:, 2]) <= np.pi).all()
    assert steps.states[-1, 2] < 0
    np.testing.assert_allclose(steps.next_states[:, 2] - steps.states[:, 2], 0.2 * TURN, atol=1e-9)
    assert steps.actions[0, 1] == pytest.approx(-0.05)  # angular.z


def test_velocities_from_poses(plan):
    recording = plan(drive(), replace(OPTIONS, velocity="pose", state="pose_velocity"))
    assert recording.account.dropped == {"no earlier pose to take a velocity from": 1}
    np.testing.assert_allclose(recording.steps.states[:, 4], TURN, atol=1e-9)
    np.testing.assert_allclose(recording.steps.states[:, 3], SPEED, rtol=1e-2)


def test_a_stamped_command_and_an_unstamped_one_of_another_clock(plan, tmp_path):
    """The robot's stamps are those of a simulation; the recorder's clock is years ahead."""
    ahead = 10**6 * SECOND
    events = [replace(event, received=event.time + ahead) for event in drive()]
    unstamped = plan(events).steps
    stamped = [replace(e, kind="stamped_command") if e.kind == "command" else e for e in events]
    bag = write_bag(tmp_path / "stamped", stamped, 2)
    again = OPTIONS.plan(bag, TARGET).steps
    assert len(unstamped) == len(again) == 20
    np.testing.assert_allclose(unstamped.actions, again.actions, atol=1e-9)


def test_a_clock_that_falls_back_starts_a_new_stretch(plan):
    before = drive(2.0)
    after = [
        replace(event, time=event.time - 50 * SECOND, received=event.time + 3 * SECOND)
        for event in drive(2.0)
        if event.kind not in ("camera", "tf")
    ]
    recording = plan([*before, *after])
    assert len(recording.steps) == 20
    assert "the clock was set back 1 times; no step crosses that" in recording.account.notes
    moved = np.hypot(*(recording.steps.next_states - recording.steps.states)[:, :2].T)
    np.testing.assert_allclose(moved, 0.2 * SPEED, rtol=1e-3)
    transitions, _ = recording.read(slice(0, 20))
    assert len(transitions) == 20


def test_a_clock_that_leaps_ahead_and_odometry_that_stops_for_a_while(plan):
    leap = [e.moved(30 * SECOND) if e.time > START + 2 * SECOND else e for e in drive()]
    recording = plan(leap)
    assert len(recording.steps) == 18
    assert recording.account.dropped == {"no command in force (each for 0.5 s)": 1}  # at the leap's end
    assert recording.account.notes[-1].startswith("1 gaps of more than 0.1 s between odometry messages")


def test_messages_out_of_order_or_not_finite_are_counted(plan):
    events = drive()
    late = of_kind(events, "odometry")[30]
    events = [replace(e, received=e.time + 30 * 10**6) if e is late else e for e in events]
    events = changed(events, "odometry", 77, value=(np.nan,) * 6)
    events = changed(events, "command", 5, value=(np.inf, 0.0, 0.0))
    recording = plan(events)
    assert len(recording.steps) == 20
    assert "1 odometry messages out of order or twice, left out" in recording.account.notes
    assert "1 odometry messages not finite, left out" in recording.account.notes
    assert "1 commands not finite, left out" in recording.account.notes


def test_missing_frames_and_commands_drop_their_steps(plan):
    events = drive()
    lost = [of_kind(events, "depth")[3], of_kind(events, "depth")[4], of_kind(events, "label")[8]]
    events = [e for e in events if not any(e is each for each in lost)]
    events = without(events, "command", keep=lambda e: e.time < START + 3.0 * SECOND)
    recording = plan(events)
    assert recording.account.dropped == {
        "no depth image within 0.05 s": 2,
        "no label image within 0.05 s": 1,
        "no command in force (each for 0.5 s)": 3,
    }
    assert len(recording.steps) == 14
    assert len(plan_rows(recording)) == 14


def plan_rows(recording):
    return recording.read(slice(0, len(recording.steps)))[0]


def test_images_that_cannot_be_read_drop_their_steps(plan):
    events = drive()
    big = (1000 * np.where(np.isfinite(EYE), EYE, 0)).astype(">u2")
    events = changed(events, "depth", 0, value=big, encoding="16UC1")  # big-endian millimetres are fine
    events = changed(events, "depth", 2, encoding="bgr8")
    events = changed(events, "label", 4, value=np.ones((15, 20), np.uint8))
    events = changed(events, "label", 6, encoding="16UC1")  # with half of the bytes that it would need
    recording = plan(events)
    assert recording.account.dropped == {
        "depth image with the encoding 'bgr8'; allowed are 32FC1, 16UC1": 1,
        "label image of 20 x 15 pixels, unlike the camera info's 40 x 30": 1,
        "label image with 1200 bytes for 30 rows of 40": 1,
    }
    first, fourth = (recording.read(slice(i, i + 1))[0].inputs.footprints.cells[0] for i in (0, 4))
    assert (first == fourth).mean() > 0.95
    assert len(plan_rows(recording)) == len(recording.steps) == 17


def test_classes_that_the_table_lacks(plan, tmp_path):
    strange = np.where(np.arange(40) < 20, 1, 7).astype(np.uint8) * np.ones((30, 1), np.uint8)
    events = changed(drive(), "label", 3, value=strange)
    with pytest.raises(InputError, match="the class '7' is not in the table; allowed are 1, 2"):
        plan(events)
    lenient = replace(TARGET, table=replace(TARGET.table, missing="unknown"))
    recording = OPTIONS.plan(tmp_path / "drive", lenient)
    assert "classes that are not in the table, taken for UNKNOWN: 7" in recording.account.notes
    plain, odd = (recording.read(slice(i, i + 1))[0].inputs.footprints.cells[0] for i in (2, 3))
    assert 0.3 < (odd == LABELS.index("UNKNOWN")).mean() - (plain == LABELS.index("UNKNOWN")).mean() < 0.7


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"odometry_topic": "/odom"},
            r"no topic '/odom' for odometry_topic; of the right type are /robot/odom",
        ),
        (
            {"command_topic": "/robot/odom"},
            r"command_topic: the topic /robot/odom of .* is of the type nav_msgs/msg/Odometry; "
            r"allowed are geometry_msgs/msg/Twist",
        ),
        ({"depth_topic": "/camera/depth/camera_info"}, "allowed are sensor_msgs/msg/Image"),
    ],
)
def test_topics_of_the_wrong_type_are_refused(plan, options, complaint):
    with pytest.raises(InputError, match=complaint):
        plan(drive(1.0), replace(OPTIONS, **options))


def test_bad_options_are_refused():
    for options, complaint in (
        ({"dt": 0.0}, "dt is 0.0 s"),
        ({"tolerance": -1.0}, "tolerance is -1.0 s"),
        ({"action": ("linear.q",)}, "action is 'linear.q'; allowed are 'linear.x'"),
        ({"state": "6d"}, "state is '6d'"),
    ):
        with pytest.raises(InputError, match=complaint):
            replace(OPTIONS, **options)


def test_cameras_that_are_not_known_or_askew_are_refused(plan, tmp_path):
    events = drive(1.0)
    with pytest.raises(InputError, match="no fixed transforms from 'camera_optical' to 'base_link'"):
        plan(without(events, "tf"))
    aside = ("base_link", "camera_optical", (0, 0, 1), (-0.5, 0.5, -0.5, 0.5))
    turned = ("base_link", "camera_optical", (0, 0, 1), (-0.65328, 0.2706, -0.2706, 0.65328))
    assert len(OPTIONS.plan(_bag(tmp_path / "level", events, [aside]), TARGET).steps) == 5
    with pytest.raises(InputError, match=r"is turned by 45.\d deg to the side"):
        OPTIONS.plan(_bag(tmp_path / "turned", events, [turned]), TARGET)
    two = [
        *events,
        Event("camera", START + SECOND, replace(CAMERA, intrinsics=replace(CAMERA.intrinsics, fx=9.0))),
    ]
    with pytest.raises(InputError, match="tells of 2 cameras"):
        OPTIONS.plan(write_bag(tmp_path / "two", two, 2), TARGET)
    with pytest.raises(InputError, match="no topic '/camera/depth/camera_info'"):
        OPTIONS.plan(write_bag(tmp_path / "none", without(events, "camera"), 2), TARGET)


def test_rotations_that_are_none_are_left_out(tmp_path):
    events = drive(1.0)
    none = [("base_link", "camera_optical", (0, 0, 1), turned) for turned in ((0, 0, 0, 0), (1e200, 0, 0, 0))]
    for number, transform in enumerate(none):
        with pytest.raises(InputError, match="a camera at height nan m"):
            OPTIONS.plan(_bag(tmp_path / str(number), events, [transform]), TARGET)


def test_a_message_that_is_defined_otherwise_is_refused(tmp_path, monkeypatch):
    path = write_bag(tmp_path / "drive", drive(1.0), 2)
    monkeypatch.setattr(ros, "pose_and_twist", lambda content: content.attitude)
    with pytest.raises(DamagedFileError, match=r"cannot read .*drive: .* has no attribute 'attitude'"):
        OPTIONS.plan(path, TARGET)


def _bag(path, events, transforms):
    return write_bag(path, [*without(events, "tf"), Event("tf", START, transforms)], 2)


@pytest.mark.parametrize("storage", ["ros1", StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_a_bag_that_was_cut_short_is_refused_before_anything_is_written(tmp_path, storage):
    version = 1 if storage == "ros1" else 2
    path = tmp_path / ("drive.bag" if version == 1 else "drive")
    keywords = {} if version == 1 else {"storage": storage}
    write_bag(path, drive(1.0), version, **keywords)
    file = path if version == 1 else next(f for f in path.iterdir() if f.suffix != ".yaml")
    whole = file.read_bytes()
    for length in (len(whole) * 2 // 3, len(whole) - 40, 100, 0):
        file.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError, match=r"cannot read .*drive.*; allowed is a whole bag"):
            OPTIONS.plan(path, TARGET)
        with pytest.raises(DamagedFileError):
            list_topics(path)


def test_a_bag_without_one_whole_step_leaves_no_store(plan, tmp_path):
    events = without(drive(), "label")
    recording = plan([*events, Event("label", START + 90 * SECOND, np.ones((30, 40), np.uint8), "mono8")])
    with pytest.raises(InputError, match=r"nothing can be used of .*20 steps: no label image within 0.05 s"):
        import_recordings(tmp_path / "store", TARGET, [recording])
    assert not (tmp_path / "store").exists()


def test_an_environment_with_a_handful_of_transitions_is_told(plan, tmp_path):
    (result,) = import_recordings(tmp_path / "store", TARGET, [plan(drive(1.0))])
    assert result.used == result.steps == 5
    assert result.notes[-1].startswith("only 5 transitions: too few")
    assert len(TransitionStore.open(tmp_path / "store").load()) == 5


def test_the_same_bag_with_other_settings_is_refused(plan, tmp_path):
    recording = plan(drive(1.0))
    import_recordings(tmp_path / "store", TARGET, [recording])
    other = replace(OPTIONS, dt=0.4).plan(recording.path, TARGET)
    with pytest.raises(InputError, match=r"imported with dt = 0.2, and is now to be imported with 0.4"):
        import_recordings(tmp_path / "store", TARGET, [other])
    elsewhere = OPTIONS.plan(recording.path, replace(TARGET, environment="road"))
    with pytest.raises(InputError, match="imported with environment = yard"):
        import_recordings(tmp_path / "store", replace(TARGET, environment="road"), [elsewhere])
    with pytest.raises(InputError, match="is named twice"):
        import_recordings(tmp_path / "new", TARGET, [recording, recording])
    (again,) = import_recordings(tmp_path / "store", TARGET, [recording])
    assert (again.used, again.resumed) == (5, 5)
    assert len(TransitionStore.open(tmp_path / "store").load()) == 5


def test_without_rosbags_an_import_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "drive.bag").touch()
    monkeypatch.setitem(sys.modules, "rosbags.highlevel", None)
    with pytest.raises(InputError, match=r"is not installed: 'ocular\[bags\]'"):
        OPTIONS.plan(tmp_path / "drive.bag", TARGET)
