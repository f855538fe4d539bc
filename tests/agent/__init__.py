"""Tests of the agent: real processes, real signals, real torchrun."""
