"""A plugin's call that holds the scheduler, in the log and in a metric."""

from bayplan.metrics import SchedulerMetrics
from bayplan.serving.log_lines import Log
from bayplan.watchdog import PERIOD_SECONDS, BlockingCall

_log = Log("watchdog")


def tell_of_blocking(metrics: SchedulerMetrics, call: BlockingCall) -> None:
    """Called once a period while it lasts, on another thread than the scheduler's."""
    metrics.plugin_blocking.add(call.plugin, call.point, count=PERIOD_SECONDS)
    if call.is_news:
        keys = {"plugin": call.plugin, "extensionPoint": call.point, "at": call.place}
        text = "A plugin blocks the scheduler"
        _log.error(text, **keys, seconds=round(call.seconds, 1))
