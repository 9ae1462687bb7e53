"""Hostile numbers, and what must come out of them: each check draws some and tells what went wrong.

What is inside a region by exact arithmetic must be inside, up to a tolerance stated here. Double precision
knows the inverse of a covariance of condition number k to about 1e-16 k of itself; so do scores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from scipy.ndimage import distance_transform_edt
from scipy.special import chdtri

from ocular.calibrators import Calibration
from ocular.conformal import CellScores, Region, conformal_quantile, squared_mahalanobis
from ocular.deployment import Deployment
from ocular.deployment.export import export
from ocular.deployment.ocular_reader import Reader
from ocular.deployment.query import Verdict
from ocular.dynamics import LinearGaussian
from ocular.encoding import ConvEncoder
from ocular.monitor import Policy
from ocular.partition import WholeSpace
from ocular.planning.ellipse import Obstacles, ellipse, hits_obstacle, penetration, within_seen
from ocular.planning.rollout import LARGEST_TRACE, Rollout
from ocular.planning.safety import SafetyFilter
from ocular.planning.scale_field import ConstantScale
from ocular.records import Floats, Gaussian, Labels
from stress.artefact_kinds import MODEL, calibration, logs

NAN, LOST = "not a number", "not contained"
Problem = tuple[str, str]
Check = Callable[[np.random.Generator], Iterator[Problem]]

WORST_CONDITION = 12.0  # power of ten
SINGLE = 2e-3  # planners work in single precision: of a region's longest semi-axis, they know so much
OCCUPIED, UNKNOWN, FREE = 0, 1, 2


def covariance(rng: np.random.Generator, d: int, scale: float) -> tuple[Floats, Floats]:
    """A factor F, and F F^T, whose condition number is up to 1e12."""
    axes, _ = np.linalg.qr(rng.normal(size=(d, d)))
    powers = rng.uniform(-WORST_CONDITION / 2, 0, d) * rng.integers(0, 2)
    factor = scale * axes * 10.0**powers
    cov = factor @ factor.T
    return factor, (cov + cov.T) / 2


def exact_score(cov: Floats, deviation: Floats) -> Fraction:
    """deviation^T cov^-1 deviation in rational numbers, by elimination."""
    d = len(cov)
    rows = [[Fraction(x) for x in (*row, y)] for row, y in zip(cov.tolist(), deviation.tolist(), strict=True)]
    for k in range(d):
        pivot = max(range(k, d), key=lambda row: abs(rows[row][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(d):
            if i != k:
                ratio = rows[i][k] / rows[k][k]
                rows[i] = [a - ratio * b for a, b in zip(rows[i], rows[k], strict=True)]
    return sum(
        (
            Fraction(y) * row[d] / row[k]
            for k, (row, y) in enumerate(zip(rows, deviation.tolist(), strict=True))
        ),
        Fraction(0),
    )


def scores_of_regular_covariances(rng: np.random.Generator) -> Iterator[Problem]:
    """Score, region and semi-axes against exact arithmetic, at sizes from 1e-120 to 1e120."""
    d, scale = int(rng.integers(1, 7)), 10.0 ** rng.uniform(-60, 60)
    factor, cov = covariance(rng, d, scale)
    reach = 10.0 ** rng.uniform(-60, 60)
    deviation = factor @ (rng.normal(size=d) * reach)
    exact = exact_score(cov, deviation)
    tolerance = 1e-10 + 64 * np.finfo(float).eps * np.linalg.cond(cov)
    prediction = Gaussian(np.zeros(d), cov)
    found = float(squared_mahalanobis(prediction, deviation))
    if np.isnan(found):
        yield NAN, f"score of {deviation} under {cov}"
    elif abs(Fraction(found) / exact - 1) > tolerance:
        yield LOST, f"score {found} instead of {float(exact)}, condition {np.linalg.cond(cov):.2g}"
    region = Region(prediction, np.array(float(exact) * (1 + 2 * tolerance)))
    if not region.contains(deviation):
        yield LOST, f"{deviation} with score {float(exact)} in {region}"
    lengths, directions = region.semi_axes()
    if np.isnan(lengths).any() or np.isnan(directions).any() or np.isnan(region.volume()):
        yield NAN, f"semi-axes {lengths} of {region}"
    if np.linalg.norm(deviation) > lengths[-1] * (1 + 1e-9):
        yield LOST, f"{deviation} is further than the longest semi-axis {lengths}"


def scores_of_singular_covariances(rng: np.random.Generator) -> Iterator[Problem]:
    """Small whole numbers, so that F F^T and F u are exact; what leaves F's range is impossible."""
    d = int(rng.integers(2, 7))
    rank = int(rng.integers(1, d))
    factor = rng.integers(-8, 9, (d, rank)).astype(float)
    if np.linalg.matrix_rank(factor) < rank:
        return
    unit = 2.0 ** rng.integers(-300, 300)
    u = rng.integers(-64, 65, rank) / 16
    prediction = Gaussian(np.zeros(d), unit * unit * factor @ factor.T)
    exact = float(u @ u)
    region = Region(prediction, np.array(exact * (1 + 1e-9)))
    if not region.contains(unit * (factor @ u)):
        yield LOST, f"{factor @ u} with score {exact} under {factor} of unit {unit}"
    outside = unit * np.linalg.svd(factor)[0][:, -1]
    if not np.isinf(squared_mahalanobis(prediction, outside)):
        yield LOST, f"{outside} is possible under {factor} of unit {unit}"
    lengths = region.semi_axes()[0]
    if np.isnan(lengths).any() or region.volume() != 0:
        yield NAN, f"semi-axes {lengths}, volume {region.volume()}"


def hostile_scores(rng: np.random.Generator, n: int) -> Floats:
    """From 1e-300 to 1e300, with ties, zeros and infinity among them."""
    scores = 10.0 ** rng.uniform(-300, 300, n)
    odd = rng.random(n) < 0.3
    scores[odd] = rng.choice([0.0, 1e-300, 1e300, 1.0, np.inf], odd.sum())
    return scores


def hostile_alpha(rng: np.random.Generator) -> float:
    """From 1e-6 to 0.999; nines and tenths, which binary numbers miss, are frequent."""
    kind = rng.integers(3)
    if kind == 0:
        return float(rng.choice([1e-6, 0.05, 0.1, 0.2, 0.3, 0.7, 0.9, 0.99, 0.999]))
    return float(10.0 ** rng.uniform(-6, -4e-4)) if kind == 1 else float(rng.uniform(1e-6, 0.999))


def thresholds(rng: np.random.Generator) -> Iterator[Problem]:
    """At least ceil((n + 1)(1 - alpha)) scores lie within the threshold, and fewer within any smaller one."""
    n, alpha = int(rng.integers(0, 200)), hostile_alpha(rng)
    scores = np.sort(hostile_scores(rng, n))
    found = conformal_quantile(scores, alpha)
    wanted = -((n + 1) * (Fraction(repr(alpha)) - 1) // 1)  # ceil
    if np.isnan(found):
        yield NAN, f"quantile of {scores} at {alpha}"
    if np.isinf(found):
        if wanted <= n and not np.isinf(scores[wanted - 1]):
            yield LOST, f"infinity for rank {wanted} of {n}"
    elif not ((scores <= found).sum() >= wanted > (scores < found).sum()):
        yield LOST, f"{found} holds {(scores <= found).sum()} of {n}, wanted {wanted}"


@cache
def trees() -> tuple[Calibration, ...]:
    """Calibrations whose scores are then replaced."""
    return tuple(calibration(method) for method in ("lucca", "ocular_no_encode", "ocular"))


def hostile_calibration(rng: np.random.Generator) -> Calibration:
    """A tree whose cells hold few or many, tiny or huge scores, of a model with a hostile covariance."""
    known = trees()[int(rng.integers(len(trees())))]
    cells = known.partition.n_cells
    n = int(rng.integers(0, 400))
    scores = CellScores.group(hostile_scores(rng, n), rng.integers(0, cells, n), cells)
    _, state_cov = covariance(rng, 4, 10.0 ** rng.uniform(-4, 0))
    model = LinearGaussian(MODEL.A, MODEL.B, MODEL.Q if rng.random() < 0.5 else 0 * MODEL.Q)
    return replace(known, scores=scores, model=model, state_cov=state_cov, fallback=bool(rng.integers(2)))


def answers(rng: np.random.Generator) -> Iterator[Problem]:
    """Thresholds by the library and by the exported reader; regions hold their centres."""
    known, alpha = hostile_calibration(rng), hostile_alpha(rng)
    some = logs(int(rng.integers(100)), 30).inputs
    found, scale = known.threshold(some, alpha), known.scale(some, alpha)
    region = known.region(some, alpha)
    if np.isnan(found).any() or np.isnan(scale).any() or np.isnan(region.semi_axes()[0]).any():
        yield NAN, f"thresholds {found}, scales {scale}"
    if not (found >= known.thresholds(alpha)[known.cells(some)]).all():
        yield LOST, "a threshold below that of its cell"
    if not region.contains(region.prediction.mean).all():
        yield LOST, "a region without its centre"
    if known.encoder is None:
        with tempfile.TemporaryDirectory() as folder:
            export(known, Path(folder, "robot"), alpha)
            reader = Reader(Path(folder, "robot"))
        theirs = reader.thresholds(reader.rows(some.states, some.actions, some.headings))
        if not np.array_equal(theirs, found):
            yield LOST, f"the reader says {theirs}, the library {found}"


def queries(rng: np.random.Generator) -> Iterator[Problem]:
    """On a robot: states of any size get an answer, and infinity is said."""
    known, alpha = hostile_calibration(rng), hostile_alpha(rng)
    robot = Deployment(known, alpha)
    state = rng.normal(size=4) * 10.0 ** rng.uniform(-300, 2)
    seen = None
    if known.encoder is not None:
        seen, _ = _one_in_sight(rng, known.encoder)
    answer = robot.query(state, rng.uniform(-0.9, 0.9, 2), seen, float(rng.uniform(-3, 3)))
    if np.isinf(answer.region.threshold) and answer.verdict not in (Verdict.UNBOUNDED, Verdict.UNJUDGED):
        yield LOST, f"{answer.verdict} without bounds"
    if np.isnan(answer.xi) or np.isnan(answer.ellipse.semi_axes).any() or np.isnan(answer.ellipse.angle):
        yield NAN, f"{answer}"


def obstacles_in_sight(rng: np.random.Generator) -> Iterator[Problem]:
    """On a robot: an obstacle whose centre lies in the region is never called clear."""
    known, alpha = trees()[-1], hostile_alpha(rng)
    assert known.encoder is not None
    _, state_cov = covariance(rng, 4, 10.0 ** rng.uniform(-3, 0))
    threshold = 10.0 ** rng.uniform(-3, 1) / np.trace(state_cov)
    scores = CellScores(np.full(1, threshold), np.array([0, 1]))
    one = {"partition": WholeSpace(), "features": None, "levels": None, "scores": scores}
    known = replace(known, state_cov=state_cov, **one)
    seen, obstacle = _one_in_sight(rng, known.encoder)
    heading, action, rest = float(rng.uniform(-3, 3)), rng.uniform(-0.9, 0.9, 2), np.zeros(4)
    step = MODEL.predict(Gaussian(rest, state_cov), action)
    lengths, directions = Region(step, np.array(threshold)).marginal().semi_axes()
    u = rng.normal(size=2)
    offset = directions @ (0.99 * rng.random() ** 0.1 * lengths * u / np.linalg.norm(u))
    turn = np.array([[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]])
    velocity = (turn @ obstacle - offset - step.mean[:2]) / MODEL.A[0, 2]
    state = np.concatenate([rng.uniform(-3, 3, 2), velocity])
    answer = Deployment(known, max(alpha, 0.5)).query(state, action, seen, heading)
    if answer.clear:
        yield LOST, f"clear, with an obstacle at {obstacle} in {answer.region}, heading {heading}"


def _one_in_sight(rng: np.random.Generator, encoder: ConvEncoder) -> tuple[Labels, Floats]:
    """A footprint with one OCCUPIED cell, and where that is in the robot's frame."""
    geometry, labels = encoder.geometry, encoder.labels
    cells = np.full((geometry.angles, geometry.ranges), labels.index("NOMINAL"), np.uint8)
    a, r = int(rng.integers(geometry.angles)), int(rng.integers(geometry.ranges))
    cells[a, r] = labels.index("OCCUPIED")
    way = geometry.bearings[a]
    return cells, geometry.distances[r] * np.array([np.cos(way), np.sin(way)])


def one_obstacle(rng: np.random.Generator) -> tuple[Obstacles, Floats]:
    """A map with a single OCCUPIED cell, and a point well inside of it."""
    size, resolution = 24, 10.0 ** rng.uniform(-2, 0)
    labels = np.full((size, size), FREE, np.uint8)
    row, column = rng.integers(0, size, 2)
    labels[row, column] = OCCUPIED
    origin = rng.uniform(-3, 3, 2)
    cap = float(rng.choice([3, 100])) * resolution
    distance = np.minimum(distance_transform_edt(labels != OCCUPIED) * resolution, cap).astype(np.float32)
    map_ = Obstacles(labels, distance, cap, UNKNOWN, resolution, *origin.tolist())
    return map_, origin + (np.array([column, row]) + rng.uniform(0.2, 0.8, 2)) * resolution


def ellipses(rng: np.random.Generator) -> Iterator[Problem]:
    """An ellipse that holds a point of an obstacle meets it, however thin, small or large it is."""
    map_, point = one_obstacle(rng)
    size = 10.0 ** (rng.uniform(-150, 150) if rng.random() < 0.2 else rng.uniform(-3, 2))
    factor, cov = covariance(rng, 2, size)
    if rng.random() < 0.2:
        factor[:, 0] = 0.0
        cov = factor @ factor.T
    u = rng.normal(size=2)
    centre = point - factor @ (0.99 * rng.random() ** 0.1 * u / np.linalg.norm(u))
    quantile = 10.0 ** rng.uniform(-100, 100) if rng.random() < 0.2 else 4.0
    if not np.abs(cov).max() < 1e300 * min(quantile, 1.0):
        return
    shape = ellipse(centre, cov / quantile, quantile)
    if np.abs(centre).max() * 1e-12 < map_.resolution and not hits_obstacle(*shape, map_):
        yield LOST, f"{shape} misses {point} on a map of {map_.resolution} m"
    if within_seen(*shape, map_) and not ((centre > (map_.x0, map_.y0)).all()):
        yield LOST, f"{shape} off the map is seen"
    depth = penetration(*shape, map_)
    if not 0 <= depth <= 1:
        yield NAN, f"penetration {depth} of {shape}"


def plans(rng: np.random.Generator) -> Iterator[Problem]:
    """Regions of the planner against double precision; beyond its reach they are given up, not lost."""
    xi = float(rng.choice([0.0, 1e-300, 1e-3, 1.0, 7.0, 1e6, 1e300, np.inf]))
    _, state_cov = covariance(rng, 4, 10.0 ** rng.uniform(-4, 1))
    model = LinearGaussian(MODEL.A, MODEL.B, MODEL.Q if rng.random() < 0.5 else 0 * MODEL.Q)
    state, field = np.concatenate([rng.uniform(-1, 1, 2), rng.normal(size=2)]), ConstantScale(xi)
    sequence = rng.uniform(-0.9, 0.9, (6, 2, 1)).astype(np.float32)
    exact, mean = state_cov, state
    for action, bundle in zip(
        sequence, Rollout(model, 7.8).steps(state, state_cov, 0.0, sequence, field), strict=True
    ):
        with np.errstate(over="ignore", invalid="ignore"):
            exact = xi * (model.A @ exact @ model.A.T + model.Q)
            mean = model.A @ mean + model.B @ action[:, 0]
            size = np.trace(exact)
        if bundle.lost[0]:
            if xi > 0 and size < 0.99 * LARGEST_TRACE and np.isfinite(size):
                yield LOST, f"given up at a trace of {size}"
            exact = np.full((4, 4), np.inf)
            continue
        if not size <= 1.01 * LARGEST_TRACE:
            yield LOST, f"a trace of {size} is not given up"
        if np.isnan(bundle.covs).any() or np.isnan(bundle.means).any():
            yield NAN, f"after xi = {xi}: {bundle.covs[..., 0]}"
        elif np.abs(bundle.covs[..., 0] - exact).max() > 1e-5 * size + 1e-37:
            yield LOST, f"{bundle.covs[..., 0]} instead of {exact}"
    yield from _filtered(rng, model, state_cov, xi)


def _filtered(
    rng: np.random.Generator, model: LinearGaussian, state_cov: Floats, xi: float
) -> Iterator[Problem]:
    """The safety filter lets no action pass whose region holds an obstacle."""
    map_, point = one_obstacle(rng)
    alpha, action = hostile_alpha(rng), rng.uniform(-0.9, 0.9, 2)
    velocity = rng.normal(size=2)
    step = model.predict(Gaussian(np.concatenate([[0, 0], velocity]), state_cov), action)
    shadow = Region(Gaussian(step.mean, step.cov), np.array(1.0)).marginal()
    lengths, directions = shadow.semi_axes()
    reach = np.sqrt(chdtri(4, alpha)) * np.sqrt(xi) * lengths
    if not np.isfinite(reach).all() or reach[-1] * SINGLE > 0.1 * map_.resolution:
        reach = np.minimum(
            reach, 0.1 * map_.resolution / SINGLE
        )  # so that single precision tells cells apart
    u = rng.normal(size=2)
    offset = directions @ (0.95 * rng.random() ** 0.1 * reach * u / np.linalg.norm(u))
    state = np.concatenate([point - offset - shadow.prediction.mean, velocity])
    verdict = SafetyFilter(model, state_cov, alpha=alpha, choices=2).check(
        state, 0.0, action, map_, ConstantScale(xi)
    )
    if np.isnan(verdict.region.mean).any() or np.isnan(verdict.region.cov).any():
        yield NAN, f"{verdict}"
    if verdict.clear:
        yield LOST, f"{verdict} lets pass what may end at {point}, xi = {xi}, alpha = {alpha}"


def watches(rng: np.random.Generator) -> Iterator[Problem]:
    """Monitor and policy through a few hundred hostile scores: p-values, capital and scales stay numbers."""
    known = hostile_calibration(rng)
    if rng.random() < 0.2:
        known = replace(known, scores=None)
    alpha = hostile_alpha(rng)
    policy = Policy(known, alpha, delta=float(10.0 ** rng.uniform(-6, -0.1)), seed=int(rng.integers(1000)))
    kind, cells = rng.integers(3), known.partition.n_cells
    for score in hostile_scores(rng, 300):
        score = float(score) if kind == 0 else (1e300, np.inf)[int(kind) - 1]
        reading = policy.monitor.score(int(rng.integers(cells)), score)
        policy.take(reading)
        if not 0 < reading.p <= 1 or np.isnan(reading.log_capital).any():
            yield NAN, f"{reading}"
            return
        if np.isnan(policy.scales).any() or not (policy.scales >= 0).all():
            yield NAN, f"scales {policy.scales} after {reading}"
            return


CHECKS: dict[str, Check] = {
    "regular": scores_of_regular_covariances,
    "singular": scores_of_singular_covariances,
    "thresholds": thresholds,
    "answers": answers,
    "queries": queries,
    "obstacles in sight": obstacles_in_sight,
    "ellipses": ellipses,
    "plans": plans,
    "watches": watches,
}
