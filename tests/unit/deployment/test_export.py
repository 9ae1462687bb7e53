"""What is exported answers as the library does: by ONNX nearly, by NumPy alone to the last bit."""

import ast
import importlib.util
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import LABELS, random_encoder, random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, STATE_COV, TREE, calibrators, drifting

from ocular.calibrators import LocalCalibrator, ocular
from ocular.deployment import onnx_encoder
from ocular.deployment.export import CHECKSUMS, READER, check_export, export
from ocular.errors import DamagedFileError, InputError, OcularError
from ocular.partition import TreeSettings
from ocular.records import FootprintGeometry, Footprints


@pytest.fixture(scope="module")
def logs():
    return random_transitions(np.random.default_rng(1), 6000, drifting)


def reader_of(folder):
    """The reader as a robot has it: the file in the folder, not the package."""
    spec = importlib.util.spec_from_file_location("reader_in_folder", folder / "ocular_reader.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Reader(folder)


def on_speed_grid(logs):
    """Speeds on a coarse grid, so that thresholds are raised between them."""
    states = logs.inputs.states.copy()
    speed = np.hypot(states[:, 2], states[:, 3])
    states[:, 2:] *= (np.maximum(np.round(2 * speed), 1) / 2 / speed)[:, None]
    return replace(logs, inputs=replace(logs.inputs, states=states), next_states=states)


def noisy(logs):
    rng = np.random.default_rng(5)
    return replace(logs, next_states=drifting(rng, logs.inputs.states, logs.inputs.actions))


@pytest.mark.parametrize("name", [*calibrators(), "leveled"])
def test_the_reader_gives_the_same_cells_and_thresholds_for_ten_thousand_queries(name, logs, tmp_path):
    fitted_on = noisy(on_speed_grid(logs)) if name == "leveled" else logs
    calibrator = calibrators()["ocular" if name == "leveled" else name]
    calibration = calibrator.fit(fitted_on, MODEL, STATE_COV, seed=0)
    assert (calibration.levels is not None) == (name == "leveled")
    about = export(calibration, tmp_path / "robot", 0.1)
    reader = reader_of(tmp_path / "robot")
    queries = random_transitions(np.random.default_rng(2), 10_000, drifting, footprints=200).inputs
    columns = about["columns"]
    if calibration.encoder is not None:
        latents = np.array([reader.latent(cells) for cells in queries.footprints.cells], np.float64)
        assert latents.tobytes() == calibration.encoder.encode(queries.footprints.cells).tobytes()
        columns = columns[: -calibration.encoder.dim]
    rows = reader.rows(queries.states, queries.actions, queries.headings)
    assert rows.shape == (10_000, len(columns))
    if calibration.encoder is not None:
        rows = np.concatenate([rows, latents[queries.footprint_index]], axis=1)
    assert np.array_equal(rows, calibration.process(queries))
    cells = reader.cells(rows)
    assert np.array_equal(cells, calibration.cells(queries))
    assert len(np.unique(cells)) == about["cells"]
    assert np.array_equal(reader.thresholds(rows), calibration.threshold(queries, 0.1))
    assert np.array_equal(reader.xi(rows), calibration.scale(queries, 0.1))


def test_rows_of_footprints_and_of_the_papers_size(tmp_path):
    encoder = random_encoder(3, FootprintGeometry())
    logs = random_transitions(
        np.random.default_rng(0), 1500, drifting, geometry=encoder.geometry, footprints=9
    )
    tree = TreeSettings(max_depth=3, min_leaf=60)
    calibration = ocular(lambda footprints, seed: encoder, tree=tree).fit(logs, MODEL, STATE_COV, seed=0)
    export(calibration, tmp_path / "robot", 0.2)
    some = logs.inputs.take(np.arange(6))
    seen = some.footprints.cells[some.footprint_index]
    seen[0] = 2  # of one label
    rows = reader_of(tmp_path / "robot").rows(some.states, some.actions, some.headings, seen)
    own = replace(some, footprints=Footprints(seen, LABELS, encoder.geometry), footprint_index=np.arange(6))
    assert np.array_equal(rows, calibration.process(own))


def test_infinite_thresholds_win_between_levels_too(logs, tmp_path):
    calibrator = replace(calibrators()["ocular"], tree=TreeSettings(max_depth=9, min_leaf=12))
    calibration = calibrator.fit(noisy(on_speed_grid(logs)), MODEL, STATE_COV, seed=0)
    with pytest.warns(UserWarning, match="fewer than the"):
        export(calibration, tmp_path / "robot", 0.02)
    reader = reader_of(tmp_path / "robot")
    with pytest.warns(UserWarning, match="fewer than the"):
        wanted = calibration.threshold(logs.inputs, 0.02)
    found = reader.thresholds(calibration.process(logs.inputs))
    assert np.array_equal(found, wanted)
    assert 0 < np.isinf(wanted).sum() < len(wanted)


def test_the_reader_is_sixty_lines_and_needs_numpy_alone():
    text = READER.read_text()
    assert len(text.splitlines()) <= 60
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert imported == {"json", "pathlib", "numpy"}


def test_onnx_gives_the_same_latents_nearly(logs, tmp_path):
    calibration = calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0)
    about = export(calibration, tmp_path / "robot", 0.1)
    assert 0 < about["onnx_deviation"] < 1e-5
    cells = logs.inputs.footprints.cells
    latents = onnx_encoder.run(tmp_path / "robot" / "encoder.onnx", cells)
    np.testing.assert_allclose(latents, calibration.encoder.encode(cells), atol=1e-5)
    rows = calibration.process(logs.inputs)
    rows[:, 3:] = latents[logs.inputs.footprint_index]
    same = calibration.partition.apply(rows) == calibration.cells(logs.inputs)
    assert same.mean() > 0.999


def test_an_encoder_that_comes_out_otherwise_is_not_exported(logs, tmp_path, monkeypatch):
    calibration = calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0)
    honest = onnx_encoder.run
    monkeypatch.setattr(onnx_encoder, "run", lambda path, cells: honest(path, cells) + 0.01)
    with pytest.raises(OcularError, match="latents deviate by"):
        export(calibration, tmp_path / "robot", 0.1)
    assert list(tmp_path.iterdir()) == []


def test_an_export_is_written_whole_or_refused(logs, tmp_path, monkeypatch):
    calibration = calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0)
    export(calibration, tmp_path / "robot", 0.1)
    assert json.loads((tmp_path / "robot" / "calibration.json").read_text())["method"] == "ocular"
    with pytest.raises(InputError, match="it exists; allowed is a new name"):
        export(calibration, tmp_path / "robot", 0.1)
    with pytest.raises(InputError, match="a directory that does not exist"):
        export(calibration, tmp_path / "none" / "robot", 0.1)
    monkeypatch.setattr(onnx_encoder.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"onnx and onnxruntime not installed.*ocular\[export\]"):
        export(calibration, tmp_path / "other", 0.1)
    export(
        LocalCalibrator("lucca", "position", tree=TREE).fit(logs, MODEL, STATE_COV, seed=0),
        tmp_path / "l",
        0.1,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l", "robot"]


def test_every_file_of_an_export_is_accounted_for(logs, tmp_path):
    export(calibrators()["lucca"].fit(logs, MODEL, STATE_COV, seed=0), tmp_path / "robot", 0.1)
    check_export(tmp_path / "robot")
    for file in sorted((tmp_path / "robot").iterdir()):
        data = file.read_bytes()
        for damaged in (data[:-1], data + b"x", bytes([data[0] ^ 1]) + data[1:]):
            file.write_bytes(damaged)
            with pytest.raises(DamagedFileError, match="files differ"):
                check_export(tmp_path / "robot")
        file.unlink()
        with pytest.raises(InputError if file.name == CHECKSUMS else DamagedFileError):
            check_export(tmp_path / "robot")
        file.write_bytes(data)
    check_export(tmp_path / "robot")
    (tmp_path / "robot" / "more.npy").write_bytes(b"")
    with pytest.raises(DamagedFileError, match=r"more\.npy"):
        check_export(tmp_path / "robot")


def test_the_reader_knows_the_features_of_a_robot_that_is_told_speeds():
    poses = np.random.default_rng(0).normal(size=(40, 3))
    actions = np.random.default_rng(1).normal(size=(40, 2))
    reader = reader_of_features("speeds")
    assert np.array_equal(reader.rows(poses, actions, np.zeros(40)), actions)


def reader_of_features(name):
    spec = importlib.util.spec_from_file_location("reader", READER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    reader = module.Reader.__new__(module.Reader)
    reader.about, reader.arrays = {"features": name}, {}
    return reader
