"""Checkpoints: written in the background, published atomically, verified before use.

manager.py    CheckpointManager, what the training loop talks to
ranks.py      how ranks agree: collectives in the caller's thread, the store in the background thread
plan.py       which rank writes what (planned by torch.distributed.checkpoint, kept between saves)
image.py      a rank's share as the bytes of one file, staged in place
writing.py    bytes to disk, hashed on the way
saving.py     one save from the staged bytes to the published directory
manifest.py   manifest.json: what a complete checkpoint consists of
verify.py     is a directory a valid checkpoint?
directory.py  the job directory: publish, prune, archive, sweep
finding.py    the newest valid checkpoint, agreed by all ranks
loading.py    into a given state, for any number of ranks
space.py      free space, sizes in words
"""

from ddpk8s_trainer.checkpoint.finding import Found
from ddpk8s_trainer.checkpoint.manager import CheckpointManager
from ddpk8s_trainer.checkpoint.saving import Saved
from ddpk8s_trainer.checkpoint.space import check_space, state_bytes

__all__ = ["CheckpointManager", "Found", "Saved", "check_space", "state_bytes"]
