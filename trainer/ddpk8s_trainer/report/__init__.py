"""One HTML page that tells how a training went."""

from ddpk8s_trainer.report.page import write_report

__all__ = ["write_report"]
