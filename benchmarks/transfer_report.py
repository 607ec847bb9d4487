"""The report of `benchmarks.knowledge_transfer`: tables and figures.

Accuracies are means over splits of the data, in per cent, with standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from markupsafe import Markup

from auditor.report import svg
from auditor.report.curves import Log
from auditor.report.figures import draw_marker
from benchmarks.teachers import LEARNERS, METHODS, TASKS, certified, cutoff
from mechanisms.teacher_ensembles.vote_aggregation import printed_chunks

#: Levels of the study.
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
#: Levels in the tables; the figures have all.
SHOWN = (4.0, 16.0, 64.0)
#: Level of the figures over the number of queries: most methods answer something there, none everything.
MIDDLE = 16.0
#: Runs of each method on the votes of one ensemble, and how many of them have a student.
RUNS, STUDENTS = 20, 2

Results: TypeAlias = dict[str, dict[str, Any]]
"""What `benchmarks.teachers.measured` returns, by the key of its cell."""


class MeanWithError(NamedTuple):
    """A mean over splits, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ± {100 * self.error:.1f}"


def mean(values: Sequence[float]) -> MeanWithError:
    """Mean of one value a split."""
    array = np.array(values)
    spread = float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else 0.0
    return MeanWithError(float(array.mean()), spread)


@dataclass(frozen=True)
class ResultTable:
    """Results by what they are of."""

    results: Results

    def of(self, task: str, learner: str, get: Callable[[dict[str, Any]], float]) -> MeanWithError:
        """Mean over the splits of a task and learner."""
        return mean(
            [get(r) for key, r in sorted(self.results.items()) if key.rpartition("/")[0] == f"{task}/{learner}"]
        )

    def released(self, task: str, learner: str, method: str, epsilon: float, queries: int, what: str) -> MeanWithError:
        """Mean over the splits of "answered", "right" or "student"."""
        at = (method, epsilon, queries)

        def get(result: dict[str, Any]) -> float:
            rows = (r for r in result["rows"] if (r["method"], r["epsilon"], r["queries"]) == at)
            return float(next(rows)[what])

        return self.of(task, learner, get)


class PlotCurve(NamedTuple):
    """Points of a plot: place, value, and limits."""

    title: str
    points: list[tuple[float, float, float, float]]


@dataclass(frozen=True)
class PercentagePlot:
    """Percentages over a logarithmic axis; what `benchmarks.theorems.picture` needs to make a file of it."""

    name: str
    axis: str
    measured: str
    curves: tuple[PlotCurve, ...]
    bounded: bool = False

    @property
    def picture(self) -> Markup:
        """The plot."""
        places = sorted({point[0] for curve in self.curves for point in curve.points})
        across = Log(places[0], places[-1], svg.LEFT, svg.WIDTH - svg.RIGHT)
        up = svg.Axis(0.0, 100.0, svg.HEIGHT - svg.BOTTOM, svg.TOP)
        parts = [
            svg.draw_ticks_x([(across.at(v), f"{v:g}") for v in places], svg.TOP, svg.HEIGHT - svg.BOTTOM),
            svg.draw_ticks_y([(up.at(v), f"{v:g}") for v in range(0, 101, 20)]),
        ]
        for i, curve in enumerate(self.curves):
            parts += [
                f'<g class="curve{i}">',
                svg.draw_line([(across.at(x), up.at(y)) for x, y, _, _ in curve.points], "joined"),
            ]
            for x, y, low, high in curve.points:
                limits = f"M{svg.px(across.at(x))} {svg.px(up.at(high))}V{svg.px(up.at(low))}"
                said = f"{curve.title}, {self.axis} = {x:g}: {y:.1f}"
                parts += [f'<path class="mark limits" d="{limits}"/>', draw_marker(i, across.at(x), up.at(y), said)]
            parts.append("</g>")
        parts += svg.draw_titles(self.axis, self.measured)
        return svg.draw_picture(svg.WIDTH, svg.HEIGHT, f"{self.name}: {self.measured} over {self.axis}", parts)


def _curve(title: str, at: Sequence[float], values: Sequence[MeanWithError]) -> PlotCurve:
    return PlotCurve(
        title,
        [
            (x, 100 * m.value, 100 * max(m.value - m.error, 0.0), 100 * min(m.value + m.error, 1.0))
            for x, m in zip(at, values, strict=True)
        ],
    )


def plots(table: ResultTable) -> dict[str, PercentagePlot]:
    """The figures, by the name of their file."""
    found = {}
    for key, task in TASKS.items():
        middle, learner = task.queries[1], "logistic regression"
        students = [
            _curve(method.title, EPSILONS, [table.released(key, learner, name, e, middle, "student") for e in EPSILONS])
            for name, method in METHODS.items()
        ]
        bare = table.of(key, learner, lambda r, m=middle: r["transfer"][str(m)])  # type: ignore[misc]
        students.append(_curve("labels of the ensemble, without privacy", EPSILONS, [bare] * len(EPSILONS)))
        agnostic = [
            _curve(name, EPSILONS, [table.released(key, name, "tight", e, middle, "right") for e in EPSILONS])
            for name in LEARNERS
        ]
        counts = [
            _curve(
                method.title,
                task.queries,
                [table.released(key, learner, name, MIDDLE, m, "right") for m in task.queries],
            )
            for name, method in METHODS.items()
        ]
        for slug, title, axis, what, curves in (
            ("student", f"students of {middle} labels, {learner}", "epsilon", "test rows right, %", students),
            ("learners", f"{middle} queries, tight constants", "epsilon", "answered and right, %", agnostic),
            ("queries", f"epsilon = {MIDDLE:g}, {learner}", "queries", "answered and right, %", counts),
        ):
            name = f"{task.name}: {title}"
            found[f"transfer-{key.replace('_', '-')}-{slug}.svg"] = PercentagePlot(name, axis, what, tuple(curves))
    return found


def document(results: Results, repetitions: int) -> str:
    """The page."""
    table = ResultTable(results)
    text = [
        "# Knowledge transfer with real learners",
        "",
        "Teachers are scikit-learn classifiers, trained on disjoint chunks of private rows. Their votes on public rows "
        "are given out online, and a student is trained on the labels that were. Accuracy is on rows that nobody has "
        f"seen, in per cent: means over {repetitions} splits of the data, with standard errors. Of each ensemble "
        f"{RUNS} runs are made, {STUDENTS} with a student. Features are standardised by the public rows.",
        "",
        "Four methods: " + "; ".join(f"*{name}*: {method.title}" for name, method in METHODS.items()) + ". The "
        "document's are lambda = sqrt(32 T ln(2/delta))/epsilon and w = 2 lambda ln(2m/delta) with the votes' gap less "
        "1 as distance; and, for the baseline, epsilon/sqrt(8 m ln(2/delta)) and delta/(2m) a query. Tight ones "
        "are the least for which epsilon and delta are proved, by optimal composition of T + 1 epochs (of m queries), "
        "half of delta each for composition and for leaks, with distances to instability as exact ones. T is m/20, "
        "rounded up. Refused points are left out of the student's training.",
        "",
        *_sizes(),
        *_tabulate_without_privacy(table),
        *_tabulate_private(table),
        *_tabulate_random_labels(table),
        *_tabulate_certified(),
        *_teachers(),
        "## Figures",
        "",
    ]
    for file, plot in plots(table).items():
        text += [f"### {plot.name}", "", f"![{plot.name}](figures/{file})", ""]
    return "\n".join([*text, "Made by `python -m benchmarks.knowledge_transfer`.", ""])


def _sizes() -> list[str]:
    lines = [
        "## Sizes",
        "",
        "| data | rows, private | public | test | features | classes | teachers | rows each | delta |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for task in TASKS.values():
        features, labels = task.load()
        private = len(labels) - task.public - task.test
        lines.append(
            f"| {task.name} | {private:,} | {task.public:,} | {task.test:,} | {features.shape[1]} | {labels.max() + 1} "
            f"| {task.chunks} | {private // task.chunks} | {task.delta:g} |"
        )
    return [*lines, ""]


def _tabulate_without_privacy(table: ResultTable) -> list[str]:
    lines = [
        "## Without privacy",
        "",
        "One model of all private rows; the majority of the ensemble; students of its majority on m public rows.",
        "",
        "| data | learner | one model | ensemble | " + " | ".join(("student, fewest m", "middle", "most")) + " |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for key, task in TASKS.items():
        for learner in LEARNERS:
            found = [table.of(key, learner, lambda r, what=what: r[what]) for what in ("model", "ensemble")]  # type: ignore[misc]
            found += [table.of(key, learner, lambda r, m=m: r["transfer"][str(m)]) for m in task.queries]  # type: ignore[misc]
            lines.append(f"| {task.name} | {learner} | " + " | ".join(map(str, found)) + " |")
    return [*lines, ""]


def _tabulate_private(table: ResultTable) -> list[str]:
    lines = [
        "## With privacy",
        "",
        "For each method, how many of m queries are answered and right, and the accuracy of the student. A student "
        "without a label guesses.",
        "",
    ]
    for key, task in TASKS.items():
        heads = " | ".join(f"{name}, right | student" for name in METHODS)
        lines += [
            f"### {task.name}",
            "",
            f"| learner | m | epsilon | {heads} |",
            "|---|" + "---:|" * (2 + 2 * len(METHODS)),
        ]
        for learner in LEARNERS:
            for m in task.queries:
                for epsilon in SHOWN:
                    numbers = " | ".join(
                        str(table.released(key, learner, name, epsilon, m, what))
                        for name in METHODS
                        for what in ("right", "student")
                    )
                    lines.append(f"| {learner} | {m} | {epsilon:g} | {numbers} |")
        lines.append("")
    return lines


def _tabulate_random_labels(table: ResultTable) -> list[str]:
    lines = [
        "## Random labels in the place of refusals",
        "",
        "Algorithm 5 trains its student on all points, with a random label where none was given out; above, these "
        "points are left out, which is no less private. Tight constants, the middle number of queries.",
        "",
        "| data | learner | epsilon | answered | student, points left out | student, random labels |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for key, task in TASKS.items():
        for learner in LEARNERS:
            for epsilon in SHOWN:
                found = [
                    table.released(key, learner, "tight", epsilon, task.queries[1], what)
                    for what in ("answered", "student", "printed student")
                ]
                lines.append(f"| {task.name} | {learner} | {epsilon:g} | " + " | ".join(map(str, found)) + " |")
    return [*lines, ""]


def _teachers() -> list[str]:
    lines = [
        "## How many teachers the document asks for",
        "",
        "k of Algorithm 4 at beta = 0.1, which promises answers wherever three teachers in four agree. Fewer are used "
        "here: privacy does not depend on their number.",
        "",
        "| data | m | T | used | " + " | ".join(f"epsilon = {e:g}" for e in EPSILONS) + " |",
        "|---|---:|---:|---:|" + "---:|" * len(EPSILONS),
    ]
    for task in TASKS.values():
        for m in task.queries:
            asked = " | ".join(f"{printed_chunks(m, cutoff(m), e, task.delta, 0.1):,}" for e in EPSILONS)
            lines.append(f"| {task.name} | {m} | {cutoff(m)} | {task.chunks} | {asked} |")
    return [*lines, ""]


def _tabulate_certified() -> list[str]:
    lines = [
        "## What is proved of the document's constants",
        "",
        "The gap of the votes moves by 2 when a row is replaced, so an epoch costs twice what the document says. The "
        "level at delta that is proved all the same, by optimal composition; where it is above epsilon, the claim is "
        "not proved here, and not refuted.",
        "",
        "| data | m | T | " + " | ".join(f"epsilon = {e:g}" for e in EPSILONS) + " |",
        "|---|---:|---:|" + "---:|" * len(EPSILONS),
    ]
    for task in TASKS.values():
        for m in task.queries:
            proved = " | ".join(f"{certified(e, task.delta, cutoff(m), m):.3g}" for e in EPSILONS)
            lines.append(f"| {task.name} | {m} | {cutoff(m)} | {proved} |")
    return [*lines, ""]
