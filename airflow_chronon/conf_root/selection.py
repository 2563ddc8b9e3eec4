"""Picking confs and jobs by what people type: a DAG id, ``type/name``, a name or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.confs.plan import Plan, Verdict
from airflow_chronon.errors import ChrononError, Fault, Rejected


def select(verdicts: Mapping[str, Verdict], wanted: Sequence[str], root: Path) -> dict[str, Verdict]:
    """The verdicts that ``wanted`` names, all of them when it names none. Raises ``ChrononError`` for an unknown one."""
    if not wanted:
        return dict(verdicts)
    return {key: verdicts[key] for text in wanted for key in (_key(verdicts, text, root),)}


def select_plan(root: ConfRoot, wanted: str, verdicts: Mapping[str, Verdict]) -> Plan:
    """The plan that ``wanted`` names. Raises ``ChrononError`` when it is rejected, deployed elsewhere, or not there."""
    if not verdicts and root.problems:
        raise Rejected(root.problems)
    ((key, verdict),) = select(verdicts, [wanted], root.path).items()
    return verdict.need_plan(named=key)


def select_job(root: ConfRoot, wanted: str) -> Plan:
    """The plan of one job. Raises ``ChrononError`` when its file is bad, or there is no such job."""
    return select_plan(root, wanted, {key: each for key, each in root.judge().items() if key.startswith("job/")})


def _key(verdicts: Mapping[str, Verdict], text: str, root: Path) -> str:
    if text in verdicts:
        return text
    by_name: dict[str, list[str]] = {}
    for key, verdict in verdicts.items():
        aliases = {key, key.partition("/")[2], verdict.file, str(root / verdict.file)}
        if verdict.plan is not None:
            aliases.add(verdict.plan.dag_id)
        if key.startswith("job/"):
            aliases.add(Path(verdict.file).stem)
        for alias in aliases:
            by_name.setdefault(alias, []).append(key)
    found = by_name.get(text) or by_name.get(str(Path(text))) or _by_path(verdicts, Path(text), root)
    if len(found) == 1:
        return found[0]
    if found:
        raise ChrononError(
            Fault("input", "CONF", f"{text!r} is the name of {' and of '.join(found)}", "write type/name")
        )
    near = _nearest(text, by_name)
    remedy = (
        f"did you mean {' or '.join(near)}?"
        if near
        else f"what is there is listed by airflow-chronon check --root {root}"
    )
    kind = "job" if verdicts and all(key.startswith("job/") for key in verdicts) else "conf"
    raise ChrononError(Fault("input", "CONF", f"no {kind} is called {text!r}", remedy))


def _nearest(text: str, by_name: Mapping[str, Sequence[str]]) -> list[str]:
    """The names that look most like what was typed: of each conf the nearest one, three at most."""
    found: dict[str, str] = {}
    for name in get_close_matches(text, by_name, n=20, cutoff=0.5):
        for key in by_name[name]:
            found.setdefault(key, name)
    return list(dict.fromkeys(found.values()))[:3]


def _by_path(verdicts: Mapping[str, Verdict], path: Path, root: Path) -> list[str]:
    """The conf whose file it is, however the path is written."""
    return [key for key, verdict in verdicts.items() if (root / verdict.file).resolve() == path.resolve()]
