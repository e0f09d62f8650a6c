"""Comparing configurations: inputs x configurations x seeds, measured alike."""

from bayplan.comparison.metrics.run_metric import Curve, RunMetric

__all__ = ["Curve", "RunMetric"]
