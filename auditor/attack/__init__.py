"""Attacking somebody else's mechanism."""

from auditor.attack.options import Attack
from auditor.attack.work import attack_on, attack_once

__all__ = ["Attack", "attack_on", "attack_once"]
