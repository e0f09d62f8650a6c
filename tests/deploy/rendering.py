"""The generated files of `deploy`: the rules of the chart, and the plain manifests.

Rules come from the product (`bayplan config rbac`), manifests from the chart by Helm.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import Registry
from bayplan.serving.rbac import Names, cluster_rules, following_manifests
from bayplan.webhook.judgement import FURTHER_KINDS

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
RULES = CHART / "files" / "cluster-rules.yaml"
WEBHOOK_RULES = CHART / "files" / "webhook-rules.yaml"
MANIFESTS = DEPLOY / "manifests" / "20-bayplan.yaml"
CRDS = DEPLOY / "crds"
#: A chart can only read files in its own folder.
CHART_CRDS = CHART / "files" / "crds"

NAME = NAMESPACE = "bayplan"
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
KUBERNETES = "1.37.0"
_HEAD = "# Made from deploy/chart by `make manifests`.\n"


class NoHelm(Exception):
    """Helm is missing and cannot be built; the message says how to get it."""


def helm() -> str:
    """Helm's path: $HELM, on the path, or built once with Go into a cache. Raises NoHelm."""
    path = os.environ.get("HELM") or shutil.which("helm")
    if path:
        return path
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(root).expanduser() / "bayplan" / HELM.replace("/", "-")
    if not (folder / "helm").exists():
        go = shutil.which("go")
        if go is None:
            raise NoHelm("the chart needs Helm: set HELM to it, or install Go, and it is built")
        print(f"building Helm into {folder}; minutes, once", flush=True)
        env = {**os.environ, "GOBIN": str(folder)}
        if subprocess.run([go, "install", HELM], env=env, check=False).returncode:
            raise NoHelm(f"Helm could not be built from {HELM}; set HELM to one")
    return str(folder / "helm")


def rendered(*arguments: str) -> str:
    """The chart as YAML. Raises CalledProcessError for values that the chart refuses."""
    command = [helm(), "template", NAME, str(CHART), "--namespace", NAMESPACE]
    command += ["--kube-version", KUBERNETES, *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    return completed.stdout


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def rules() -> str:
    """The rules that the default profile needs, in the form of the chart."""
    return _rules_text(cluster_rules(config_from(DEFAULT_CONFIG), Registry()))


def webhook_rules() -> str:
    """The rules that a webhook for the default profile needs, in the form of the chart."""
    config = config_from(DEFAULT_CONFIG)
    role, _ = following_manifests(config, Registry(), Names(), FURTHER_KINDS)
    return _rules_text(role["rules"])


def _rules_text(rules: list[dict[str, Any]]) -> str:
    return yaml.safe_dump(rules, sort_keys=False, default_flow_style=None, width=100)


def plain_manifests() -> str:
    """The chart with its default values, without Helm's remarks."""
    lines = [line for line in rendered().splitlines() if not line.startswith("# Source: ")]
    return _HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Print Helm's path. Exits with a message if Helm is missing."""
    try:
        print(helm())
    except NoHelm as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
