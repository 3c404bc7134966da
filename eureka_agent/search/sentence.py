"""Compares the sentence with the task: what the fitness measures, whether that is what the words ask for, and which of them are used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from eureka_agent.designer.offline.reading import content_words, is_name, word_use
from eureka_agent.designer.offline.vocabulary import Intent, read_intents, task_intents
from eureka_agent.designer.offline.words import stem, stems, tokens
from eureka_agent.records import TaskDescription
from eureka_agent.report.events import Notice
from eureka_agent.simulation.catalogue import ENVIRONMENT_FILE, CatalogueEntry, list_environments, read_entry

_NEARLY = 0.6
"""Overlap with another task's words from which a sentence is taken for that task's."""
_KEYS = {"OPENAI_API_KEY": "openai", "ANTHROPIC_API_KEY": "anthropic"}


def notices(sentence: str, description: TaskDescription, *, offline: bool) -> list[Notice]:
    """Words to a person before anything is trained. `offline`: the offline designer, which reads word by word, writes the rewards."""
    told = [comparison(sentence, description)]
    if offline:
        told.append(words_used(sentence, description))
    return told


def comparison(sentence: str, description: TaskDescription) -> Notice:
    """What the fitness measures; a warning where the words seem to ask for something else."""
    measure = f"scored by: {description.fitness_doc.rstrip('.')}"
    if description.fitness_author or tokens(sentence) == tokens(description.sentence):
        return Notice(text=measure, stays=True)
    own, others = _tasks_near(description)
    offer = nearer_task(sentence, description, own, others)
    asked = goals(sentence)
    known = task_intents(description.sentence, description.sentence, description.fitness_doc)
    if offer:
        return Notice(text=f"{measure}. {sentence!r} seems nearer to {offer}", level="warning", stays=True)
    if asked and known and not served(asked, known):
        remark = f"{sentence!r} seems to ask for something else"
    elif not asked and not _speaks_of(sentence, description):
        remark = f"No word of {sentence!r} could be compared with that; if it asks for something else"
    else:
        return Notice(text=measure, stays=True)
    advice = "--fitness written with a --model measures these words instead"
    return Notice(text=f"{measure}. {remark}: {advice}", level="warning", stays=True)


def goals(sentence: str) -> list[Intent]:
    """What the words ask for, as far as they are known: how it is to be done only where nothing else is said."""
    found = [intent for intent in read_intents(sentence) if intent.words and intent.named]
    return [intent for intent in found if intent.main] or found


def served(asked: Sequence[Intent], known: Sequence[Intent]) -> float:
    """Share of what is asked that is among what is known, directions included."""
    return sum(any(_agree(each, other) for other in known) for each in asked) / max(1, len(asked))


def _agree(asked: Intent, known: Intent) -> bool:
    undirected = asked.axis is None or known.axis is None
    return asked.goal is known.goal and (asked.axis == known.axis or undirected) and asked.sign == known.sign


def _tasks_near(description: TaskDescription) -> tuple[dict[str, str], tuple[CatalogueEntry, ...]]:
    """Sentences of the environment's other tasks by name, and the other built-in environments."""
    built_in = list_environments()
    folder = Path(description.environment)
    own = next((entry for entry in built_in if entry.name == description.environment), None)
    if own is None and (folder / ENVIRONMENT_FILE).is_file():
        own = read_entry(folder)
    tasks = {} if own is None else {name: text for name, text in own.tasks.items() if name != description.task}
    return tasks, tuple(entry for entry in built_in if own is None or entry.name != own.name)


def nearer_task(
    sentence: str, description: TaskDescription, tasks: dict[str, str], environments: Sequence[CatalogueEntry]
) -> str:
    """Flags that choose a task which the sentence fits better, with that task's sentence; empty where there is none."""
    asked, spoken = goals(sentence), stems(sentence)
    known = task_intents(description.sentence, description.sentence, description.fitness_doc)
    here = served(asked, known)
    better = {}
    for name, text in tasks.items():
        shared = _overlap(spoken, stems(text))
        # as well served is better served where the sentence is nearly that task's own
        if shared and (
            served(asked, goals(text)) > here or shared > max(_NEARLY, _overlap(spoken, stems(description.sentence)))
        ):
            better[name] = served(asked, goals(text)), shared
    if better:
        name = max(better, key=lambda each: better[each])
        return f"--task {name} ({tasks[name]!r})"
    scenery = stems(f"{description.environment} {description.doc}")
    found: dict[str, tuple[bool, int]] = {}
    for entry in environments:
        named = stem(entry.name) in spoken - scenery
        things = len(((stems(entry.doc) | {stem(entry.name)}) & spoken) - scenery)
        for task, text in entry.tasks.items():
            if asked and (named or (things and not here and served(asked, goals(text)) == 1.0)):
                found[f"--env {entry.name} --task {task} ({text!r})"] = named, things
    return max(found, key=lambda each: found[each], default="")


def _overlap(spoken: frozenset[str], words: frozenset[str]) -> float:
    """Jaccard index of two sets of stems."""
    return len(spoken & words) / max(1, len(spoken | words))


def _speaks_of(sentence: str, description: TaskDescription) -> bool:
    """Whether the sentence has a word of what the task measures that says more than what things are there."""
    things = stems(" ".join((description.environment, description.doc, *(each.name for each in description.variables))))
    measured = description.fitness_doc.partition(";")[0]  # what ends an episode comes behind
    return bool((stems(sentence) & stems(f"{description.sentence} {measured}")) - things)


def words_used(sentence: str, description: TaskDescription) -> Notice:
    """The sentence's words as the offline designer takes them; a warning where most of them mean nothing to it."""
    used = word_use(description, sentence)
    unused = [word for word in content_words(sentence) if word not in used and not is_name(word, description)]
    took: dict[str, list[str]] = {}
    for word, term in used.items():
        took.setdefault(term, []).append(word)
    text = f"the offline designer uses of the sentence: {'; '.join(f'{_listed(words)} → {term}' for term, words in took.items())}"
    if not used:
        text = "the offline designer, which knows some English words, can use none of this sentence: it makes the same search as for an emoji"
    elif unused:
        text += f"; not used: {_listed(unused)}"
    if len(unused) <= len(used) and used:
        return Notice(text=text, stays=True)
    return Notice(
        text=f"{text}. A language model would read them: {how_to_name_a_model()}", level="warning", stays=True
    )


def how_to_name_a_model() -> str:
    """The flag for a model that this machine has a key for; else all ways to have one. No key's value is looked at beyond being there."""
    ready = [
        f"{key} is set: --model {provider}/<name>" for key, provider in _KEYS.items() if os.environ.get(key, "").strip()
    ]
    return "; ".join(ready) or (
        f"export {' or '.join(_KEYS)}, then --model openai/<name> or anthropic/<name>; a server of your own: --model openai/<name> --base-url http://<host>:<port>/v1"
    )


def _listed(words: Sequence[str]) -> str:
    return " ".join(f"'{word}'" for word in words)
