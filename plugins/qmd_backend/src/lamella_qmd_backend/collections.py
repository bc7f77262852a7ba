"""Collections: the folders that QMD indexes, and which memory file one of its results is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from lamella.memory.paths import CURATED, CURATED_LOWER, FOLDER, is_note
from lamella.memory.roots import extra_roots
from lamella.memory.scan import FoundFile, Scan
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella_qmd_backend.output import Result

_ALL = "**/*.md"
_IN_PATTERN = re.compile(r"[^\w. /~@=-]")
_IN_SLUG = re.compile(r"[\W_]+")
# Folders that QMD never looks into, beside hidden ones.
_PASSED_BY = frozenset({"node_modules", ".git", ".cache", "vendor", "dist", "build"})


@frozen(slots=True)
class Collection:
    """A folder under the name that QMD has for it. `path` is absolute, with links above it resolved."""

    name: str
    path: str
    pattern: str = _ALL
    source: str = "memory"


def memory_collections(
    workspace: Path, scan: Scan, extra_paths: Sequence[str], exported: Path | None
) -> tuple[Collection, ...]:
    """What makes up memory: the curated file with the notes, extra paths, and the folder of exported sessions.

    QMD fuses the rankings of its collections by rank, so that the one file of a collection is always first in
    its own. Hence one collection for what belongs together.
    """
    names = {found.name for found in scan.files}
    curated = CURATED if CURATED in names or CURATED_LOWER not in names else CURATED_LOWER
    found = [Collection("memory", str(scan.workspace), f"{{{curated},{FOLDER}/{_ALL}}}")]
    for number, extra in enumerate(extra_roots(scan.workspace, extra_paths), 1):
        folder, pattern = extra.path, _ALL
        if is_note(extra.name) and not Path(extra.path).is_dir():
            folder, name = os.path.split(extra.path)
            # Any other sign has a meaning in patterns; what fits beside the file is no result (see `Mapper`).
            pattern = _IN_PATTERN.sub("?", name)
        found.append(Collection(f"extra-{number}", folder, pattern))
    if exported is not None:
        found.append(Collection(SESSIONS, str(exported), source=SESSIONS))
    return tuple(found)


def settings_document(collections: Iterable[Collection], models: Mapping[str, str]) -> dict[str, Any]:
    """The content of QMD's `index.yml`."""
    return {
        "collections": {c.name: {"path": c.path, "pattern": c.pattern} for c in collections},
        "models": dict(models),
    }


def is_passed_by(found: FoundFile) -> bool:
    """Whether QMD leaves a memory file out of its index: below a hidden folder, and so on."""
    parts = found.name.split("/")
    hidden = any(part.startswith(".") and part not in (".", "..") for part in parts)
    return hidden or bool(_PASSED_BY & set(parts)) or ":" in found.name or found.stat.st_size == 0


@define(slots=True)
class Mapped:
    """Memory files among the results of QMD, best first, and how many results were none."""

    files: list[tuple[FoundFile, Result]] = field(factory=list)
    dropped: int = 0


class Mapper:
    """Finds the memory file that a result means.

    Only files of a scan can be found, so no result leads outside of memory, through a link, or to a file
    that is gone. `exports`: the transcripts, by the paths of their exported texts.
    """

    def __init__(
        self,
        scan: Scan,
        collections: Sequence[Collection],
        exports: Mapping[str, FoundFile],
        *,
        slugs: bool,
    ) -> None:
        self._collections = {c.name: c for c in collections}
        self._by_path = {found.path: found for found in scan.files if found.source != SESSIONS} | dict(exports)
        self._slugs = slugs
        self._by_slug: dict[str, dict[str, FoundFile | None]] = {}

    def map(self, results: Iterable[Result]) -> Mapped:
        mapped = Mapped()
        seen: set[str] = set()
        for result in results:
            found = self.find(result)
            if found is None:
                mapped.dropped += 1
            elif found.name not in seen:
                seen.add(found.name)
                mapped.files.append((found, result))
        return mapped

    def find(self, result: Result) -> FoundFile | None:
        collection = self._collections.get(result.collection)
        if collection is None:
            return None
        found = self._by_path.get(os.path.join(collection.path, *result.path.split("/")))  # noqa: PTH118
        if found is None and self._slugs:
            found = self._slugs_of(collection).get(slug(result.path))
        return found if found is not None and (collection.source == SESSIONS) == (found.source == SESSIONS) else None

    def _slugs_of(self, collection: Collection) -> dict[str, FoundFile | None]:
        """The files of a collection by their slugs; None where several have the same."""
        if collection.name not in self._by_slug:
            slugs: dict[str, FoundFile | None] = {}
            start = collection.path.rstrip(os.sep) + os.sep
            for path, found in self._by_path.items():
                if path.startswith(start):
                    key = slug(path[len(start) :].replace(os.sep, "/"))
                    slugs[key] = None if key in slugs else found
            self._by_slug[collection.name] = slugs
        return self._by_slug[collection.name]


def slug(path: str) -> str:
    """A path as QMD before 2.8 writes it, or closer still: what those versions tell apart may be the same here."""
    stem = path.removesuffix(".md")
    return "/".join(_IN_SLUG.sub("-", part.casefold()).strip("-") for part in stem.split("/"))
