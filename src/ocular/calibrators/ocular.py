"""OCULAR: cells in body velocity, action and the latent of what is seen; and its blind ablation."""

from __future__ import annotations

from ocular.calibrators.base import EncoderSource, LocalCalibrator
from ocular.encoding import ConvEncoder, Sights, TrainingSettings
from ocular.partition import TreeSettings
from ocular.progress import progress


def train_encoder(footprints: Sights, seed: int, settings: TrainingSettings | None = None) -> ConvEncoder:
    """The default encoder source: train one, with the default settings unless told."""
    from ocular.encoding.training import train  # loads torch, which only training needs

    settings = settings or TrainingSettings()
    with progress("training the encoder", settings.epochs) as advance:

        def tell(_: int, loss: float, __: float) -> None:
            advance(f"held-out loss {loss:.4f}")

        return train(footprints, settings, seed, progress=tell)[0]


def ocular(
    encoder: EncoderSource = train_encoder,
    *,
    features: str = "body",
    tree: TreeSettings = TreeSettings(),
    fallback: bool = False,
) -> LocalCalibrator:
    """X = (v, a, latent); `features="world"` gives the frame that the paper's figures come from."""
    return LocalCalibrator("ocular", features, encoder=encoder, tree=tree, fallback=fallback)


def ocular_no_encode(
    *, features: str = "world", tree: TreeSettings = TreeSettings(), fallback: bool = False
) -> LocalCalibrator:
    """X = (v, a): the paper's ablation without perception, in the frame of the paper's figures."""
    return LocalCalibrator("ocular_no_encode", features, tree=tree, fallback=fallback)
