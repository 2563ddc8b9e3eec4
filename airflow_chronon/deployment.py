"""Which deployment this is: where its confs and its state are, which DAG bundle and which branch it belongs to.

Loader files, tasks, the reconciler, commands and Python all ask here. What is given in a call wins over Airflow's section
``[chronon]``, and that over the defaults; the branch that ``chronon.yaml`` names wins over all others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from airflow_chronon.conf_root.root import ConfRoot, read_conf_root
from airflow_chronon.conf_root.settings import airflow_home, branch_settings, parse_settings, read_settings_file
from airflow_chronon.core.plan.facts import Deployment as Owner
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import ChrononError, Fault, Rejected, shown_address
from airflow_chronon.state.folder import StateFolder, open_branches, open_state

OPTIONS = ("conf_root", "branch", "state_root")  #: of Airflow's section ``[chronon]``
DEFAULT_ROOT = "dags/chronon"  #: for commands and Python, which run beside a checkout
DEFAULT_BUNDLE = "dags-folder"  #: Airflow's own name for the bundle of its dags folder

_STATE_FOLDER, _ORPHANED_FILES = "chronon_state", "chronon_orphaned"  # both below AIRFLOW_HOME


@dataclass(frozen=True)
class Deployment:
    """One conf root on one Airflow."""

    conf_root: Path
    branch: str | None  #: where ``chronon.yaml`` names none; None: its default branch
    bundle: str  #: Airflow's DAG bundle that the loader file is in
    state_root: str  #: where the records and archives of all branches are kept: a path or an fsspec URL
    #: A folder of this machine for the files of confs that are gone, while their last jobs need them.
    orphaned_files: Path
    environ: Mapping[str, str] = field(repr=False)

    @property
    def shown_state_root(self) -> str:
        """The state root for messages, without a password (S4)."""
        return shown_address(self.state_root)

    def read_root(self) -> ConfRoot:
        """The conf root as it is on disk; one that cannot be read does not know its branch."""
        return read_conf_root(self.conf_root, environ=self.environ, branch=self.branch)

    def read_branches(self) -> tuple[str, str]:
        """The branch and the default branch, from the settings alone; those that cannot be read name none."""
        try:
            settings = read_settings_file(self.conf_root, environ=self.environ)
        except Rejected:
            settings = branch_settings(self.conf_root, environ=self.environ) or Settings()
        return settings.branch or self.branch or settings.default_branch, settings.default_branch

    def with_branch(self, root: ConfRoot) -> ConfRoot:
        """The root with its branch, as far as it is known: a missing or unreadable one must not act for another (C24).

        A root that cannot name it belongs to the one branch that the state folder knows of this bundle, or to the default
        branch before the first reconcile. With several it stays unknown, and that is one of its problems.
        """
        if root.is_branch_known:
            return root
        try:
            branches = {branch for bundle, branch in open_branches(self.state_root) if bundle == self.bundle}
        except ChrononError as error:
            return replace(root, problems=(*root.problems, error.fault))
        if len(branches) <= 1:
            settings = root.settings.model_copy(update={"branch": next(iter(branches), None)})
            return replace(root, settings=settings, is_branch_known=True)
        problem = (
            f"it is not known which branch {root.path} belongs to: {', '.join(sorted(branches))} are deployed here"
        )
        remedy = "mend it, or name the branch by [chronon] branch"
        return replace(root, problems=(*root.problems, Fault("C24", "branch", problem, remedy)))

    def with_state(self, root: ConfRoot) -> ConfRoot:
        """The root with what the state folder knows of it: its branch, and the last good settings where its own have a mistake.

        Those that a parse or a reconcile kept hold on (C23); without any the root stays as it is.
        """
        found = self.with_branch(root)
        if not found.settings_faults or not found.is_branch_known:
            return found
        try:
            text = self.open_state(found).read_settings()
            last_good = None if text is None else parse_settings(text, environ=self.environ)
        except ChrononError as error:
            return replace(found, problems=(*found.problems, error.fault))
        if last_good is None:
            return found
        kept = read_conf_root(self.conf_root, environ=self.environ, branch=found.branch, last_good=last_good)
        return kept if kept.branch == found.branch else found

    def keep_settings(self, root: ConfRoot) -> None:
        """Remember the settings of a root if they are good, so that a mistake made later turns nothing off (C23).

        For whoever reads what is deployed. A state folder that cannot be written costs no DAG: the next parse tries again.
        """
        text = root.settings_to_keep
        if text is None or not root.is_branch_known:
            return
        with contextlib.suppress(ChrononError):
            self.open_state(root).keep_settings(text)

    def need_branch(self, root: ConfRoot) -> ConfRoot:
        """The same where nothing may be done for an unknown branch. Raises :class:`ChrononError`."""
        found = self.with_state(root)
        if not found.is_branch_known:
            raise ChrononError(found.problems[-1])
        return found

    def owner(self, root: ConfRoot) -> Owner:
        """Whose DAGs those of the root are."""
        return Owner(root.branch, self.bundle)

    def open_state(self, root: ConfRoot) -> StateFolder:
        """What is remembered of the root's branch; nothing is read yet."""
        return open_state(self.state_root, deployment=self.owner(root))


def find_deployment(
    *,
    environ: Mapping[str, str],
    configured: Mapping[str, str] | None = None,
    conf_root: str | Path | None = None,
    default_root: str | Path = DEFAULT_ROOT,
    bundle: str | None = None,
    bundle_branch: str | None = None,
    state_root: str | None = None,
) -> Deployment:
    """The deployment that the arguments, ``[chronon]`` and the defaults describe, in this order; nothing is read yet.

    ``configured`` holds the :data:`OPTIONS` that Airflow's configuration sets; without it those in ``environ`` count, for
    whoever reads no configuration file. ``bundle_branch`` is the branch that the DAG bundle follows.
    """
    options = configured if configured is not None else {name: environ.get(variable(name), "") for name in OPTIONS}
    home = airflow_home(environ)
    return Deployment(
        conf_root=Path(conf_root or options.get("conf_root") or default_root),
        branch=options.get("branch") or bundle_branch,
        bundle=bundle or DEFAULT_BUNDLE,
        state_root=state_root or options.get("state_root") or str(home / _STATE_FOLDER),
        orphaned_files=home / _ORPHANED_FILES,
        environ=environ,
    )


def variable(option: str) -> str:
    """The environment's variable for an option of ``[chronon]``, as Airflow names it."""
    return f"AIRFLOW__CHRONON__{option.upper()}"
