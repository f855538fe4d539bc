"""`ddpk8s run`: the same job file on this machine, under the same agents.

machine     cores, GPUs and ports that are here
substitute  what this machine has in place of a cluster (pure)
volumes     paths below mounts (pure)
nodes       what each node's agent gets of the machine (pure)
directory   the run directory: lock, record, the agents' files
identity    whether a run is continued (pure)
agent       one agent's process and its output
agents      those of all nodes, and their replacement
stopper     Ctrl-C and SIGTERM, passed on to all of them
story       what the agents' own lines tell (pure)
display     what is shown meanwhile: a live panel, or plain lines
summary     what is left to say in the end
run         all of it in order
"""
