"""From the setting ``runner`` to a runner; strict about every key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import Runner
from airflow_chronon.errors import Fault, Rejected


def build_runner(settings: Mapping[str, object], *, default_root: str | None = None) -> Runner:
    """The runner that the settings describe; nothing is started yet.

    ``default_root`` is the warehouse of a ``local`` runner that names none: the catalog's root, as a rule.
    Raises :class:`airflow_chronon.errors.Rejected` with every unknown kind, key or value and what is allowed.
    """
    kind = settings.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Rejected([_fault("kind", f"the runner kind {kind!r} is not known", f"use {' or '.join(_KINDS)}")])
    return _KINDS[kind](settings, default_root)


def build_command_runner(settings: Mapping[str, object]) -> CommandRunner:
    """The ``command`` runner that the settings describe. Raises like :func:`build_runner`."""
    return _command(settings, None)


def _local(settings: Mapping[str, object], default_root: str | None) -> Runner:
    faults = _unknown_keys(settings, allowed=("warehouse", "memory_limit", "threads", "kv_store"))
    warehouse, memory, threads = (
        settings.get("warehouse", default_root),
        settings.get("memory_limit"),
        settings.get("threads"),
    )
    if not isinstance(warehouse, str) or not warehouse.strip():
        faults.append(_fault("warehouse", f"{warehouse!r} is no folder", "give the root folder of the tables"))
    elif "://" in warehouse and not warehouse.startswith(("file://", "local://")):
        message = f"the embedded engine writes to folders of this machine only, not to {warehouse!r}"
        faults.append(_fault("warehouse", message, "give a local folder, or use the command runner"))
    if memory is not None and not isinstance(memory, str):
        faults.append(_fault("memory_limit", f"{memory!r} is no amount of memory", "write it like 2GB"))
    store = settings.get("kv_store")
    if store is not None and (not isinstance(store, str) or not store.strip() or "://" in store):
        faults.append(_fault("kv_store", f"{store!r} is no file of this machine", "give the path of an SQLite file"))
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        faults.append(_fault("threads", f"{threads!r} is no number of threads", "give a whole number from 1"))
    if faults:
        raise Rejected(faults)
    folder = str(warehouse).removeprefix("file://").removeprefix("local://")
    return LocalRunner(
        folder,
        memory_limit=memory if isinstance(memory, str) else None,
        threads=threads if isinstance(threads, int) else None,
        kv_store=store if isinstance(store, str) else None,
    )


def _command(settings: Mapping[str, object], default_root: str | None) -> CommandRunner:
    faults = _unknown_keys(settings, allowed=("argv", "env", "cwd", "grace_seconds"))
    argv, env, cwd, grace = (settings.get(key) for key in ("argv", "env", "cwd", "grace_seconds"))
    if argv is not None and not (
        isinstance(argv, list | tuple) and argv and argv[0] and all(_is_text(part) for part in argv)
    ):
        faults.append(
            _fault("argv", f"{argv!r} is no list of arguments", 'write ["program", "--option", "{conf_path}"]')
        )
        argv = None
    if env is not None and not (
        isinstance(env, Mapping) and all(_is_text(each) for pair in env.items() for each in pair)
    ):
        faults.append(_fault("env", "it must map names to texts", "quote numbers and dates"))
    if cwd is not None and not isinstance(cwd, str):
        faults.append(_fault("cwd", f"{cwd!r} is no folder", "give a path"))
    if grace is not None and (not isinstance(grace, int | float) or isinstance(grace, bool) or grace < 0):
        faults.append(_fault("grace_seconds", f"{grace!r} is no number of seconds", "give a number from 0"))
    if not faults:
        return CommandRunner(
            argv=[str(part) for part in argv] if isinstance(argv, list | tuple) else None,
            env={str(key): str(value) for key, value in env.items()} if isinstance(env, Mapping) else {},
            cwd=cwd if isinstance(cwd, str) else None,
            grace_seconds=float(grace) if isinstance(grace, int | float) else CommandRunner.grace_seconds,
        )
    raise Rejected(faults)


def _is_text(value: object) -> bool:
    """Whether it can be handed to a process."""
    return isinstance(value, str) and "\0" not in value


#: Every kind of runner and what builds it from its settings.
_KINDS: dict[str, Callable[[Mapping[str, object], str | None], Runner]] = {"local": _local, "command": _command}


def _unknown_keys(settings: Mapping[str, object], *, allowed: tuple[str, ...]) -> list[Fault]:
    unknown = [key for key in settings if key not in ("kind", *allowed)]
    return [
        _fault(str(key), f"the key {key!r} is not known", f"allowed are kind, {', '.join(allowed)}") for key in unknown
    ]


def _fault(key: str, message: str, remedy: str) -> Fault:
    return Fault("settings", f"runner.{key}", message, remedy)
