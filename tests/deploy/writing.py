"""`make manifests`: write the files that are generated from the product and from the chart.

The chart's rules, its definitions of PodGroups, the table of its README and the plain manifests are
in the repository. Tests compare them with their sources.
"""

import shutil
import sys

from tests.deploy.chart_readme import README, VALUES, with_table
from tests.deploy.rendering import (
    CHART_CRDS,
    CRDS,
    MANIFESTS,
    RULES,
    WEBHOOK_RULES,
    NoHelm,
    plain_manifests,
    rules,
    webhook_rules,
)


def main() -> None:
    RULES.write_text(rules(), encoding="utf-8")
    WEBHOOK_RULES.write_text(webhook_rules(), encoding="utf-8")
    shutil.rmtree(CHART_CRDS, ignore_errors=True)
    shutil.copytree(CRDS, CHART_CRDS)
    readme = with_table(README.read_text(encoding="utf-8"), VALUES.read_text(encoding="utf-8"))
    README.write_text(readme, encoding="utf-8")
    try:
        MANIFESTS.write_text(plain_manifests(), encoding="utf-8")
    except NoHelm as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
