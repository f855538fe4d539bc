"""The training loops that are compared; each is a function `train(work, on_step)`."""
