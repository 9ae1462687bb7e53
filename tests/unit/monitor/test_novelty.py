"""Novelty: a stated false-alarm rate, power against new labels and patterns, and a search without error."""

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL

from ocular.errors import DamagedFileError, InputError
from ocular.monitor import Novelty
from ocular.monitor.novelty import load, save
from ocular.monitor.windows import count_labels, cover, nearest
from ocular.records import FootprintGeometry, Footprints
from ocular.sealed import read_sealed, write_sealed

GEOMETRY = FootprintGeometry(angles=60, ranges=20)
OCCUPIED, UNKNOWN, NOMINAL, ICE = range(4)


def walls(rng, n, *, posts=False):
    """Footprints of one straight wall each, at random; a thin post before it where wanted."""
    bearing, depth = GEOMETRY.bearings, np.empty((n, 60))
    for row in range(n):
        away, turn = rng.uniform(0.15, 0.7), rng.uniform(-1.2, 1.2)
        along = np.cos(bearing - turn)
        depth[row] = np.where(along > 0.05, away / np.maximum(along, 0.05), 9.0)
        if posts:
            left = rng.integers(15, 40)
            depth[row, left : left + 5] = 0.5 * min(0.5, depth[row, left : left + 5].min())
    ranges = GEOMETRY.distances
    hit = np.searchsorted(ranges, depth)[:, :, None]
    k = np.arange(20)
    return np.where(k < hit, NOMINAL, np.where(k == hit, OCCUPIED, UNKNOWN)).astype(np.uint8)


@pytest.fixture(scope="module")
def novelty():
    return Novelty.fit(Footprints(walls(np.random.default_rng(0), 1500), LABELS, GEOMETRY), seed=0)


def test_the_false_alarm_rate_is_the_stated_one_on_average_over_logs():
    rng, false, trials = np.random.default_rng(1), np.zeros(2), 0
    for seed in range(40):
        logged = Footprints(walls(rng, 80), LABELS, GEOMETRY)
        p = Novelty.fit(logged, seed).p_values(walls(rng, 100))
        false += [(p <= eps).sum() for eps in (0.05, 0.1)]
        trials += len(p)
    # Runs share their calibration, which widens the spread: 40 of them, each with a Beta law of its own.
    for count, eps in zip(false, (0.05, 0.1), strict=True):
        assert count / trials <= eps + 4 * np.sqrt(eps / 40 / 40)


def test_patterns_and_labels_that_were_never_seen_are_new(novelty):
    rng = np.random.default_rng(2)
    assert (novelty.p_values(walls(rng, 300, posts=True)) <= 0.05).mean() >= 0.95
    icy = walls(rng, 100)
    icy[:, 30, 1] = ICE  # a single pixel
    assert (novelty.p_values(icy) <= 1 / (len(novelty.calibrated) + 1)).all()
    assert (novelty.p_values(walls(rng, 300)) <= 0.05).mean() < 0.1


def test_the_search_finds_what_a_full_comparison_finds():
    rng = np.random.default_rng(3)
    bank = rng.integers(0, 4, (200, 48), dtype=np.uint8)
    order = np.argsort(count_labels(bank, 4)[:, 0], kind="stable")
    bank = bank[order]
    counts = count_labels(bank, 4)
    probes = np.concatenate([bank[:50], rng.integers(0, 4, (50, 48), dtype=np.uint8)])
    probes[:30, :5] = 0
    for probe, own in zip(probes, count_labels(probes, 4), strict=True):
        best = (bank != probe).sum(axis=1).min()
        assert nearest(probe, own, bank, counts, 0) == best
        assert nearest(probe, own, bank, counts, 10) == max(best, 10)


def test_a_cover_leaves_nothing_out():
    rng = np.random.default_rng(4)
    pixels = rng.integers(0, 2, (400, 12), dtype=np.uint8)
    kept = cover(pixels, 2, slack=2)
    assert 1 < len(kept) < 200
    assert (pixels[:, None] != kept).sum(axis=2).min(axis=1).max() <= 2


def test_the_order_and_repetition_of_logs_do_not_matter():
    cells = walls(np.random.default_rng(5), 100)
    first = Novelty.fit(Footprints(cells, LABELS, GEOMETRY), seed=0)
    again = Novelty.fit(Footprints(np.concatenate([cells[::-1], cells]), LABELS, GEOMETRY), seed=0)
    np.testing.assert_array_equal(first.examples, again.examples)
    np.testing.assert_array_equal(first.calibrated, again.calibrated)


def test_saved_and_loaded_it_says_the_same(novelty, tmp_path):
    save(novelty, tmp_path / "a.novelty")
    back = load(tmp_path / "a.novelty")
    save(back, tmp_path / "b.novelty")
    assert (tmp_path / "a.novelty").read_bytes() == (tmp_path / "b.novelty").read_bytes()
    cells = walls(np.random.default_rng(6), 20, posts=True)
    np.testing.assert_array_equal(back.p_values(cells), novelty.p_values(cells))


def test_what_is_wrong_is_refused(novelty, tmp_path):
    with pytest.raises(InputError, match="19 distinct footprints; allowed is at least 20"):
        Novelty.fit(Footprints(walls(np.random.default_rng(0), 19), LABELS, GEOMETRY), seed=0)
    with pytest.raises(InputError, match=r"footprint cells has shape \(1, 16, 8\)"):
        novelty.score(np.zeros((1, SMALL.angles, SMALL.ranges), np.uint8))
    write_sealed(tmp_path / "x", kind="novelty", version=1, manifest={"labels": ["a"]}, arrays={})
    with pytest.raises(DamagedFileError, match="not a sound novelty test"):
        load(tmp_path / "x")
    manifest = {"labels": list(LABELS), "angles": 60, "ranges": 20, "field_of_view": 2.0, "max_range": 0.65}
    arrays = {
        "examples": novelty.examples[::-1],
        "known_labels": novelty.known_labels,
        "calibrated": novelty.calibrated,
    }
    write_sealed(tmp_path / "y", kind="novelty", version=1, manifest=manifest, arrays=arrays)
    with pytest.raises(DamagedFileError, match="out of order"):
        load(tmp_path / "y")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("angles", 10**15, "allowed are at most"),
        ("angles", 60.0, "whole number"),
        ("known_labels", np.array([0, 200], np.uint8), "known labels"),
        ("calibrated", np.array([-5, 3]), "calibrated values"),
        ("examples", np.zeros((2, 3), np.float64), "dtype float64"),
        ("more", np.zeros(3), "the arrays are"),
    ],
)
def test_content_that_contradicts_itself_is_refused(novelty, tmp_path, field, value, message):
    save(novelty, tmp_path / "x")
    sealed = read_sealed(tmp_path / "x", kind="novelty", version=1)
    changed = sealed.arrays if isinstance(value, np.ndarray) else sealed.manifest
    changed[field] = value
    write_sealed(tmp_path / "x", kind="novelty", version=1, manifest=sealed.manifest, arrays=sealed.arrays)
    with pytest.raises(DamagedFileError, match=message):
        load(tmp_path / "x")
