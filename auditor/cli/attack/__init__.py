"""Attacking somebody else's mechanism."""

from auditor.cli.attack.options import Attack
from auditor.cli.attack.work import attack_on, attack_once

__all__ = ["Attack", "attack_on", "attack_once"]
