"""Randomness by name: every stage of a run draws from its own stream, whatever ran before it or beside it."""

from __future__ import annotations

import hashlib

import numpy as np

from ocular.errors import check_whole


def seed_sequence(seed: int, *names: object) -> np.random.SeedSequence:
    """A child of `seed` that depends on the names alone, so that workers may come in any order."""
    check_whole("seed", seed, 0)
    digest = hashlib.sha256("\x1f".join(map(str, names)).encode()).digest()
    return np.random.SeedSequence(seed, spawn_key=tuple(np.frombuffer(digest[:16], np.uint32).tolist()))


def stream(seed: int, *names: object) -> np.random.Generator:
    """A generator for the stage with these names."""
    return np.random.default_rng(seed_sequence(seed, *names))


def integer(seed: int, *names: object) -> int:
    """A 31-bit seed for libraries that take an integer."""
    return int(seed_sequence(seed, *names).generate_state(1)[0] >> 1)
