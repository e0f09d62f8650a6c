"""`make manifests`: write the files that are generated from the product and from the chart.

The chart's rules, its definitions of PodGroups, the table of its README and the plain manifests are
in the repository. Tests compare them with their sources.
"""

import shutil
import sys

from tests.deploy import rendering
from tests.deploy.chart_readme import README, VALUES, with_table


def main() -> None:
    rendering.RULES.write_text(rendering.rules(), encoding="utf-8")
    rendering.WEBHOOK_RULES.write_text(rendering.webhook_rules(), encoding="utf-8")
    shutil.rmtree(rendering.CHART_CRDS, ignore_errors=True)
    shutil.copytree(rendering.CRDS, rendering.CHART_CRDS)
    readme = with_table(README.read_text(encoding="utf-8"), VALUES.read_text(encoding="utf-8"))
    README.write_text(readme, encoding="utf-8")
    try:
        rendering.MANIFESTS.write_text(rendering.plain_manifests(), encoding="utf-8")
    except rendering.NoHelm as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
