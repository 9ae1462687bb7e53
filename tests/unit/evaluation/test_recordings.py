import numpy as np
import pytest
from tests.unit.evaluation.test_episodes import drive, hall

from ocular.errors import DamagedFileError, InputError
from ocular.evaluation.coverage import CaseResults
from ocular.evaluation.recordings import TrajectoryFile, cases_path, read_cases, write_cases
from ocular.records import FootprintGeometry, Footprints, Inputs
from ocular.sealed import read_sealed, write_sealed


def test_drives_come_back_by_episode(tmp_path):
    kept = TrajectoryFile.under(tmp_path, "S", "lucca")
    assert kept.read() == {}
    drives = {episode: drive(hall(), [(1.2, 0.75)], seed=episode) for episode in (10, 2)}
    for episode, result in drives.items():
        kept.add(episode, result)
    kept.add(10, drives[10])
    back = kept.read()
    assert list(back) == [2, 10]
    for episode, result in drives.items():
        assert back[episode].outcome == result.outcome
        np.testing.assert_allclose(back[episode].states, result.states, atol=1e-6)
        np.testing.assert_allclose(back[episode].actions, result.actions, atol=1e-6)
        np.testing.assert_allclose(back[episode].scales, result.scales, atol=1e-5)


def test_a_cut_recording_is_noticed(tmp_path):
    kept = TrajectoryFile.under(tmp_path, "S", "lucca")
    kept.add(0, drive(hall(), [(1.2, 0.75)]))
    kept.path.write_bytes(kept.path.read_bytes()[:-7])
    with pytest.raises(DamagedFileError):
        kept.read()


def cases_of(n: int) -> Inputs:
    geometry = FootprintGeometry(angles=8, ranges=8)
    seen = Footprints(np.zeros((1, 8, 8), np.uint8), ("OCCUPIED", "UNKNOWN"), geometry)
    return Inputs(np.ones((n, 4)), np.ones((n, 2)), np.zeros(n), np.zeros(n, np.int64), seen)


def test_cases_come_back(tmp_path):
    rng = np.random.default_rng(0)
    results = {name: CaseResults(rng.random(5), np.array([1, 2, np.inf, 3, 0])) for name in ("nocp", "lucca")}
    path = cases_path(tmp_path, "S", 3)
    write_cases(path, cases_of(5), np.array([True, False, True, True, False]), results)
    back = read_cases(path)
    assert back.ood.tolist() == [True, False, True, True, False]
    assert back.states.shape == (5, 4)
    for name, result in results.items():
        np.testing.assert_allclose(back.methods[name].coverage, result.coverage, atol=1e-7)
        np.testing.assert_array_equal(back.methods[name].relative_volume, result.relative_volume)


def test_a_result_for_each_case_is_asked_for(tmp_path):
    short = {"nocp": CaseResults(np.ones(4), np.ones(4))}
    with pytest.raises(InputError, match=r"nocp\.coverage has 4 rows; allowed are 5, one a case"):
        write_cases(tmp_path / "cases", cases_of(5), np.zeros(5, bool), short)


def sealed_again(path, kind, **changes):
    sealed = read_sealed(path, kind=kind, version=1)
    manifest = sealed.manifest | changes.pop("manifest", {})
    write_sealed(path, kind=kind, version=1, manifest=manifest, arrays=sealed.arrays | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"manifest": {"outcomes": {"0": "won"}}},
        {"manifest": {"outcomes": {"first": "success"}}},
        {"manifest": {"outcomes": ["success"]}},
        {"manifest": {"more": 1}},
        {"0.scales": np.ones(3, np.float32)},
        {"0.scales": np.ones(5)},
        {"0.states": np.full((6, 4), np.nan, np.float32)},
        {"more": np.ones(3)},
    ],
)
def test_drives_that_contradict_themselves_are_refused(tmp_path, changes):
    kept = TrajectoryFile.under(tmp_path, "S", "lucca")
    kept.add(0, drive(hall(), [(1.2, 0.75)]))
    sealed_again(kept.path, "trajectories", **changes)
    with pytest.raises(DamagedFileError, match="not a sound file of trajectories"):
        kept.read()


@pytest.mark.parametrize(
    "changes",
    [
        {"manifest": {"methods": ["lucca"]}},
        {"manifest": {"methods": 3}},
        {"ood": np.zeros(4, bool)},
        {"ood": np.zeros(5)},
        {"nocp.coverage": np.full(5, 1.5, np.float32)},
        {"nocp.volume": np.full(5, np.nan, np.float32)},
    ],
)
def test_cases_that_contradict_themselves_are_refused(tmp_path, changes):
    results = {"nocp": CaseResults(np.ones(5), np.ones(5))}
    write_cases(tmp_path / "cases", cases_of(5), np.zeros(5, bool), results)
    sealed_again(tmp_path / "cases", "coverage cases", **changes)
    with pytest.raises(DamagedFileError, match="not a sound file of test cases"):
        read_cases(tmp_path / "cases")
