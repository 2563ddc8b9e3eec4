"""The shop's two teams. The compiler merges the `default` team into the others."""

from ai.chronon.types import EnvironmentVariables, Team

# The compiler asks for a version; nothing else about the place of a deployment belongs in a compiled conf.
default = Team(
    description="What every team inherits",
    email="data@shop.example",
    outputNamespace="shop_default",
    env=EnvironmentVariables(common={"VERSION": "1.28.0"}),
)

commerce = Team(
    description="Orders and payments",
    email="commerce@shop.example",
    outputNamespace="commerce",
)

growth = Team(
    description="Customers and visits",
    email="growth@shop.example",
    outputNamespace="growth",
)
