"""`python -m ddpk8s`: the same as the command `ddpk8s`."""

from ddpk8s.cli.app import main

if __name__ == "__main__":
    main()
