"""Logs of the camera world through every format: the same transitions, and the same calibrations."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin
from tests.conftest import random_encoder
from tests.support.bags import TOPICS, write_bag
from tests.support.logs import (
    DT,
    Logs,
    events_of,
    record,
    write_arrays,
    write_classes,
    write_replicator,
)

from ocular import cli
from ocular.calibrators import SplitCP, ocular
from ocular.data import TransitionStore
from ocular.partition import TreeSettings
from ocular.records import Transitions
from ocular.worlds.junction import CAMERA, CLASSES, GEOMETRY, JunctionWorld
from ocular.worlds.map_file import PLANAR_LABELS

VIEW = ("--max-range", "12", "--field-of-view", "45", "--labels", *PLANAR_LABELS)
ROLES = ("odometry", "command", "depth", "label", "camera")
CHOSEN = [each for role in ROLES for each in (f"--{role}-topic", TOPICS[role])]
BAG = ("--dt", str(DT), "--tolerance", "0.1", *CHOSEN)
STANDING = ("--camera-height", str(CAMERA.height), "--camera-pitch", str(np.rad2deg(CAMERA.pitch)))


@pytest.fixture(scope="module")
def logs() -> Logs:
    return record(steps=200)


@pytest.fixture(scope="module")
def direct(logs, tmp_path_factory) -> Transitions:
    """Through the store, without an importer: the world's own footprints."""
    store = TransitionStore.create(
        tmp_path_factory.mktemp("direct") / "store", PLANAR_LABELS, GEOMETRY, state_dim=4, action_dim=2
    )
    store.append("icySide", logs.steps)
    return store.load()


@pytest.fixture
def run(monkeypatch, capsys):
    """`ocular ...`, here; what it printed."""

    def of(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["ocular", *map(str, arguments)])
        cli.main()
        return capsys.readouterr().out

    return of


@pytest.fixture
def by_name(tmp_path):
    return write_classes(tmp_path / "classes.toml")


@pytest.fixture
def by_number(logs, tmp_path):
    return write_classes(tmp_path / "numbers.toml", by_number=logs.classes)


def assert_same(imported: Transitions, logs: Logs, direct: Transitions, *, cells: float) -> None:
    """States to rounding, this share of the cells, and thresholds that follow from both."""
    for name in ("states", "actions", "headings"):
        np.testing.assert_allclose(getattr(imported.inputs, name), getattr(direct.inputs, name), atol=1e-12)
    np.testing.assert_allclose(imported.next_states, direct.next_states, atol=1e-12)
    assert imported.environments == ("road",)
    seen, known = (t.inputs.footprints.cells[t.inputs.footprint_index] for t in (imported, direct))
    assert (seen == known).mean() >= cells
    assert len(np.unique(known)) == 4  # there was something to see
    ours, theirs = (fitted(each, logs.world) for each in (imported, direct))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
    if cells == 1.0:
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)
    else:  # latents that moved a little may put a point into another cell
        assert np.median(np.abs(ours[1] / theirs[1] - 1)) < 0.01


def fitted(transitions: Transitions, world: JunctionWorld) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds of SplitCP and, at each input, of OCULAR, for the road's own model."""
    split = SplitCP().fit(transitions, world.nominal, world.state_cov, seed=0)
    local = ocular(lambda *_: random_encoder(0, GEOMETRY, PLANAR_LABELS), tree=TreeSettings(3, 40))
    calibration = local.fit(transitions, world.nominal, world.state_cov, seed=0)
    assert calibration.partition.n_cells > 2
    return split.thresholds(0.1), calibration.threshold(transitions.inputs, 0.1)


def test_arrays_of_images(run, logs, direct, by_name, tmp_path):
    file = write_arrays(tmp_path / "road.npz", logs)
    into = ("--store", tmp_path / "store", "--environment", "road", "--classes", by_name)
    said = run("import", "arrays", file, *into, *VIEW, *STANDING)
    assert f"{file}: 200 steps, 200 used" in said
    assert_same(TransitionStore.open(tmp_path / "store").load(), logs, direct, cells=1.0)
    # The same once more: nothing is added.
    again = json.loads(run("import", "arrays", file, *into, *VIEW, *STANDING, "--json"))
    assert again["recordings"][0]["resumed"] == again["recordings"][0]["used"] == 200
    assert len(TransitionStore.open(tmp_path / "store").load()) == 200


def test_arrays_of_footprints_in_a_folder(run, logs, direct, tmp_path):
    folder, inputs = tmp_path / "arrays", direct.inputs
    folder.mkdir()
    others = ("UNKNOWN", "NOMINAL", "OCCUPIED", "LOW_FRICTION")
    number = np.array([others.index(name) for name in PLANAR_LABELS], np.uint8)
    for name, values in {
        "states": inputs.states,
        "actions": inputs.actions,
        "next_states": direct.next_states,
        "headings": inputs.headings,
        "footprints": number[inputs.footprints.cells],
        "footprint_index": inputs.footprint_index,
        "labels": np.array(others),
    }.items():
        np.save(folder / f"{name}.npy", values)
    run("import", "arrays", folder, "--store", tmp_path / "store", "--environment", "road", *VIEW)
    assert_same(TransitionStore.open(tmp_path / "store").load(), logs, direct, cells=1.0)


@pytest.mark.parametrize(
    ("version", "storage"),
    [(1, StoragePlugin.SQLITE3), (2, StoragePlugin.SQLITE3), (2, StoragePlugin.MCAP)],
)
def test_bags(run, logs, direct, by_number, tmp_path, version, storage):
    millimetres = version == 2
    bag = write_bag(
        tmp_path / "road.bag" if version == 1 else tmp_path / "road",
        events_of(logs, millimetres=millimetres),
        version,
        storage=storage,
    )
    listed = run("import", "topics", bag)
    assert "/camera/semantic/image" in listed
    suggested = listed.partition("suggested: ")[2].split()
    assert dict(zip(suggested[::2], suggested[1::2], strict=True)) == {
        f"--{role}-topic": TOPICS[role] for role in ROLES
    }
    options = (*VIEW, *suggested, "--dt", DT, "--tolerance", "0.1", *(STANDING if version == 1 else ()))
    into = ("--store", tmp_path / "store", "--environment", "road", "--classes", by_number)
    said = run("import", "bag", bag, *into, *options)
    assert "200 steps, 200 used" in said
    assert "199 gaps" in said
    assert ("1.000 m over 'base_link'" in said) == (version == 2)
    assert_same(
        TransitionStore.open(tmp_path / "store").load(), logs, direct, cells=0.995 if millimetres else 1.0
    )


@pytest.mark.parametrize(("colours", "ranges"), [(True, False), (False, True)])
def test_replicator(run, logs, direct, by_name, tmp_path, colours, ranges):
    folder = write_replicator(tmp_path / "road", logs, colours=colours, ranges=ranges)
    into = ("--store", tmp_path / "store", "--environment", "road", "--classes", by_name)
    said = run("import", "replicator", folder, *into, *VIEW)
    assert "200 steps, 200 used" in said
    assert_same(TransitionStore.open(tmp_path / "store").load(), logs, direct, cells=0.995)


def contents(store: Path) -> dict[str, bytes]:
    return {str(p.relative_to(store)): p.read_bytes() for p in sorted(store.rglob("*")) if p.is_file()}


def test_a_killed_import_goes_on_and_ends_the_same(run, logs, by_number, tmp_path, monkeypatch):
    bag = write_bag(tmp_path / "road.bag", events_of(logs, slice(0, 60)), 1)
    program = (
        "import os, sys\n"
        "import ocular.data.importers.writing as writing\n"
        "from ocular import cli\n"
        "writing.PART_ROWS, real, calls = 16, os.replace, [int(os.environ['DIE_AT'])]\n"
        "def replace(*names):\n"
        "    calls[0] -= 1\n"
        "    if not calls[0]:\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return real(*names)\n"
        "os.replace = replace\n"
        "cli.main()\n"
    )
    monkeypatch.setattr("ocular.data.importers.writing.PART_ROWS", 16)
    into = ("--environment", "road", "--classes", by_number, *VIEW, *BAG)
    run("import", "bag", bag, "--store", tmp_path / "whole", *into)
    assert len(TransitionStore.open(tmp_path / "whole").parts) == 4
    store = tmp_path / "killed"
    for die_at in (45, 30):
        command = [sys.executable, "-c", program, "import", "bag", bag, "--store", store, *into]
        done = subprocess.run(command, env={**os.environ, "DIE_AT": str(die_at)}, check=False)
        assert done.returncode == -9
    parts = len(TransitionStore.open(store).parts)
    assert 0 < parts < 4
    said = run("import", "bag", bag, "--store", store, *into)
    assert f"60 steps, {16 * parts} of them by an earlier run, 60 used" in said
    assert contents(store) == contents(tmp_path / "whole")


def test_the_document_s_examples(run, logs, tmp_path, monkeypatch):
    """As in docs/import.md; the bag and the folder have the document's classes."""
    document = Path(__file__).parents[2] / "docs" / "import.md"
    found = re.findall(r"<!-- (?:run|file): (\S+) -->\n```\w*\n(.*?)```", document.read_text(), re.DOTALL)
    blocks = dict(found)
    monkeypatch.chdir(tmp_path)
    Path("classes.toml").write_text(blocks["classes.toml"])
    names = ("sky", "asphalt", "snow", "kerb")
    words = ("UNKNOWN", "NOMINAL", "LOW_FRICTION", "OCCUPIED")
    number = np.array([words.index(CLASSES.label_of[name]) for name in logs.classes], np.uint8)
    few = replace(
        logs,
        steps=logs.steps.take(np.arange(5)),
        semantics=number[logs.semantics[:5]],
        depths=logs.depths[:5],
    )
    write_bag(Path("road.bag"), events_of(few), 1)
    write_replicator(Path("frames"), replace(few, classes=names))
    exec(compile(blocks["arrays"], "import.md", "exec"), {})
    for block, used in (("import_arrays", 500), ("import_bag", 5), ("import_replicator", 5)):
        for line in blocks[block].strip().splitlines():
            said = run(*shlex.split(line)[1:])
        assert f"{used} steps, {used} used" in said
    imported = [TransitionStore.open(store).load().inputs.footprints for store in ("road", "isaac")]
    assert (imported[0].cells == imported[1].cells).mean() > 0.995


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("arrays", "{npz}", "--environment", "a/b"), "the environment is named 'a/b'; allowed are up to 60"),
        (("arrays", "{npz}", "--environment", "a"), "neither labels nor a class table are given"),
        (("arrays", "--environment", "a"), "no recording is named"),
        (("arrays", "{npz}", "--environment", "a", *VIEW[4:]), "a new store needs both"),
        (("arrays", "{npz}", "--environment", "a", *VIEW), "camera_height is None, camera_pitch None"),
        (("arrays", "{npz}", "--environment", "a", *VIEW, *STANDING), "there is no class table"),
        (
            ("arrays", "{npz}", "--environment", "a", *VIEW, "--classes", "absent.toml"),
            "no class table absent.toml",
        ),
        (("topics", "{npz}.bag"), "there is no"),
    ],
)
def test_bad_requests_are_one_line_and_leave_nothing(run, logs, tmp_path, arguments, complaint):
    file = write_arrays(tmp_path / "road.npz", logs.first(2))
    store = () if arguments[0] == "topics" else ("--store", tmp_path / "store")
    with pytest.raises(SystemExit) as caught:
        run("import", *(str(each).format(npz=file) for each in arguments), *store)
    assert complaint in str(caught.value.code)
    assert not (tmp_path / "store").exists()


def test_another_import_must_fit_the_store(run, logs, by_name, tmp_path):
    few = logs.first(3)
    first, second = write_arrays(tmp_path / "a.npz", few), tmp_path / "b.npz"
    into = ("--store", tmp_path / "store", "--environment", "road", "--classes", by_name, *STANDING)
    run("import", "arrays", first, *into, *VIEW)
    write_arrays(second, replace(few, depths=few.depths * np.float32(1.01)))
    before = contents(tmp_path / "store")
    for wrong, complaint in (
        (("--max-range", "5"), "max_range=5.0"),
        (("--labels", "OCCUPIED", "UNKNOWN", "NOMINAL", "LOW_FRICTION", "ICE"), "'ICE'"),
        (("--labels", "OCCUPIED", "UNKNOWN"), "'asphalt' is 'NOMINAL'; allowed are"),
    ):
        with pytest.raises(SystemExit) as caught:
            run("import", "arrays", second, *into, *wrong)
        assert complaint in str(caught.value.code)
    poses = replace(few.steps.inputs, states=few.steps.inputs.states[:, :3])
    shorter = replace(few.steps, inputs=poses, next_states=few.steps.next_states[:, :3])
    write_arrays(tmp_path / "c.npz", replace(few, steps=shorter))
    with pytest.raises(SystemExit, match="has states of 3 and actions of 2 entries; allowed are 4 and 2"):
        run("import", "arrays", tmp_path / "c.npz", *into)
    assert contents(tmp_path / "store") == before
    said = run("import", "arrays", second, *into)  # the rest is the store's
    assert "3 steps, 3 used" in said
    assert len(TransitionStore.open(tmp_path / "store").load()) == 6
