"""Speed and memory of Ganger as ratios to baselines measured in the same run: `python -m bench`."""
