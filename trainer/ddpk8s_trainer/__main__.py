"""`torchrun -m ddpk8s_trainer --config training.json`: one rank of the bundled trainer."""

from ddpk8s_trainer.signals import StopRequest, die_with_parent

# Before the seconds that torch's import takes: a SIGTERM in them is a request to stop, too.
STOP = StopRequest()

if __name__ == "__main__":
    import sys

    STOP.install()
    die_with_parent()

    from ddpk8s_trainer.main import main

    code = main(sys.argv[1:], STOP)
    STOP.outlast()
    sys.exit(code)
