"""The files that a test case names, and the objects that its operations create from them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

from bayplan.objects.keys import Content
from bayplan.perf import manifests, schema


@final
class ScenarioFiles:
    """The files of one test case, each read once. Raises ManifestError."""

    def __init__(self, folder: Path, default_pod: str | None) -> None:
        self._folder = folder
        self._default_pod = default_pod
        self._read: dict[tuple[str, bool], manifests.Manifest] = {}

    def file(self, path: str, *, is_template: bool = True) -> manifests.Manifest:
        manifest = self._read.get((path, is_template))
        if manifest is None:
            manifest = manifests.Manifest(self._folder / path, is_template=is_template)
            self._read[path, is_template] = manifest
        return manifest

    def pod_file(self, operation: schema.CreatePods) -> manifests.Manifest | None:
        """The template of the pods of an operation; None: upstream's base pod."""
        path = operation.pod_template_path or self._default_pod
        return None if path is None else self.file(path)

    def node(self, operation: schema.CreateNodes, prefix: str, index: int) -> Content:
        if operation.node_template_path is None:
            return manifests.base_node(prefix)
        values = env(operation.template_params, index, operation.count)
        return self.file(operation.node_template_path).made(values)

    def pod(self, operation: schema.CreatePods, namespace: str, index: int) -> list[Content]:
        """The objects of one pod of an operation: a claim and a volume, if it has them, and last
        the pod."""
        file = self.pod_file(operation)
        pod = manifests.BASE_POD
        if file is not None:
            made = file.made(env(operation.template_params, index, operation.count))
            pod = manifests.signed_pod(made, index, operation.signature_batch_size or 1)
        pod = manifests.in_namespace(pod, namespace)
        volume = operation.persistent_volume_template_path
        claim = operation.persistent_volume_claim_template_path
        if volume is None or claim is None:
            return [pod]
        claimed = self.file(claim, is_template=False).made({})
        provided = self.file(volume, is_template=False).made({})
        return list(manifests.with_volume(pod, claimed, provided, namespace, index=index))

    def examples(self, operation: schema.Operation) -> Iterator[tuple[str, Content]]:
        """(file, object) for the first objects that an operation creates."""
        if isinstance(operation, schema.CreateNodes):
            yield operation.node_template_path or "", self.node(operation, "node-", 0)
        elif isinstance(operation, schema.CreatePods):
            file = self.pod_file(operation)
            for content in self.pod(operation, "any", 0):
                yield "" if file is None else str(file.path), content
        elif isinstance(operation, schema.CreateNamespaces):
            yield from self._plain(operation.namespace_template_path)
        elif isinstance(operation, schema.Churn):
            yield from self._plain(*operation.template_paths)
        elif isinstance(operation, schema.CreateResourceClaims):
            yield from self._plain(operation.template_path)
        elif isinstance(operation, schema.CreateAny | schema.CreatePodGroups):
            values = env(operation.template_params, 0, operation.count or 1)
            yield operation.template_path, self.file(operation.template_path).made(values)
        elif isinstance(operation, schema.UpdateAny):
            values = env({}, 0, operation.count or 1)
            yield operation.template_path, self.file(operation.template_path).made(values)

    def _plain(self, *paths: str | None) -> Iterator[tuple[str, Content]]:
        for path in paths:
            if path is not None:
                yield path, self.file(path, is_template=False).made({})


def env(params: Mapping[str, Any], index: int, count: int) -> dict[str, Any]:
    """The values for a template: the parameters, and the index and number of the objects."""
    return {**params, "Index": index, "Count": count}
