"""Whose a conf root is while it does not say so itself: a missing or unreadable root must not act for another branch (C24)."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.state.folder import open_branches


def with_branch(root: ConfRoot, *, bundle: str | None, state_root: str) -> ConfRoot:
    """The root with its branch, as far as it can be told.

    A root that cannot name it belongs to the one branch that the state folder knows of its bundle (``None``: of any), or to
    the default branch before the first reconcile. With several it stays unknown, and that is one of its problems.
    """
    if root.is_branch_known:
        return root
    try:
        branches = {branch for of, branch in open_branches(state_root) if bundle in (None, of)}
    except ChrononError as error:
        return replace(root, problems=(*root.problems, error.fault))
    if len(branches) <= 1:
        settings = root.settings.model_copy(update={"branch": next(iter(branches), None)})
        return replace(root, settings=settings, is_branch_known=True)
    problem = f"it cannot be told which branch {root.path} belongs to: {', '.join(sorted(branches))} are deployed here"
    remedy = "mend it, or name the branch by [chronon] branch"
    return replace(root, problems=(*root.problems, Fault("C24", "branch", problem, remedy)))


def need_branch(root: ConfRoot, *, bundle: str | None, state_root: str) -> ConfRoot:
    """The same where nothing may be done for an unknown branch. Raises :class:`ChrononError`."""
    found = with_branch(root, bundle=bundle, state_root=state_root)
    if not found.is_branch_known:
        raise ChrononError(found.problems[-1])
    return found
