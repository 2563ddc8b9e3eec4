"""Reading a conf root from disk, confs and jobs: every file under its own guard, every fault collected."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_chronon.conf_root.confs import read_confs
from airflow_chronon.conf_root.jobs import read_jobs
from airflow_chronon.conf_root.settings import (
    branch_settings,
    cannot_read,
    parse_settings,
    settings_text,
)
from airflow_chronon.core.bounds import quoted
from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.plan import RejectedConf, Verdict
from airflow_chronon.core.confs.resolve import resolve
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.jobs.document import Job
from airflow_chronon.core.jobs.idle_overrides import idle_overrides
from airflow_chronon.core.jobs.resolve import resolve_jobs
from airflow_chronon.core.plan.facts import TreeFacts, TreeState, tree_facts
from airflow_chronon.core.records.manifest import family_of
from airflow_chronon.core.settings.backends import backend_problems, runner_problems
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.settings.variables import Secrets, filled
from airflow_chronon.core.settings.yaml import SETTINGS_FILE
from airflow_chronon.errors import Fault, Rejected

#: How whoever types a command names a conf root; callers from Python put their own words in its place.
NAMED_BY = "--root or [chronon] conf_root"
_CHECK_PLACE = f"check the path and its permissions, or name another with {NAMED_BY}"


_HOLD_ON = Fault("C23", SETTINGS_FILE, "the last good settings hold on, and nothing is retired", "mend the file")


@dataclass(frozen=True)
class ConfRoot:
    """Everything that was read from one conf root: settings, confs, jobs, and what is wrong with them."""

    path: Path
    settings: Settings
    confs: tuple[Conf, ...] = ()
    jobs: tuple[Job, ...] = field(default=(), kw_only=True)
    unreadable: tuple[RejectedConf, ...] = ()
    problems: tuple[Fault, ...] = ()  #: what is wrong with the root itself: missing, empty, bad settings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  #: what fills ``${NAME}`` in settings
    state: TreeState = TreeState.WHOLE  #: whether this can be the whole truth (C23)
    unchanged: frozenset[ConfKey] = frozenset()  #: the same as in ``base_root``, so not deployed on this branch (C24)
    unchanged_jobs: frozenset[str] = frozenset()  #: the files of such jobs
    settings_text: str | None = None  #: of the settings file, where it is good
    settings_faults: tuple[Fault, ...] = ()  #: what is wrong with the settings file
    is_branch_known: bool = True  #: false while the file that would name it cannot be read (C24)

    @property
    def held_on(self) -> tuple[Fault, ...]:
        """What is wrong with the settings file while the last good settings hold on (C23); empty when none do."""
        return self.settings_faults if _HOLD_ON in self.problems else ()

    @property
    def other_problems(self) -> tuple[Fault, ...]:
        """What is wrong with the root beyond a settings file that the last good settings stand in for."""
        known = {*self.held_on, _HOLD_ON}
        return tuple(problem for problem in self.problems if problem not in known)

    @property
    def settings_to_keep(self) -> str | None:
        """The text of good settings, for whoever remembers the last ones (C23); None where nobody can be sure of them.

        A folder that cannot be read says nothing against the file. Yet that there is none only a whole tree tells, and a base
        that cannot be read may be the mistake of the settings that name it.
        """
        is_base_bad = any(problem.rule == "C24" for problem in self.problems)
        is_sure = self.state is TreeState.WHOLE or (bool(self.settings_text) and not is_base_bad)
        return self.settings_text if is_sure else None

    @property
    def branch(self) -> str:
        return self.settings.branch or self.settings.default_branch

    @property
    def namespace_prefix(self) -> str:
        """What sets the assets of a branch apart; empty on the default branch (C24)."""
        return "" if self.branch == self.settings.default_branch else f"{quote(self.branch, safe='')}--"

    @property
    def whole(self) -> ConfRoot:
        """The same with every conf, those included that the branch leaves to ``base_root`` (C24)."""
        problems = tuple(problem for problem in self.problems if problem.rule != "C24")
        state = TreeState.WHOLE if self.problems and not problems else self.state
        return replace(self, unchanged=frozenset(), unchanged_jobs=frozenset(), problems=problems, state=state)

    @property
    def own_jobs(self) -> tuple[Job, ...]:
        """The jobs that this branch deploys."""
        return tuple(job for job in self.jobs if job.file not in self.unchanged_jobs)

    def warnings(self) -> tuple[Fault, ...]:
        """What is odd about the root and keeps nothing from being deployed."""
        return self.idle_overrides()

    def idle_overrides(self) -> tuple[Fault, ...]:
        """The overrides that are for nothing; none while there are files that nobody can read: they may be for those."""
        if self.unreadable or self.state is not TreeState.WHOLE:
            return ()
        return idle_overrides(self.settings, self.confs, self.jobs, branch=self.branch, file=SETTINGS_FILE)

    def judge(self, *, wanted: str | None = None) -> dict[str, Verdict]:
        """The verdict on every conf and job, by ``type/name``, in a fixed order; unreadable files included.

        With ``wanted``, a DAG id, of the readable ones only those of that id.
        """
        tree = ConfTree(self.confs, environment=self.settings.environment)
        unchanged = set(map(str, self.unchanged))  # judged all the same: others read them
        judged: dict[str, Verdict] = {
            **resolve(tree, self.settings, branch=self.branch, wanted=wanted, elsewhere=self.unchanged),
            **resolve_jobs(self.own_jobs, self.settings, branch=self.branch, wanted=wanted),
        }
        verdicts = {
            key: _with_backends(key, verdict, self.environ) for key, verdict in judged.items() if key not in unchanged
        }
        for rejected in self.unreadable:
            free = rejected.key if rejected.key not in verdicts else rejected.file
            verdicts[free] = rejected
        return dict(sorted(verdicts.items()))

    def facts(self) -> TreeFacts:
        """What a plan needs to know of the tree."""
        return tree_facts(
            self.judge(),
            (conf for conf in self.confs if conf.key not in self.unchanged),
            self.own_jobs,
            branch=self.branch,
            default_branch=self.settings.default_branch,
            unchanged=(
                *(family_of(conf) for conf in self.confs if conf.key in self.unchanged),
                *(job.key for job in self.jobs if job.file in self.unchanged_jobs),
            ),
            state=self.state,
            problems=self.problems,
            warnings=self.warnings(),
        )


def read_conf_root(
    root: Path, *, environ: Mapping[str, str], branch: str | None = None, last_good: Settings | None = None
) -> ConfRoot:
    """Read a conf root, or one compiled tree. Never raises for what is wrong with it: it is all in the result.

    ``branch`` is used when the settings name none. With settings that cannot be read those that were the last good ones
    hold on (C23); without any nothing is deployed, since every conf's schedule may depend on them.
    """
    try:
        is_there = stat.S_ISDIR(root.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
    except (OSError, ValueError) as error:  # no right to look, or no path at all
        problem = Fault(
            "input", "", f"the conf root {quoted(str(root))} cannot be read: {error.args[-1]}", _CHECK_PLACE
        )
        return _unread(root, branch, (problem,), TreeState.UNREADABLE)
    if not is_there:
        remedy = f"create it, or name another with {NAMED_BY}"
        missing = Fault("input", "", f"there is no conf root {root}", remedy)
        return _unread(root, branch, (missing,), TreeState.EMPTY)
    problems: list[Fault] = []
    text, faults = None, tuple[Fault, ...]()
    try:
        settings = parse_settings(text := settings_text(root), environ=environ)
    except Rejected as error:
        text, faults = None, error.faults
        if last_good is None:
            said = branch_settings(root, environ=environ)
            unread = _unread(root, branch, faults, TreeState.UNREADABLE, said=said)
            return replace(unread, settings_faults=faults)
        problems += [*faults, _HOLD_ON]
        settings = last_good
    settings = _with_branch(settings, branch)
    try:
        confs, bad_confs = read_confs(root, settings, problems=problems)
        jobs, bad_jobs = read_jobs(root, environ=environ, problems=problems)
    except OSError as error:
        problem = cannot_read(error, what=f"the conf root {root}")
        return ConfRoot(root, settings, problems=(problem,), state=TreeState.UNREADABLE)
    unchanged, unchanged_jobs = frozenset[ConfKey](), frozenset[str]()
    if settings.base_root is not None and (settings.branch or settings.default_branch) != settings.default_branch:
        base = _read_base(root, settings, environ, problems)
        unchanged = frozenset(conf.key for conf in confs if base.holds(str(conf.key), conf.file, conf.raw))
        unchanged_jobs = frozenset(job.file for job in jobs if base.holds(job.key, job.file, job.text.raw))
    state = TreeState.UNREADABLE if problems else TreeState.WHOLE
    if not (confs or bad_confs or jobs or bad_jobs or problems):
        problems.append(_nothing_found(root))
        state = TreeState.EMPTY
    return ConfRoot(
        root,
        settings,
        tuple(confs),
        (*bad_confs, *bad_jobs),
        tuple(problems),
        environ,
        state,
        unchanged,
        unchanged_jobs,
        jobs=tuple(jobs),
        settings_text=text,
        settings_faults=faults,
    )


def _unread(
    root: Path, branch: str | None, problems: tuple[Fault, ...], state: TreeState, *, said: Settings | None = None
) -> ConfRoot:
    """A root of which nobody knows the confs, and perhaps not the branch. ``said`` is what its settings say of branches."""
    settings = _with_branch(said or Settings(), branch)
    return ConfRoot(
        root, settings, problems=problems, state=state, is_branch_known=said is not None or settings.branch is not None
    )


def _with_branch(settings: Settings, branch: str | None) -> Settings:
    """Settings that name no branch, with the one that is given."""
    return settings.model_copy(update={"branch": branch}) if branch and settings.branch is None else settings


@dataclass(frozen=True)
class _Base:
    """What ``base_root``, a checkout of the default branch, holds: documents by key and file, and what nobody can read."""

    documents: Mapping[str, Any]
    in_doubt: frozenset[str]
    is_empty: bool

    def holds(self, key: str, file: str, document: Any) -> bool:
        """Whether a conf or job is left to the base: the same word for word, or nobody knows whether it differs (C24)."""
        if self.is_empty:  # everything would be deployed, which nobody asked for
            return True
        folders = tuple(text for text in self.in_doubt if text.endswith("/"))
        in_doubt = not self.in_doubt.isdisjoint((key, file)) or file.startswith(folders)
        return in_doubt or self.documents.get(key) == document


def _read_base(root: Path, settings: Settings, environ: Mapping[str, str], problems: list[Fault]) -> _Base:
    path = root / filled(str(settings.base_root), environ)
    secrets = Secrets.of(settings.base_root, environ=environ)
    faults: list[Fault] = []
    if path.resolve() == root.resolve():  # everything would be left to itself
        fault = Fault("C24", "", "it is the conf root itself", "name a checkout of the default branch beside it")
        problems.append(replace(fault, field=f"{SETTINGS_FILE} base_root"))
        return _Base({}, frozenset(), is_empty=True)
    confs, bad_confs = read_confs(path, settings, problems=faults)
    jobs, bad_jobs = read_jobs(path, environ=environ, problems=faults)
    problems += [
        replace(fault.reworded(secrets.hidden), rule="C24", field=f"{SETTINGS_FILE} base_root") for fault in faults
    ]
    documents = {str(conf.key): conf.raw for conf in confs} | {job.key: job.text.raw for job in jobs}
    if not documents:
        problem, remedy = (
            f"no conf and no job is in {root / str(settings.base_root)}",
            "check the default branch out there, or leave base_root out",
        )
        problems.append(Fault("C24", f"{SETTINGS_FILE} base_root", problem, remedy))
    in_doubt = frozenset(text for each in (*bad_confs, *bad_jobs) for text in (each.key, each.file))
    return _Base(documents, in_doubt, is_empty=not documents or bool(faults))


def _with_backends(key: str, verdict: Verdict, environ: Mapping[str, str]) -> Verdict:
    """Reject a conf or job whose own settings name a catalog or runner that cannot be built."""
    plan = verdict.plan
    if plan is None or not plan.may_name_backends:
        return verdict
    problems = (backend_problems if plan.has_partitions else runner_problems)(plan.settings, environ)
    return RejectedConf(key, plan.file, tuple(problem.fault() for problem in problems)) if problems else verdict


def _nothing_found(root: Path) -> Fault:
    return Fault(
        "input",
        "",
        f"the conf root {root} holds no compiled confs and no jobs",
        "put the output of zipline compile into compiled/, that of the older dialect into production/, or job files into jobs/<team>/",
    )
