"""Benchmarks: upstream's scheduler_perf files, run on the embedded cluster under the real clock."""
