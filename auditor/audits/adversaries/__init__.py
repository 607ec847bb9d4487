"""Adversaries: attacks that make up the data, and turn what they learn into a lower bound on the level."""

from auditor.audits.adversaries.base import Adversary, Ask, Stack
from auditor.audits.adversaries.game import Game, run_game

__all__ = ["Adversary", "Ask", "Game", "Stack", "run_game"]
