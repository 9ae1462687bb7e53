"""Footprint to latent: what the encoders offer, and the paper's convolutional one."""

from ocular.encoding.base import Encoder, FootprintStream, Sights
from ocular.encoding.convolutional import ConvEncoder
from ocular.encoding.settings import TrainingSettings
from ocular.encoding.untrained import untrained

__all__ = ["ConvEncoder", "Encoder", "FootprintStream", "Sights", "TrainingSettings", "untrained"]
