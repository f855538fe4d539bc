"""PID 1 of every pod, and what `ddpk8s run` starts: preflight, torchrun, restarts, signals, exit codes.

Standard library only, Python 3.10 or newer, no data files: it also runs as a zipapp in any image with torch.

    __main__     command line; anything unforeseen ends with 70
    agent        preflight, then attempts until one counts
    plan         what the agent is told (`agent.json`)
    preflight    everything that can be known to fail before anything starts
    attempt      one start of torchrun, from fork to the last process gone
    command      torchrun's arguments and environment
    shim         stands in torchrun's place and hands over every rank's exit code
    processes    the process tree: find, signal, reap
    signals      the request to stop
    waker        sleep until something happens
    tail, logs   workers' output, by rank, whole lines
    console      the one writer to our own stdout and stderr
    progress     how far the training is
    patterns     texts of ranks that are only victims
    evidence     what an attempt left behind
    verdict      who failed first, and why (pure)
    budget       whether to start again, and when (pure)
    termination  the last word, for Kubernetes and `ddpk8s run`
"""
