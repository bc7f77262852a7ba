"""Files of installed packages and folders: where they are and what is in them."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from lamella.errors import PluginError

DIGEST_DIGITS = 12


def package_file(package: str, file: str) -> Path:
    """A file inside an installed package, which is not imported. Raises `ImportError`, `PluginError`."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {package}")
    path = Path(spec.submodule_search_locations[0]) / file
    if not path.is_file():
        raise PluginError(f"{path}: the file is missing", hint=f"Install {package} again.")
    return path


def digest(paths: Iterable[Path]) -> str:
    """The first digits of the SHA-256 of the files' content, in the order given. Raises `PluginError`."""
    total = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise PluginError(f"{path}: cannot be read: {error.strerror or error}") from error
    return total.hexdigest()[:DIGEST_DIGITS]
