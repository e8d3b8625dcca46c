"""Pictures as inputs of models: read from files, and preprocessed as a part of the model."""

from crosschip.preprocessing.pictures import is_picture, read_picture, takes_pictures
from crosschip.preprocessing.preprocess import Preprocess

__all__ = ["Preprocess", "is_picture", "read_picture", "takes_pictures"]
