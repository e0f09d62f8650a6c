"""Conversion of the documents' links from the form of the repository to that of the site.

In the repository a document may link to any file. The site has the documents of `docs` and those of
`OUTSIDE`; a link to another file becomes the name of that file.
"""

import posixpath
import re

#: Documents outside of `docs`: path in the repository → page of the site.
OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "changes/README.md": "project/changes.md",
    "deploy/chart/README.md": "reference/chart.md",
    "examples/gangs/README.md": "examples/gangs.md",
    "examples/gpu_sharing/README.md": "examples/gpu-sharing.md",
    "examples/starving_gang/README.md": "examples/starving-gang.md",
}
_DOCS = "docs/"
_SOURCES = {page: path for path, page in OUTSIDE.items()}
#: Fenced and indented code, which stays unchanged; a link; other text in brackets.
_LINK_OR_CODE = re.compile(
    r"^```.*?^```$|^ {4}.*?$|`[^`\n]+`|\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)"
    r"|(?<!\])\[(?P<plain>[^\]\n]+)\](?![(\[:])",
    re.MULTILINE | re.DOTALL,
)
_WITH_A_SCHEME = re.compile(r"[a-z]+:|#")


def for_site(markdown: str, page: str) -> str:
    """The document of this page with links that the site can follow.

    mkdocstrings takes other text in brackets for the name of a Python object: it is escaped.
    """
    return _LINK_OR_CODE.sub(lambda match: _changed(match, page), markdown)


def _changed(match: re.Match[str], page: str) -> str:
    if match["plain"] is not None:
        return f"\\[{match['plain']}\\]"
    target = match["target"]
    if target is None or _WITH_A_SCHEME.match(target):
        return match[0]
    path, anchor_mark, anchor = target.partition("#")
    source = _SOURCES.get(page, _DOCS + page)
    target_path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    target_page = page_of(target_path)
    if target_page is None:
        return (
            f"{match['text']} (`{target_path}`)"
            if target_path not in match["text"]
            else match["text"]
        )
    relative = posixpath.relpath(target_page, posixpath.dirname(page) or ".")
    return f"[{match['text']}]({relative}{anchor_mark}{anchor})"


def page_of(path: str) -> str | None:
    """The page or the file of the site for a path of the repository, if there is one."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if f"{path}/README.md" in OUTSIDE:
        return OUTSIDE[f"{path}/README.md"]
    is_file = posixpath.splitext(path)[1] != ""
    return path.removeprefix(_DOCS) if path.startswith(_DOCS) and is_file else None
