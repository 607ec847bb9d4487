"""Wrong calls of all commands but attack: one line that shows what is wrong, exit code 2, and nothing done."""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.main import main
from tests.commandline import QUICK, Command, complaints, declare, read, refused

#: Results with one member that is wrong, by the name of their file.
SPOILT: dict[str, Callable[[Any], object]] = {
    "level.json": lambda c: c["claims"][1].update(lower_bound="much"),
    "draws.json": lambda c: c["claims"][1].update(draws="many"),
    "wealth.json": lambda c: c["claims"][1].update(wealth={"draws": 3}),
    "curve.json": lambda c: c["claims"][1]["tradeoff"].update(q="wide"),
    "example.json": lambda c: c["claims"][2].update(counterexample={"pair": 3}),
    "counts.json": lambda c: c["claims"][2]["counterexample"].pop("y_count"),
    "nan.json": lambda c: c["claims"][1].update(ceiling=float("nan")),
    "huge.json": lambda c: c["claims"][1].update(reached=10**400),
    "again.json": lambda c: c["claims"][2]["counterexample"].update(again={"x": 3}),
    "verdict.json": lambda c: c["claims"][0].update(verdict="fine"),
    "no_id.json": lambda c: c["claims"][0].pop("id"),
    "null.json": lambda c: c.update(claims=[None]),
    "object.json": lambda c: c.update(claims={"a": 1}),
    "no_claims.json": lambda c: c.pop("claims"),
    "no_manifest.json": lambda c: c.pop("manifest"),
    "no_paths.json": lambda c: c["manifest"].pop("paths"),
    "seed.json": lambda c: c["manifest"].update(seed="three"),
    "schema.json": lambda c: c.update(schema="dpaudit-results/9"),
    "errata.json": lambda c: c.update(errata=[3]),
    "twice.json": lambda c: c["claims"].append(c["claims"][0]),
}
TEXTS = {
    "broken.json": "{",
    "list.json": "[1]",
    "empty.json": "",
    "bad.toml": "schema = ",
    "other.toml": 'schema = "x"\n',
    "finding.toml": 'schema = "dpaudit-baseline/2"\n[[finding]]\nid = 3\n',
    "text.db": "this is no database " * 20,
    "nothing.py": "x = 1\n",
    "syntax.py": "def f(:\n",
    "raises.py": "raise RuntimeError('at load')\n",
    "number.py": "x = 3\n",
}
#: Calls, each with what the line has to show.
CALLS = """
run nothing.py                                              | 'nothing.py'
run syntax.py                                               | 'syntax.py' | SyntaxError
run raises.py                                               | 'raises.py' | at load
run folder                                                  | 'folder'
run claims.txt                                              | 'claims.txt'
run claims.py -k 'strong and'                               | 'strong and'
run claims.py -k a -k b                                     | (a) and (b)
run claims.py --resume                                      | --out
run claims.py --jobs x                                      | --jobs | 'x'
run claims.py --scheduler tcp://x:1                         | tcp://x:1
run claims.py --scheduler tcp://x:1 --jobs 3                | --jobs | tcp://x:1
run claims.py --baseline folder                             | 'folder'
run claims.py --baseline bad.toml                           | 'bad.toml'
run claims.py --baseline other.toml                         | 'other.toml' | 'x'
run claims.py --baseline finding.toml                       | 'finding.toml' | line 2
run claims.py --ledger folder                               | --ledger | folder
run claims.py --ledger text.db                              | 'text.db'
run claims.py --ledger-key k                                | 'k'
run claims.py --max-seconds 0                               | 0.0
run claims.py --draws 1e6                                   | '1e6'
run claims.py --out out --resume --seed 4                   | results.json | seed: 0 then, 4 now
run claims.py --tabel                                       | --tabel | --table
list nowhere.py                                             | 'nowhere.py'
list syntax.py                                              | 'syntax.py'
list claims.py -k nothing                                   | 'nothing'
list claims.py -k ((                                        | '(('
list claims.py --jsn                                        | --json
list ''                                                     | ''
show                                                        | 'ID'
show nothing claims.py                                      | 'nothing'
show 900/respons claims.py                                  | '900/respons' | 900/response
show 900/response nowhere                                   | 'nowhere'
report                                                      | 'RESULTS'
report nowhere.json                                         | 'nowhere.json'
report folder                                               | 'folder/results.json'
report broken.json                                          | 'broken.json'
report list.json                                            | 'list.json' | 'list'
report empty.json                                           | 'empty.json'
report level.json                                           | 'level.json' | claim 2 has the lower_bound 'much'
report draws.json                                           | 'draws.json' | claims[1].draws is 'many'
report wealth.json                                          | 'wealth.json' | claims[1].wealth.draws is 3
report curve.json                                           | 'curve.json' | claims[1].tradeoff.q is 'wide'
report example.json                                         | 'example.json' | claims[2].counterexample.pair is 3
report counts.json                                          | 'counts.json' | counterexample lacks 'y_count'
report nan.json                                             | 'nan.json' | claims[1].ceiling is nan
report huge.json --comment                                  | 'huge.json' | claims[1].reached | 1,329 bits
report errata.json                                          | 'errata.json' | errata[0] is 3
report no_claims.json                                       | 'no_claims.json' | 'claims'
report schema.json                                          | 'schema.json' | dpaudit-results/9
report object.json                                          | 'object.json'
report null.json --comment                                  | 'null.json'
report no_id.json                                           | 'no_id.json' | 'id'
report verdict.json                                         | 'verdict.json' | 'fine'
report twice.json                                           | 'twice.json'
report out/results.json --out claims.py                     | claims.py
report out/results.json --comment --out x                   | --comment
report out/results.json --baseline nowhere.toml             | 'nowhere.toml'
report out/results.json extra                               | extra
evidence nowhere.json                                       | 'nowhere.json'
evidence out/results.json nothing                           | 'nothing'
evidence wealth.json                                        | 'wealth.json' | claims[1].wealth.draws is 3
scores nowhere.json list.json --claim epsilon=1             | 'nowhere.json'
scores list.json list.json --claim budget=1                 | 'budget=1'
baseline nowhere.json                                       | 'nowhere.json'
baseline level.json                                         | 'level.json' | 'much'
baseline out/results.json -o folder                         | folder
baseline out/results.json -o nowhere/x.toml                 | 'nowhere/x.toml'
baseline out/results.json -o bad.toml                       | 'bad.toml'
baseline out/results.json -o ''                             | ''
reproduce nowhere.json                                      | 'nowhere.json'
reproduce no_paths.json                                     | 'no_paths.json'
reproduce seed.json                                         | 'seed.json' | 'three'
reproduce out/results.json --sample 0                       | --sample | 0
reproduce out/results.json -k nothing                       | 'nothing'
reproduce out/results.json --max-seconds nan                | nan
replay nowhere.json                                         | 'nowhere.json'
replay out/results.json nothing                             | 'out/results.json' | 'nothing'
replay out/results.json --data x.json                       | --neighbor
replay out/results.json --data x.json --neighbor y.json     | 'x.json'
replay out/results.json --seed -1                           | -1
replay out/results.json --limit 0                           | 0.0
replay out/results.json --target nope                       | 'nope'
replay out/results.json --target number.py:x                | 'number.py:x'
replay out/results.json --target nowhere.py:f               | 'nowhere.py'
replay again.json                                           | 'again.json' | KeyError
replay no_manifest.json                                     | 'no_manifest.json'
replay no_paths.json                                        | the paths None
diff out/results.json                                       | 'SECOND'
diff out/results.json nowhere.json                          | 'nowhere.json'
diff null.json out/results.json                             | 'null.json'
diff folder folder                                          | 'folder/results.json'
calibrate --audits 0                                        | --audits | 0
calibrate --draws 10                                        | 10
calibrate --alpha 2                                         | 2.0
calibrate --seed -1                                         | -1
calibrate --out claims.py                                   | claims.py
calibrate extra                                             | extra
helper extra                                                | extra
check                                                       | 'TARGET'
ledger                                                      | 'FILE'
ledger nowhere.db                                           | 'nowhere.db'
ledger folder                                               | folder
ledger text.db --verify                                     | 'text.db'
ledger text.db --verify --json                              | --json
ledger text.db --verify --all                               | --all
ledger ''                                                   | ''
atack                                                       | 'atack' | 'attack'
--frobnicate                                                | --frobnicate
"""
TABLE = [re.split(r"\s+\| ", line.strip()) for line in CALLS.strip().splitlines()]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Claims, their results, and results and other files that are wrong."""
    folder = tmp_path_factory.mktemp("calls")
    claims = declare(folder)
    with pytest.raises(SystemExit, match="0"):
        main([*map(str, ["run", claims, *QUICK, "--out", folder / "out"])])
    good = read(folder / "out" / "results.json")
    for name, spoil in SPOILT.items():
        content = copy.deepcopy(good)
        spoil(content)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "folder").mkdir()
    return folder


def listing(folder: Path) -> dict[str, int]:
    """Files of a folder, with when they changed; a ledger's lock is made before the ledger is looked at."""
    return {
        str(path): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".lock"
    }


@pytest.mark.parametrize(("call", "shown"), [(call, shown) for call, *shown in TABLE], ids=[row[0] for row in TABLE])
def test_a_wrong_call_is_refused_in_one_line(
    dpaudit: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, shown: list[str]
) -> None:
    monkeypatch.chdir(folder)
    before = listing(folder)
    said = dpaudit(*shlex.split(call))
    refused(said, *shown)
    assert len(complaints(said)[0]) < 400
    assert listing(folder) == before
