"""A person's feedback in words."""

from __future__ import annotations

from eureka_agent import wording
from eureka_agent.feedback.agreement import Agreement
from eureka_agent.feedback_records import (
    Choice,
    Comparison,
    Edit,
    Feedback,
    Importance,
    Judge,
    Judgement,
    Mark,
    Wish,
    Withdrawal,
)

GRADES = {
    2: "is much better than",
    1: "is better than",
    0: "is as good as",
    -1: "is worse than",
    -2: "is much worse than",
}


def feedback_line(feedback: Feedback) -> str:
    """The feedback as the end of a sentence about the person."""
    match feedback:
        case Wish():
            of = f" of {feedback.attempt}" if feedback.attempt else ""
            saw = f"saw{of}: {feedback.saw}" if feedback.saw else ""
            wants = f"wants{of if not saw else ''}: {feedback.wants}" if feedback.wants else ""
            return "; ".join(filter(None, (saw, wants)))
        case Choice():
            best = "none is best" if feedback.best is None else f"{feedback.best} is best"
            worst = "none is worst" if feedback.worst is None else f"{feedback.worst} is worst"
            return f"chooses among {', '.join(feedback.shown)}: {best}, {worst}"
        case Comparison(grade=None):
            return f"cannot tell {feedback.first} from {feedback.second}"
        case Comparison(grade=grade):
            return f"says: {feedback.first} {GRADES[grade or 0]} {feedback.second}"
        case Judgement():
            return f"compares pictures: {'; '.join(map(_compared, feedback.comparisons))}"
        case Importance():
            of = f" of {feedback.attempt}" if feedback.attempt else ""
            return f"orders the {feedback.of}{of}: {' > '.join(feedback.order)}"
        case Mark():
            note = f": {feedback.note}" if feedback.note else ""
            return f"marks {feedback.clip.attempt} at {feedback.second:.2f} s{note}"
        case Edit():
            lines = len(feedback.source.splitlines())
            return f"gives a reward{_of(feedback.attempt)} of {lines} lines"
        case Withdrawal():
            return f"withdraws entry {feedback.of}"
        case Judge(by="choices"):
            return "has choices rank the attempts"
        case Judge(by="model"):
            return "has a model's comparisons of pictures rank the attempts"
    return "has the fitness rank the attempts"


def _compared(comparison: Comparison) -> str:
    if comparison.grade is None:
        return f"{comparison.first} or {comparison.second}, cannot tell"
    return f"{comparison.first} {GRADES[comparison.grade]} {comparison.second}"


def judged_words(model: str, comparisons: int, agreement: Agreement | None) -> str:
    """Clause on a model that judges, and on how far it agrees with the person."""
    words = f"{model} judged {wording.plural(comparisons, 'pair')} from pictures"
    return words if agreement is None else f"{words}; {agreement}"


def _of(attempt: str) -> str:
    return f" made from {attempt}" if attempt else ""
