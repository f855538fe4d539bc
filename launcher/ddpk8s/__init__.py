"""ddpk8s: one spec file takes a PyTorch training from a laptop to a GPU cluster."""

__version__ = "0.1.0"
