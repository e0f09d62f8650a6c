"""Files, traces and scenarios become a workload: objects with the times of their steps."""
