"""The tool `edit`: exact replacements in a text file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamella.errors import ToolError
from lamella.tools.diff import diff_texts
from lamella.tools.files import FileChanger, encode
from lamella.tools.replace import Edit, apply_edits, plain_lines
from lamella.tools.schemas import parameters, string
from lamella.tools.workspace import read_file
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

_BOM = "\ufeff"


def edit_tool(changer: FileChanger) -> Tool:
    """The tool. Byte order mark and line ends of the file are kept."""

    def edit(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        raw = arguments["path"]
        edits = _requested(arguments)
        path = changer.workspace.file(raw)
        shown = changer.workspace.display(path)
        with changer.lock:
            before = read_file(path, shown)
            text = _decoded(before, shown)
            mark = _BOM if text.startswith(_BOM) else ""
            body = text.removeprefix(_BOM)
            changed = apply_edits(body, edits, shown)
            changer.save(path, encode(mark + changed, shown), before, "edit", context)
        diff = diff_texts(plain_lines(body), plain_lines(changed), shown)
        blocks = "1 block" if len(edits) == 1 else f"{len(edits)} blocks"
        return ToolResult(
            f"Replaced {blocks} in {shown}.",
            {"diff": diff.numbered, "patch": diff.patch, "firstChangedLine": diff.first_changed_line},
        )

    return Tool(
        name="edit",
        label="Edit a file",
        description=(
            "Replace text in a file. Each oldText must occur exactly once in the file as it is now, "
            "and edits must not overlap. Read the file first; copy oldText from it, with a few lines "
            "around the change if it would not be unique otherwise."
        ),
        parameters=parameters(
            ("path",),
            path=string("File to edit, relative to the workspace"),
            edits={
                "type": "array",
                "minItems": 1,
                "description": "Replacements, all against the file as it is now",
                "items": parameters(
                    ("oldText", "newText"),
                    oldText=string("Text to replace; must occur exactly once"),
                    newText=string("Text to put in its place"),
                ),
            },
            oldText=string("Instead of edits: the text of a single replacement"),
            newText=string("Instead of edits: what a single replacement puts in its place"),
        ),
        run=edit,
        writes=True,
        owner="core",
    )


def _requested(arguments: Mapping[str, Any]) -> list[Edit]:
    edits = [Edit(edit["oldText"], edit["newText"]) for edit in arguments.get("edits") or ()]
    single = [arguments.get("oldText"), arguments.get("newText")]
    if single[0] is not None and single[1] is not None:
        edits.append(Edit(single[0], single[1]))
    elif single != [None, None]:
        raise ToolError("edit needs both oldText and newText.")
    if not edits:
        raise ToolError("edit needs edits, a list of {oldText, newText}, or oldText and newText.")
    return edits


def _decoded(data: bytes, shown: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(f"{shown} is not UTF-8 text (byte {error.start}); edit would damage it") from None
