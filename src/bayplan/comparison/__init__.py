"""Comparing configurations: inputs x configurations x seeds, with the same metrics for each run."""

from bayplan.comparison.metrics.run_metric import Curve, RunMetric

__all__ = ["Curve", "RunMetric"]
