"""Defaults of audits, which help texts show without loading an audit."""

from __future__ import annotations

#: Default budget in outputs, both sides together: a lower bound within about 3 % of epsilon = 1.
DRAWS = 400_000
#: How draws are judged: while they come in, or half of them once.
METHODS = ("e-process", "clopper-pearson")
