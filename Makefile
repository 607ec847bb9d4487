# A fresh machine needs python3.11 (with venv and pip), make and git; everything else is installed into .venv, and for tests
# into .venv-tox and .tox.
PYTHON ?= python3.11
BIN := .venv/bin
TOX := .venv-tox/bin/tox
LEVEL ?= smoke
OUT ?= out
# What takes many audits: rates of false alarms, power, and the whole catalogue.
STATISTICS := tests/claims/test_main_job.py tests/claims/test_standard.py tests/validity tests/power

.PHONY: audit test test-statistics test-versions bench publish peers docs clean

audit: .venv/installed
	$(BIN)/dpaudit run experiments --level $(LEVEL) --out $(OUT)

# On two cores 12 minutes and more, by machine, and as much for the rates of false alarms, power, and the whole catalogue.
test: $(TOX)
	$(TOX) run-parallel --parallel 2 --parallel-live -e lint,types,tests,package

test-statistics: $(TOX)
	$(TOX) run -e tests -- $(STATISTICS)

# Unit tests and targets with each version of Python that is installed.
test-versions: $(TOX)
	$(TOX) run -e py311,py312,py313 --skip-missing-interpreters true

# The published figures: the run over the whole catalogue (16 minutes on 2 cores) with its theorems and errata, false
# alarms (40), joint events (5), power (3), the cases of other sequential auditors (10), one training run (10),
# steps of a run and many runs (14), runs of libraries (6), pitfalls of training (4), certificates and replay (10),
# calibration (4), mutants (10), spread losses (5), conformity (4), defects of kinds (2) and of released libraries (33),
# many pairs (10), and the engine's own cost (2).
bench: publish
	$(BIN)/python -m benchmarks.false_alarms --out reports/false_alarms.md
	$(BIN)/python -m benchmarks.ledgers --out reports/ledgers.md
	$(BIN)/python -m benchmarks.dependent --out reports/dependent.md
	$(BIN)/python -m benchmarks.planted --out reports/planted.md
	$(BIN)/python -m benchmarks.joined --out reports/joined.md
	$(BIN)/python -m benchmarks.power --out reports/power.md
	$(BIN)/python -m benchmarks.head_to_head --out reports/head_to_head.md
	$(BIN)/python -m benchmarks.certificates --out reports/certificates.md
	$(BIN)/python -m benchmarks.house_certificates --out reports/house_certificates.md
	$(BIN)/python -m benchmarks.traced --out reports/traced.md
	$(BIN)/python -m benchmarks.traced_libraries --out reports/traced_libraries.md
	$(BIN)/python -m benchmarks.one_run --out reports/one_run.md
	$(BIN)/python -m benchmarks.training --out reports/training.md
	$(BIN)/python -m benchmarks.training_libraries --out reports/training_libraries.md
	$(BIN)/python -m benchmarks.training_rungs --out reports/training_rungs.md
	$(BIN)/python -m benchmarks.digits --out reports/digits.md
	$(BIN)/dpaudit calibrate --out reports
	$(BIN)/python -m benchmarks.mutants --out reports/mutants.md
	$(BIN)/python -m benchmarks.spread --out reports/spread.md
	$(BIN)/python -m benchmarks.conformity --out reports/conformity.md
	$(BIN)/python -m benchmarks.theorems out/standard/results.json --out reports/theorems.md
	$(BIN)/python -m benchmarks.defects --libraries --out reports/defects.md
	$(BIN)/python -m benchmarks.real_defects --out reports/corpus.md
	$(BIN)/python -m benchmarks.noise_scales --out reports/noise_scales.md
	$(BIN)/python -m benchmarks.many_pairs --out reports/many_pairs.md
	$(BIN)/python -m benchmarks.parity --out reports/parity.md
	$(BIN)/python -m benchmarks.knowledge_transfer --out reports/knowledge_transfer.md
	$(BIN)/python -m benchmarks.cost --out reports/cost.md

# The published run over the whole catalogue: 16 minutes on 2 cores.
publish: .venv/installed
	$(BIN)/dpaudit run experiments --level standard --out out/standard
	$(BIN)/python -m benchmarks.publish out/standard/results.json --out reports/full

# Against other auditors (5 minutes on 2 cores), and the use of two cores, on a machine that does nothing else (20, with
# --pairs 1: 7). The first time, a peer is installed into an environment of its own in the cache folder.
peers: .venv/installed
	$(BIN)/python -m benchmarks.peers --out reports/peers.md
	$(BIN)/python -m benchmarks.cores --out reports/cores.md

# The pages that are made from the code: after a change of experiments, options or public docstrings.
docs: .venv/installed
	$(BIN)/python -m benchmarks.catalogue --out docs/catalogue.md
	$(BIN)/python -m benchmarks.reference --out docs/reference.md

# dpaudit itself is installed in place; what it needs comes pinned from constraints.txt.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[all,test,dev]'
	touch $@

# tox makes an environment of its own for each of its steps; it needs no other package here.
$(TOX): constraints.txt
	$(PYTHON) -m venv .venv-tox
	.venv-tox/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt tox
	touch $@

clean:
	rm -rf .venv .venv-tox .tox out build *.egg-info
