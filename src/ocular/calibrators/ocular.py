"""OCULAR: cells in body velocity, action and the latent of what is seen; and its blind ablation."""

from __future__ import annotations

from ocular.calibrators.base import EncoderSource, LocalCalibrator
from ocular.partition import TreeSettings


def ocular(
    encoder: EncoderSource,
    *,
    features: str = "body",
    tree: TreeSettings = TreeSettings(),
    fallback: bool = False,
) -> LocalCalibrator:
    """X = (v, a, latent); `features="world"` gives the frame that the paper's figures come from."""
    return LocalCalibrator("ocular", features, encoder=encoder, tree=tree, fallback=fallback)


def ocular_no_encode(
    *, features: str = "body", tree: TreeSettings = TreeSettings(), fallback: bool = False
) -> LocalCalibrator:
    """X = (v, a): the paper's ablation without perception."""
    return LocalCalibrator("ocular_no_encode", features, tree=tree, fallback=fallback)
