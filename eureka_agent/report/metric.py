"""Metric behind the scores, in words: it may measure something else than a person's sentence."""

from __future__ import annotations

from eureka_agent.analysis.standing import judged_words
from eureka_agent.records import TaskDescription
from eureka_agent.report.run_report import RunReport
from eureka_agent.text import one_line


def metric_lines(report: RunReport) -> list[str]:
    """First sentences of a report: the metric, and where it may differ from the sentence."""
    lines = [metric_sentence(report.description, report.fitness_origin)]
    task = report.description.sentence
    if not report.is_measured:
        lines.append("a strength compares attempts of this run, and is no score of the task")
    elif report.fitness_origin:
        lines.append(
            "the scores hold for that fitness only, and there is no human reward to compare them"
            " with"
        )
    elif not report.sentence_agrees and not same_words(report.sentence, task):
        lines.append(
            f"the task in its own words: {' '.join(task.split()).rstrip('.')}. If your sentence"
            " asks for something else, that is not measured"
        )
    if report.not_understood:
        clauses = "; ".join(repr(one_line(each, 100)) for each in report.not_understood[:12])
        lines.append(
            f"the offline designer did not understand {clauses}, so it made no term of it; a"
            " language model (--model) would read it"
        )
    if report.is_measured and report.by_strength is not None:
        lines.append("strengths rank the attempts, in place of this fitness")
    if (judged := report.by_model) is not None:
        words = judged_words(judged.model, judged.comparisons, judged.agreement, judged.sub_goals)
        lines.append(f"so far {words}")
    return [f"{line[:1].upper()}{line[1:]}." for line in lines]


def metric_sentence(description: TaskDescription, fitness_origin: str) -> str:
    """Sentence on the metric. `fitness_origin`: that of a written fitness, else empty."""
    what = " ".join(description.fitness_doc.split()).rstrip(".")
    if fitness_origin:
        return f"{fitness_origin}: {what}"
    return f"fitness is the metric of the environment's own task {description.task!r}: {what}"


def same_words(one: str, other: str) -> bool:
    """True where two sentences differ in case, spaces and full stops alone."""
    ours, theirs = (" ".join(each.casefold().split()).rstrip(" .") for each in (one, other))
    return ours == theirs
