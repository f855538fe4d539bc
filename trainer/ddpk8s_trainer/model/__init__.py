"""The model: built or loaded, checked against tokenizer and data, and prepared for training."""

from ddpk8s_trainer.model.load import LoadedModel, load_model
from ddpk8s_trainer.model.positions import check_length

__all__ = ["LoadedModel", "check_length", "load_model"]
