"""`ddpk8s run`: the same job file on this machine, under the same agent.

machine     cores and GPUs that are here
substitute  what this machine has in place of a cluster (pure)
volumes     paths below mounts (pure)
directory   the run directory: lock, record, the agent's files
identity    whether a run is continued (pure)
agent       the agent's process, its output and signals
display     what is shown meanwhile: a live panel, or plain lines
summary     what is left to say in the end
run         all of it in order
"""
