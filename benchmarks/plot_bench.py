"""A benchmark's plot, as SVG: normalised scores of each method, with their intervals.

python benchmarks/plot_bench.py quick runs/bench-quick > docs/bench-quick.svg
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from eureka_agent.batch.suite import read_suite
from eureka_agent.batch.suite_results import Results, read_results
from eureka_agent.batch.suite_searches import task_case
from eureka_agent.batch.suite_tables import summaries

_LEFT, _WIDTH, _ROW, _TOP, _BOTTOM = 130, 560, 44, 34, 30
_COLOURS = ("#1f6feb", "#d2691e", "#2e8b57", "#8a2be2", "#b8860b", "#c71585")


def plot(results: Results) -> str:
    """Each search is a dot; bar and whiskers are the IQM and its 95 % interval. The lines at 0 and
    at 1 are the sparse and the human reward."""
    rows = []
    for summary in summaries(results):
        scores = [
            results.scale(task).normalised(mean)
            for task in results.tasks
            for mean in results.means(task, summary.method)
        ]
        rows.append((summary, [value for value in scores if value is not None]))
    values = [value for _, dots in rows for value in dots] + [0.0, 1.0]
    # wild searches are drawn at the edge
    low, high = max(min(values), -1.0), min(max(values), 3.0)
    margin = 0.05 * (high - low)
    low, high = low - margin, high + margin

    def x(value: float) -> float:
        return round(_LEFT + _WIDTH * (min(max(value, low), high) - low) / (high - low), 1)

    height = _TOP + _ROW * len(rows) + _BOTTOM
    bottom = height - _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}"'
        ' font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for value, name in ((0.0, "sparse"), (1.0, "human")):
        parts.append(
            f'<line x1="{x(value)}" x2="{x(value)}" y1="{_TOP - 8}" y2="{bottom}" stroke="#999"'
            ' stroke-dasharray="4 3"/>'
            f'<text x="{x(value)}" y="{_TOP - 14}" text-anchor="middle" fill="#555">{name}</text>'
        )
    for number, (summary, dots) in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(summary.method)}</text>'
        )
        parts += [
            f'<circle cx="{x(value)}" cy="{y + 10}" r="3" fill="{colour}" fill-opacity="0.35"/>'
            for value in dots
        ]
        if (iqm := summary.iqm) is not None:
            parts.append(
                f'<line x1="{x(iqm.low)}" x2="{x(iqm.high)}" y1="{y - 4}" y2="{y - 4}"'
                f' stroke="{colour}" stroke-width="2"/>'
                f'<rect x="{x(iqm.value) - 2}" y="{y - 11}" width="4" height="14" fill="{colour}"/>'
            )
    caption = "human-normalised score: searches (dots), interquartile mean with 95 % interval"
    parts.append(f'<text x="{_LEFT}" y="{height - 9}" fill="#555">{escape(caption)}</text></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    suite = read_suite(sys.argv[1])
    names = [task_case(task)["name"] for task in suite.tasks]
    print(plot(read_results(Path(sys.argv[2]), names, list(suite.methods))), end="")
