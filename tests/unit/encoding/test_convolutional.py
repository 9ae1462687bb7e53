from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from ocular.encoding import ConvEncoder, Encoder, kernels
from ocular.encoding.convolutional import CHANNELS
from ocular.errors import InputError
from ocular.records import FootprintGeometry, Labels

LABELS = ("OCCUPIED", "UNKNOWN", "NOMINAL", "LOW_FRICTION", "GRASS", "MUD")


def random_encoder(labels: int, angles: int, ranges: int, dim: int = 6, seed: int = 0) -> ConvEncoder:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    inputs = (labels, *CHANNELS)
    return ConvEncoder(
        labels=LABELS[:labels],
        geometry=FootprintGeometry(angles, ranges),
        kernels=tuple(normal(c, inputs[n], 4, 4) for n, c in enumerate(CHANNELS)),
        biases=tuple(normal(c) for c in CHANNELS),
        projection=normal(dim, CHANNELS[-1] * angles * ranges // 64),
        offset=normal(dim),
    )


def torch_latents(encoder: ConvEncoder, cells: Labels) -> np.ndarray:
    x = nn.functional.one_hot(torch.from_numpy(cells).long(), len(encoder.labels)).permute(0, 3, 1, 2).float()
    for kernel, bias in zip(encoder.kernels, encoder.biases, strict=True):
        convolved = nn.functional.conv2d(x, torch.from_numpy(kernel), torch.from_numpy(bias), 2, 1)
        x = convolved.relu()
    latents = nn.functional.linear(
        x.flatten(1), torch.from_numpy(encoder.projection), torch.from_numpy(encoder.offset)
    )
    return latents.numpy()


def patches(rng: np.random.Generator, n: int, labels: int, angles: int, ranges: int) -> Labels:
    """Large areas of one label with straight and slanted edges, and a few lone pixels."""
    cells = np.full((n, angles, ranges), rng.integers(labels), np.uint8)
    i, j = np.mgrid[:angles, :ranges]
    for image in cells:
        for _ in range(3):
            a, b, c = rng.normal(size=3) * (1, 1, angles / 2)
            image[a * (i - angles / 2) + b * (j - ranges / 2) > c] = rng.integers(labels)
        image[rng.integers(angles), rng.integers(ranges)] = rng.integers(labels)
    return cells


def noise(rng: np.random.Generator, n: int, labels: int, angles: int, ranges: int) -> Labels:
    return rng.integers(0, labels, (n, angles, ranges)).astype(np.uint8)


SHAPES = [(4, 240, 80, 6), (3, 8, 8, 6), (6, 16, 8, 9), (5, 8, 24, 1), (4, 48, 32, 16)]


@pytest.mark.parametrize(("labels", "angles", "ranges", "dim"), SHAPES)
@pytest.mark.parametrize("draw", [patches, noise])
def test_agrees_with_torch(draw, labels: int, angles: int, ranges: int, dim: int) -> None:
    encoder = random_encoder(labels, angles, ranges, dim)
    cells = draw(np.random.default_rng(1), 6, labels, angles, ranges)
    expected = torch_latents(encoder, cells)
    assert np.abs(encoder.encode(cells) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(("labels", "angles", "ranges", "dim"), SHAPES)
def test_uniform_footprints_agree_with_torch(labels: int, angles: int, ranges: int, dim: int) -> None:
    encoder = random_encoder(labels, angles, ranges, dim)
    cells = np.repeat(np.arange(labels, dtype=np.uint8), angles * ranges).reshape(labels, angles, ranges)
    expected = torch_latents(encoder, cells)
    assert np.abs(encoder.encode(cells) - expected).max() <= 1e-5 * np.abs(expected).max()
    assert len(np.unique(encoder.encode(cells), axis=0)) == labels


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(4, 48, 24), (3, 8, 8), (5, 16, 8)]))
def test_the_known_regions_change_no_bit(seed: int, shape: tuple[int, int, int]) -> None:
    """Computing every position the long way gives the very latents of the fast path."""
    labels, angles, ranges = shape
    tables = random_encoder(labels, angles, ranges).tables
    cells = patches(np.random.default_rng(seed), 1, labels, angles, ranges)[0]
    fast, slow = kernels.make_scratch(tables, angles, ranges), kernels.make_scratch(tables, angles, ranges)
    out = np.empty(6)
    kernels.encode_one(cells, tables, fast, out)
    for classes in (slow.class1, slow.class2, slow.class3):
        classes[:] = kernels.MIXED
    kernels.forward(cells, tables, slow)
    np.testing.assert_array_equal(out, slow.total[:6])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), threads=st.integers(1, 5), n=st.integers(0, 9))
def test_neither_batch_nor_threads_change_a_bit(seed: int, threads: int, n: int) -> None:
    encoder = random_encoder(4, 24, 16)
    cells = patches(np.random.default_rng(seed), 9, 4, 24, 16)
    alone = np.array([encoder.encode(image[None])[0] for image in cells])
    np.testing.assert_array_equal(encoder.encode(cells), alone)
    np.testing.assert_array_equal(encoder.encode(cells[::-1][:n], threads=threads), alone[::-1][:n])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), order=st.permutations(range(5)))
def test_relabelling_changes_no_bit(seed: int, order: list[int]) -> None:
    encoder = random_encoder(5, 16, 24)
    cells = patches(np.random.default_rng(seed), 4, 5, 16, 24)
    renamed = replace(
        encoder,
        labels=tuple(encoder.labels[k] for k in order),
        kernels=(encoder.kernels[0][:, order], *encoder.kernels[1:]),
    )
    new_index = np.argsort(order).astype(np.uint8)
    np.testing.assert_array_equal(renamed.encode(new_index[cells]), encoder.encode(cells))


def test_every_pixel_matters() -> None:
    encoder = random_encoder(3, 16, 16)
    plain = np.zeros((1, 16, 16), np.uint8)
    changed = np.repeat(plain, 256, axis=0)
    changed[np.arange(256), np.arange(256) // 16, np.arange(256) % 16] = 2
    assert (encoder.encode(changed) != encoder.encode(plain)).any(axis=1).all()


def test_arrays_there_and_back() -> None:
    encoder = random_encoder(4, 16, 8)
    again = ConvEncoder.from_arrays(encoder.to_arrays(), encoder.labels, encoder.geometry)
    cells = noise(np.random.default_rng(0), 5, 4, 16, 8)
    np.testing.assert_array_equal(again.encode(cells), encoder.encode(cells))
    protocol: Encoder = encoder
    assert protocol.dim == 6


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            np.zeros((2, 16, 16), np.uint8),
            r"footprint cells has shape \(2, 16, 16\); allowed is \(any, 16, 8\)",
        ),
        (np.zeros((2, 16, 8), np.int64), "dtype int64; allowed is uint8"),
        (
            np.full((2, 16, 8), 4, np.uint8),
            "hold the label 4; allowed are 0=OCCUPIED, 1=UNKNOWN, 2=NOMINAL, 3=",
        ),
    ],
)
def test_refuses_other_footprints(cells: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        random_encoder(4, 16, 8).encode(cells)


def test_refuses_zero_threads() -> None:
    with pytest.raises(InputError, match="threads is 0; allowed is at least 1"):
        random_encoder(4, 16, 8).encode(np.zeros((1, 16, 8), np.uint8), threads=0)


def test_refuses_other_weights() -> None:
    encoder = random_encoder(4, 16, 8)
    with pytest.raises(InputError, match="20 x 8 cells cannot be encoded; allowed are multiples of 8"):
        replace(encoder, geometry=FootprintGeometry(20, 8))
    with pytest.raises(InputError, match=r"projection has shape \(6, 64\); allowed is \(6, 128\)"):
        replace(encoder, geometry=FootprintGeometry(32, 8))
    with pytest.raises(InputError, match=r"kernel1 has shape \(8, 4, 4, 4\); allowed is \(8, 5, 4, 4\)"):
        replace(encoder, labels=LABELS[:5])
    with pytest.raises(InputError, match="offset has dtype float64; allowed is float32"):
        replace(encoder, offset=encoder.offset.astype(np.float64))
    with pytest.raises(InputError, match="offset has 6 values that are not finite"):
        replace(encoder, offset=encoder.offset * np.float32(np.nan))


def test_encoding_needs_no_torch() -> None:
    code = "import sys, ocular.encoding; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
