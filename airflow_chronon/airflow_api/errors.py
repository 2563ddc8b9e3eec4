"""What can go wrong with Airflow's API, each as one sentence."""

from __future__ import annotations

from airflow_chronon.errors import ChrononError, Fault


class AirflowError(ChrononError):
    """Airflow did not do what was asked of it."""


class AirflowUnreachable(AirflowError):
    """Nothing answers, or what answers is not Airflow, or it goes on failing (5xx)."""

    def __init__(self, url: str, problem: str, remedy: str = "is the api-server up, and is the address right?") -> None:
        super().__init__(Fault("connection", "", f"Airflow at {url} {problem}", remedy))


class AirflowRefused(AirflowError):
    """Airflow's own answer was no; ``status`` is its HTTP status and ``detail`` its sentence."""

    def __init__(self, what: str, *, status: int, detail: str, remedy: str = "") -> None:
        self.status, self.detail = status, detail
        super().__init__(Fault("Airflow", "", f"{what}: {detail} ({status})", remedy))


class LoginFailed(AirflowRefused):
    """A wrong user, password or token."""


class NoRights(AirflowRefused):
    """The user may not do this; ``right`` is what they lack, such as ``edit DAGs``."""

    def __init__(self, what: str, *, status: int, detail: str, remedy: str, right: str, who: str) -> None:
        self.right = right
        super().__init__(what, status=status, detail=f"{who} lacks the right to {right}: {detail}", remedy=remedy)


class NotThere(AirflowRefused):
    """There is no such DAG, run or backfill."""


class Conflict(AirflowRefused):
    """Something that is there or under way stands in the way."""


class NotConfigured(AirflowError):
    """Nobody said where Airflow is."""
