"""The guard against damaged checkouts: what is not retired, since too much has gone at once (C23)."""

from __future__ import annotations

from airflow_chronon.core.plan.actions import Hold
from airflow_chronon.core.plan.facts import Facts, TreeState
from airflow_chronon.errors import Fault

AT_LEAST = 5  #: confs that are gone at once, before a tree looks damaged
SHARE = 3  #: and more than one in so many of those that were there

_CONFIRM = "bring the confs back, or confirm it: reconcile --confirm-mass-retire"


def held_back(facts: Facts, *, is_confirmed: bool) -> Hold | None:
    """What is not retired, since the tree looks damaged; None when it looks sound or someone confirmed it."""
    tree, orphaned = facts.tree, facts.orphaned
    if facts.deployment.given_up or not orphaned:
        return None
    if tree.state is TreeState.UNREADABLE:
        problem = "the tree cannot be read as a whole, so nothing is retired"  # why is a report of its own
        return Hold(orphaned, Fault("C23", "", problem, "mend it first"))
    if is_confirmed:
        return None
    retirements = {
        dag_id: record.retirement for dag_id in orphaned if (record := facts.record(dag_id)) and record.retirement
    }
    unconfirmed = tuple(each for each in orphaned if each not in retirements or not retirements[each].confirmed)
    loses_confs = tree.is_without_confs and any(not _family(each, facts).startswith("job/") for each in unconfirmed)
    if loses_confs or (tree.state is TreeState.EMPTY and unconfirmed):  # jobs lie in a folder of their own
        problem = f"the tree holds no conf, which would retire {len(unconfirmed)} DAGs"
        return Hold(unconfirmed, Fault("C23", "", problem, _CONFIRM))
    fresh = tuple(dag_id for dag_id in orphaned if dag_id not in retirements)
    lost = [dag_id for dag_id in fresh if _family(dag_id, facts) not in tree.families]
    were = len(fresh) + sum(facts.state.holds(dag_id) or dag_id in facts.airflow.dags for dag_id in tree.ids)
    if len(lost) >= AT_LEAST and len(lost) * SHARE > were:
        problem = f"{len(lost)} of {were} confs have gone at once, which looks like a damaged checkout"
        return Hold(fresh, Fault("C23", "", problem, _CONFIRM))
    return None


def _family(dag_id: str, facts: Facts) -> str:
    """The conf without its version, by its record, else by the look of the id."""
    record = facts.record(dag_id)
    if record is not None and record.manifest is not None:
        return record.manifest.family
    conf_type, _, name = dag_id.rpartition("--")[2].partition(".")
    return f"{conf_type}/{name.rpartition('__')[0] or name}"
