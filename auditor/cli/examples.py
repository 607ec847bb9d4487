"""An example of each command, which ends its help text."""

from __future__ import annotations

EXAMPLES = {
    "attack": "dpaudit attack counts.py:noisy_count --claim epsilon=1 --relation replace-one --domain 0,1",
    "baseline": "dpaudit baseline out/results.json -o dpaudit-baseline.toml",
    "calibrate": "dpaudit calibrate --quick --out out",
    "check": "dpaudit check counts.py:noisy_count",
    "corpus": "dpaudit corpus list",
    "diff": "dpaudit diff before/results.json out/results.json",
    "evidence": 'dpaudit evidence out/results.json --unit "one patient" --out sheet',
    "helper": "dpaudit helper > dpaudit_target.py",
    "ledger": "dpaudit ledger nights.db --verify",
    "list": 'dpaudit list claims -k "laplace and not mutant"',
    "prove": "dpaudit prove counts.py:noisy_count --claim epsilon=1 --relation replace-one --domain 0,1",
    "replay": "dpaudit replay out/results.json my/count/L1/pure_dp/reference",
    "report": "dpaudit report out/results.json --out pages",
    "reproduce": "dpaudit reproduce out/results.json --sample 5",
    "run": "dpaudit run claims --level standard --out out",
    "scores": 'dpaudit scores in.csv out.csv --claim "epsilon=8, delta=1e-5"',
    "show": "dpaudit show my/count claims",
    "trace": "dpaudit trace counts.py:noisy_count --claim epsilon=1 --data x.json --neighbor y.json",
}


def show_example(name: str) -> str:
    """Write a command's example in click's notation."""
    return f"\b\nExample:\n  {EXAMPLES[name]}"
