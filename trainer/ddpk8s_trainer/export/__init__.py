"""Write the model as a Hugging Face directory, and believe it only once a fresh process read it the same."""

from ddpk8s_trainer.export.digest import parameters_digest
from ddpk8s_trainer.export.write import ExportResult, export_model

__all__ = ["ExportResult", "export_model", "parameters_digest"]
