"""What happens to a worker's clients on real kube-apiservers. Each scenario runs a kubelane of its own.

    scenario      what scenarios have in common: traffic through a fault, and the verdict
    lost          a server is lost
    alarms        nothing is lost
    operations    what operators do
"""

from . import lost, alarms, operations  # they register themselves, in this order
from .scenario import SCENARIOS, Lab, Result

__all__ = ["SCENARIOS", "Lab", "Result", "alarms", "lost", "operations"]
