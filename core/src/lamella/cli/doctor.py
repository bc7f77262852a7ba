"""`lamella doctor`: what is wrong, and the command that mends it."""

from __future__ import annotations

import click

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, open_runtime
from lamella.doctor.examination import CHECKS, Diagnosis, examine
from lamella.doctor.finding import Result
from lamella.text.width import pad


@click.command()
@agent_options
@click.option("--fix", is_flag=True, help="Mend what can be mended; what is replaced is kept beside it.")
@json_option
def doctor(common: CommonOptions, fix: bool, as_json: bool) -> int:
    """Check an agent's configuration, plugins, memory and sessions. Exit code 0 only when all is well."""
    diagnosis = examine(lambda: open_runtime(common, say_problems=False), fix=fix)
    if as_json:
        Out.json(
            {
                "ok": diagnosis.ok,
                "checks": list(diagnosis.made),
                "skipped": list(diagnosis.skipped),
                "findings": [result.to_json() for result in diagnosis.results],
            }
        )
    else:
        Out.write(diagnosis_text(diagnosis))
    return 0 if diagnosis.ok else 1


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """One line a check, with what is wrong below it."""
    lines: list[str] = []
    for check in CHECKS:
        found = [result for result in diagnosis.results if result.check == check.name]
        if check.name in diagnosis.skipped:
            lines.append(f"{pad(check.name, 12)} not checked: the configuration has to be mended first")
            continue
        lines.append(f"{pad(check.name, 12)} {'ok' if all(r.settled for r in found) else 'not ok'} ({check.about})")
        lines += [line for result in found for line in _result_lines(result)]
    return "\n".join(lines)


def _result_lines(result: Result) -> list[str]:
    finding = result.finding
    lines = [f"  {finding.level}: {finding.where}: {finding.message}"]
    if result.mended:
        return [*lines, f"    mended: {result.mended}"]
    if result.failed:
        return [*lines, f"    could not be mended: {result.failed}"]
    return [*lines, f"    {finding.command}"] if finding.command else lines
