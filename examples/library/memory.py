"""Long-term memory without a model: add notes, find them again. Needs lamella-memory-core.

python examples/library/memory.py
"""

from __future__ import annotations

import tempfile

from lamella import Runtime
from lamella.types.memory import Provenance, SearchQuery


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        runtime = Runtime.open(workspace=workspace)
        memory = runtime.require_memory()
        memory.append("The staging server is called bluebird.", provenance=Provenance("example"))
        for hit in memory.search(SearchQuery("name of the staging server")).hits:
            print(hit.citation, hit.snippet.splitlines()[-1])
        runtime.close()


if __name__ == "__main__":
    main()
