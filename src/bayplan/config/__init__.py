"""The configuration: KubeSchedulerConfiguration v1, read strictly and independent of plugins."""

from bayplan.config.loading import SchedulerConfig, config_from, load_config
from bayplan.problems import ConfigError, Problem

__all__ = ["ConfigError", "Problem", "SchedulerConfig", "config_from", "load_config"]
