"""Exit codes of the agent and of workers; Kubernetes' pod failure policy is written against them."""

TRAINED = 0
FAILED = 1
"""Training failed and the restarts are used up."""
BUG = 70
"""A bug of ours."""
MISTAKE = 78
"""A mistake in spec, code or data: never retried, since the same would happen again."""
STOPPED = 143
"""Stopped by SIGTERM, the state saved where the training can; or a process that cannot be killed."""
