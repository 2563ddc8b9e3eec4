"""``plan`` and ``reconcile``: what Airflow lacks to be as the tree says, and making it so."""

from __future__ import annotations

import argparse
import getpass
import time
from collections.abc import Iterator

from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, USAGE, say, show, tell
from airflow_chronon.cli.server import AIRFLOW, need_server
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, deployment_of
from airflow_chronon.cli.target import open_root
from airflow_chronon.conf_root.revisions import revision_of
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.plan.build import Confirmation
from airflow_chronon.core.plan.diff import Change, Difference, compare_trees
from airflow_chronon.core.plan.explain import explain_plan, plan_json
from airflow_chronon.core.plan.facts import CHRONON_TAG, Deployment, branch_tag
from airflow_chronon.errors import ChrononError, Fault, shown_address
from airflow_chronon.reconcile.gather import Place
from airflow_chronon.reconcile.run import outcome_lines, plan_now
from airflow_chronon.reconcile.run import reconcile as reconcile_place
from airflow_chronon.state.folder import open_branches, open_state

BASE = option("--base", metavar="REV", help="compare with a git revision of the conf root, without asking Airflow")


def plan(options: argparse.Namespace) -> int:
    """``plan``: what a reconcile would do now, and why; with ``--base``, what differs from another revision."""
    root = open_root(options.root)
    if options.base is not None:
        return show_differences(root, options.base, options)
    place = _place(_with_branch(root, options), options)
    found = plan_now(place, now=int(time.time()))
    show(options, text=lambda: "\n".join(explain_plan(found)), value=lambda: plan_json(found))
    return FINDINGS if found.findings else GOOD


def reconcile(options: argparse.Namespace) -> int:
    """``reconcile``: do what ``plan`` shows."""
    if options.retire_branch != bool(options.branch):
        tell("reconcile: --branch and --retire-branch go together")
        return USAGE
    root = _with_branch(open_root(options.root), options)
    places = tuple(_given_up(root, options)) if options.retire_branch else (_place(root, options),)
    confirmation = Confirmation.MASS_RETIRE if options.confirm_mass_retire else Confirmation.NONE
    now = int(time.time())
    if options.dry_run:
        plans = [plan_now(place, now=now, confirmation=confirmation) for place in places]
        say("\n".join(line for each in plans for line in explain_plan(each)))
        return FINDINGS if any(each.findings for each in plans) else GOOD
    code = GOOD
    for place in places:
        done = reconcile_place(place, by=_who(), now=now, confirmation=confirmation)
        say("\n".join((*explain_plan(done.plan), *outcome_lines(done))))
        code = code if done.is_good else FINDINGS
    return code


def show_differences(root: ConfRoot, revision: str, options: argparse.Namespace) -> int:
    """Print what differs from a revision; findings are grids that changed without a version bump (C22)."""
    notes: list[Fault] = []
    with revision_of(root, revision, notes=notes) as base:
        found = compare_trees(base.facts(), root.whole.facts())
    show(
        options,
        text=lambda: "\n".join(map(str, found)) or f"nothing differs from {revision}",
        value=lambda: list(map(_difference_json, found)),
    )
    for problem in (*notes, *root.problems):
        tell(problem)
    return FINDINGS if root.problems or any(each.change is Change.GRID for each in found) else GOOD


PLAN = Command(
    "plan",
    "show what a reconcile would do now, and why",
    (ROOT, BASE, AIRFLOW, STATE_ROOT, BUNDLE, FORMAT),
    plan,
)
RECONCILE = Command(
    "reconcile",
    "make Airflow what the tree says: retire what is gone, unpause, replay what was missed",
    (
        ROOT,
        option("--dry-run", action="store_true", help="only show it, as plan does"),
        option("--confirm-mass-retire", action="store_true", help="retire even where the tree looks damaged"),
        option("--branch", metavar="NAME", help="with --retire-branch: the branch that is given up"),
        option(
            "--retire-branch", action="store_true", help="retire every DAG of a branch that nobody produces any more"
        ),
        AIRFLOW,
        STATE_ROOT,
        BUNDLE,
    ),
    reconcile,
)


def _who() -> str:
    try:
        return f"{getpass.getuser()} (airflow-chronon reconcile)"
    except (KeyError, OSError):  # a container's user may have no name
        return "airflow-chronon reconcile"


def _with_branch(root: ConfRoot, options: argparse.Namespace) -> ConfRoot:
    return deployment_of(options).need_branch(root)


def _place(root: ConfRoot, options: argparse.Namespace) -> Place:
    found = deployment_of(options)
    tell(f"branch {root.branch} in the DAG bundle {found.bundle}")
    return Place(root, found.owner(root), found.open_state(root), found.state_root, need_server(options))


def _given_up(root: ConfRoot, options: argparse.Namespace) -> Iterator[Place]:
    """The deployments of a branch that is given up: one per bundle that Airflow or the state folder knows."""
    branch, state_root, server = options.branch, deployment_of(options).state_root, need_server(options)
    if branch in (root.branch, root.settings.default_branch):
        which = f"the branch that {root.path} deploys" if branch == root.branch else "the default branch"
        problem = f"{branch} is {which}"
        remedy = "remove the confs instead; --retire-branch is for other branches"
        raise ChrononError(Fault("C24", "--branch", problem, remedy))
    bundles: set[str | None] = {bundle for bundle, _ in open_branches(state_root, branch=branch)}
    bundles |= {dag.bundle for dag in server.dags(tags=(CHRONON_TAG, branch_tag(branch)))}
    if not bundles:
        problem = f"neither Airflow nor {shown_address(state_root)} knows a branch {branch!r}"
        raise ChrononError(Fault("C24", "--branch", problem, "plan lists the branches that nobody produces any more"))
    for bundle in sorted(bundles, key=str):
        deployment = Deployment(branch, bundle, given_up=True)
        yield Place(root, deployment, open_state(state_root, deployment=deployment), state_root, server)


def _difference_json(each: Difference) -> dict[str, str]:
    found = {"change": each.change.value, "dag_id": each.dag_id}
    return found | ({"detail": str(each.fault or each.detail)} if each.fault or each.detail else {})
