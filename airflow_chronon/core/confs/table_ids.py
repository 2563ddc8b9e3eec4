"""From a table to the DAG ids of all confs that may write it, of whatever branch: an id holds the conf's name, as the table does.

Nothing is looked up for it, so that it holds for deployments that nobody here knows (C24, C28).
"""

from __future__ import annotations

import re

from airflow_chronon.core.confs.documents import ConfType

_OTHER = re.compile(r"[^a-zA-Z0-9_]")
_KIND = re.compile(rf"(?:^|--)(?:{'|'.join(kind.value for kind in ConfType)})\.")  #: behind it comes the conf's name
_SHORTENED = re.compile(r"_[0-9a-f]{8}(?:__.*)?$", re.DOTALL)
_LONGEST_STEM = 20  #: so much of a name is left in an id, however long its branch is
UPLOAD = "__upload"
_OLDER_UPLOAD = "_upload"


def ids_like(table: str) -> str:
    """A part that all these ids have in common, where ``_`` stands for any one character, as in SQL's LIKE."""
    bare = table.rpartition(".")[2]
    return (bare.split("__")[0].removesuffix(_OLDER_UPLOAD) or bare)[:_LONGEST_STEM]


def may_write(dag_id: str, table: str) -> bool:
    """Whether the DAG may be of a conf that writes a table; of a long id only the conf's own word tells."""
    bare = table.rpartition(".")[2]
    same = {bare, *(form for tail in (UPLOAD, _OLDER_UPLOAD) for form in (bare + tail, bare.removesuffix(tail)))}
    names = [_OTHER.sub("_", dag_id[kind.end() :]) for kind in _KIND.finditer(dag_id)]
    return any(name in same for name in names) or bool(names and _SHORTENED.search(dag_id))
