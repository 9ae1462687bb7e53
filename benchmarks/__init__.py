"""Speed, as ratios against named alternatives measured in the same run: `make bench`."""
