from ai.chronon.types import EnvironmentVariables, Team
default = Team(description="d", email="d@example.test", outputNamespace="out", env=EnvironmentVariables(common={"VERSION": "1.28.0"}))
team = Team(description="t", email="t@example.test", outputNamespace="out")
