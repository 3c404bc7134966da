"""Comparison of the sentence with the task before anything is trained, for the user's attention."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from eureka_agent.designer.offline.language import (
    Intent,
    Understood,
    measured,
    read_intents,
    stem,
    stems,
    task_intents,
    tokens,
    understood,
    understood_in,
)
from eureka_agent.designer.offline.scene import TaskReading
from eureka_agent.designer.offline.wishes import (
    content_words,
    not_understood,
    unused_numbers,
    word_use,
)
from eureka_agent.invocation import command
from eureka_agent.journal.entries import Notice
from eureka_agent.llm.access import KEY_VARIABLES
from eureka_agent.records import TaskDescription
from eureka_agent.sandbox.client import built_in_folder, environment_folder
from eureka_agent.simulation.catalogue import ENVIRONMENT_FILE, read_entry
from eureka_agent.text import one_line

_NEARLY = 0.6
"""Overlap with another task's words from which a sentence counts as that task's."""
_QUOTED, _LISTED = 100, 12
"""Characters of a sentence and words of it in a notice."""


def notices(sentence: str, description: TaskDescription, *, offline: bool) -> list[Notice]:
    """Notices on the sentence. `offline` adds the words that the offline designer uses."""
    compared = comparison(sentence, description)
    remarks = [
        Notice(
            text=f"{one_line(remark, 400)}. {command('envs --check PATH')} looks at all of it",
            level="warning",
            stays=True,
        )
        for remark in description.remarks
    ]
    found = remarks if compared is None else [*remarks, compared]
    if offline:
        found.append(words_used(sentence, description))
    return found


def comparison(sentence: str, description: TaskDescription) -> Notice | None:
    """A warning if the words seem to ask for something else than the fitness measures."""
    if description.fitness_author or tokens(sentence) == tokens(description.sentence):
        return None
    asked, quoted = goals(understood_in(description, sentence)), repr(one_line(sentence, _QUOTED))
    known = task_intents(description.sentence, description.sentence, description.fitness_doc)
    offer = nearer_task(sentence, description, asked, known)
    advice = "--fitness written with a --model measures these words instead"
    if offer:
        remark = f"{quoted} seems nearer to {offer}"
    elif asked and known and not served(asked, known):
        remark = f"{quoted} seems to ask for something else: {advice}"
    elif not asked and not _speaks_of(sentence, description):
        remark = (
            f"No word of {quoted} could be compared with that; if it asks for something else:"
            f" {advice}"
        )
    else:
        return None
    text = f"scored by: {description.fitness_doc.rstrip('.')}. {remark}"
    return Notice(text=text, level="warning", stays=True)


def agrees(sentence: str, description: TaskDescription) -> bool:
    """True if the known goals in the words are those of the fitness."""
    asked = goals(understood_in(description, sentence))
    known = task_intents(description.sentence, description.sentence, description.fitness_doc)
    return bool(asked) and served(asked, known) == 1.0


def goals(sentence: Understood) -> list[Intent]:
    """Known goals in the words. A manner, how to do something, counts only without another goal."""
    found = [*read_intents(sentence.text)]
    return [intent for intent in found if intent.main] or found


def served(asked: Sequence[Intent], known: Sequence[Intent]) -> float:
    """Share of the asked goals that are among the known ones, with their directions."""
    return sum(any(_agree(each, other) for other in known) for each in asked) / max(1, len(asked))


def _agree(asked: Intent, known: Intent) -> bool:
    undirected = asked.axis is None or known.axis is None
    return (
        asked.goal is known.goal
        and (asked.axis == known.axis or undirected)
        and asked.sign == known.sign
    )


def nearer_task(
    sentence: str, description: TaskDescription, asked: Sequence[Intent], known: Sequence[Intent]
) -> str:
    """The flag for another task that fits better, with its sentence; empty without one."""
    spoken, here = stems(understood_in(description, sentence).text), served(asked, known)
    own, better = _overlap(spoken, stems(description.sentence)), {}
    for name, text in _other_tasks(description).items():
        shared, fit = (
            _overlap(spoken, stems(text)),
            served(asked, goals(understood(text, stems(text)))),
        )
        # an equal fit is enough if the sentence is nearly that task's own, or speaks of it alone
        alone = bool(spoken) and spoken <= _with_compounds(text) and not own
        if alone or (shared and (fit > here or shared > max(_NEARLY, own))):
            better[f"--task {name} ({text!r})"] = fit, shared
    return max(better, key=lambda each: better[each], default="")


def _other_tasks(description: TaskDescription) -> dict[str, str]:
    """Sentences of the environment's other tasks by name."""
    folder = environment_folder(description.environment)
    folder = folder or built_in_folder(description.environment)
    if folder is None or not (folder / ENVIRONMENT_FILE).is_file():
        return {}
    tasks = read_entry(folder).tasks
    return {name: text for name, text in tasks.items() if name != description.task}


def _overlap(spoken: frozenset[str], words: frozenset[str]) -> float:
    """Jaccard index of two sets of stems."""
    return len(spoken & words) / max(1, len(spoken | words))


def _with_compounds(text: str) -> frozenset[str]:
    """Stems of a text and of its neighbouring words joined: `back flip` has `backflip`."""
    words = tokens(text)
    joined = (first + second for first, second in pairwise(words))
    return stems(text) | frozenset(map(stem, joined))


def _speaks_of(sentence: str, description: TaskDescription) -> bool:
    """True if the sentence has a word of the task's goal that does not merely name a thing."""
    names = (
        Path(description.environment).name,
        description.doc,
        *(each.name for each in description.variables),
    )
    asked_for = stems(f"{description.sentence} {measured(description.fitness_doc)}")
    return bool((stems(sentence) & asked_for) - stems(" ".join(names)))


def words_used(sentence: str, description: TaskDescription) -> Notice:
    """The words that the offline designer uses; a warning if it uses less than half of them."""
    used = word_use(description, sentence)
    read, refused = understood_in(description, sentence), not_understood(description, sentence)
    words = content_words(read.text if refused else sentence)
    named = stems(Path(description.environment).name)  # which no reward needs to use
    unused = [word for word in words if word not in used and stem(word) not in named]
    numbers = unused_numbers(description, sentence)
    took: dict[str, list[str]] = {}
    for word, term in used.items():
        took.setdefault(term, []).append(word)
    scene = TaskReading(description, sentence)
    named_variable = any(each.affinity(scene.words) for each in scene.readings)
    if not (used or named_variable or read_intents(read.text)):
        text = (
            "the offline designer knows some English words and can use no word of the sentence: the"
            " search is made from the task alone"
        )
    else:
        uses = "; ".join(f"{_listed(words)} → {term}" for term, words in took.items()) or "nothing"
        text = f"the offline designer uses of the sentence: {uses}" + (
            f"; not used: {_listed([*unused, *numbers])}" if unused or numbers else ""
        )
    if refused:
        parts = [one_line(each, _QUOTED) for each in refused[:_LISTED]]
        text += f"; not understood, so that no term is made of it: {_listed(parts)}"
    elif used and len(unused) <= len(used):
        return Notice(text=text, stays=True)
    text = f"{text}. A language model would read them: {how_to_name_a_model()}"
    return Notice(text=text, level="warning", stays=True)


def how_to_name_a_model() -> str:
    """The flag for a model whose key is set here, else all ways to get one; keys are not shown."""
    ready = [
        f"{key} is set: --model {provider}/<name>"
        for provider, key in KEY_VARIABLES.items()
        if os.environ.get(key, "").strip()
    ]
    return "; ".join(ready) or (
        f"export {' or '.join(KEY_VARIABLES.values())}, then --model openai/<name> or"
        " anthropic/<name>; a server of your own: --model openai/<name> --base-url"
        " http://<host>:<port>/v1"
    )


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return " ".join(f"'{word}'" for word in words[:_LISTED]) + more
