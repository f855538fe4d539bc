"""Peak memory of this process."""

import resource
import sys


def peak_memory_bytes(device_type: str) -> int:
    """Return the peak memory in bytes: allocated by torch on a CUDA device, else resident in host memory.

    Args:
        device_type: `cuda`, or anything else for the host.
    """
    if device_type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return peak if sys.platform == "darwin" else peak * 1024
