"""Texts by which a rank shows that it is a victim: its peer was gone, or it waited in vain.

Whoever reports such a thing first is no culprit: it only noticed. Read in the sources and binaries of torch
2.15, gloo and NCCL 2.30; those of gloo and TCPStore were also seen in runs.
"""

WAITED = (
    "Timed out waiting ",  # gloo, a send or receive operation
    "Watchdog caught collective operation timeout",
    "watchdog got stuck",
    "To avoid data inconsistency, we are taking the entire process down",
    "wait timeout after",
    "The client socket has timed out",
    "Gloo connectFullMesh failed",
)
"""It waited for a peer that did not answer."""

CUT_OFF = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Application timeout caused pair closure",
    "Connection was likely closed",
    "remote process exiting prematurely",
    "NCCL communicator was aborted",
    "Connection closed by remote peer",
    "unhandled system error",
    "Broken pipe",
    "gloo::IoException",
    "Connection refused",
)
"""Its peer was gone."""

PORT_TAKEN = ("EADDRINUSE", "Address already in use", "address already in use")
"""torchrun could not listen on its port: somebody took it since we looked."""
