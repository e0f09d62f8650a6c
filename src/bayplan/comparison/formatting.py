"""Numbers for readers, with a sensible number of digits."""

from bayplan.comparison.statistics import Paired, Summary

#: Larger numbers are shown without decimals.
_WHOLE_FROM = 1000
_NONE = "–"


def figure(value: float | None) -> str:
    if value is None:
        return _NONE
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    if abs(value) >= 0.01:
        return f"{value:,.2f}"
    return f"{value:.2g}"


def spread(value: Summary | None) -> str:
    """Mean and deviation: `9.38 ± 0.19`."""
    if value is None:
        return _NONE
    return figure(value.mean) if value.sd is None else f"{figure(value.mean)} ± {figure(value.sd)}"


def difference(value: Paired | None) -> str:
    """`-1.20 [-1.40, -1.00]`; without an interval if there is none."""
    if value is None:
        return _NONE
    mean = signed(value.mean)
    if value.low is None or value.high is None:
        return mean
    return f"{mean} [{signed(value.low)}, {signed(value.high)}]"


def signed(value: float) -> str:
    return figure(value) if value <= 0 else f"+{figure(value)}"
