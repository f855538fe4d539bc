"""Speed as ratios: our trainer and its contenders take turns on the same data in one run."""
