"""Replies in the forms in which servers of language models send them: which code is the answer?

A form holds a draft that the model has discarded, and mostly an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Expected = Literal["good", "none", "good-or-none"]


@dataclass(frozen=True)
class Form:
    """A reply of one form."""

    name: str
    """Begins with the server of which it is known."""
    habit: str
    """The reason why a server sends it, or a model writes it."""
    text: str
    expected: Expected
    thoughts: str = ""
    """Thoughts that the server sends apart."""
    cut_off: bool = False
    source: str = ""
    """The expected source, where it is not `GOOD`."""
    broken: str = ""
    """A source that was cut off, which may be found as well, since it fails by itself."""


GOOD = """import torch

UPRIGHT_WEIGHT = 1.0
CENTRE_WEIGHT = 0.2


def compute_reward(pole_angle, cart_position):
    upright = UPRIGHT_WEIGHT * torch.cos(pole_angle)
    centre = -CENTRE_WEIGHT * cart_position.abs()
    return upright + centre, {"upright": upright, "centre": centre}
"""
DRAFT = """import torch


def compute_reward(pole_angle):
    lean = pole_angle.abs()
    return lean, {"draft_lean": lean}
"""


def fenced(code: str, info: str = "python", mark: str = "```") -> str:
    return mark + info + "\n" + code + mark + "\n"


MUSE = (
    "Okay, the user wants a reward for the cart-pole. The pole should stay upright. "
    "Let me try the simplest thing first:\n\n"
    + fenced(DRAFT)
    + "\nHmm, that rewards leaning, the sign is wrong, and nothing holds the cart in the "
    "middle. So I'd better use the cosine plus a small centring term.\n"
)
MUSE_PLAIN = (
    "We need a reward function. Draft:\n\n"
    + DRAFT
    + "\nBut that rewards leaning. Use cos instead and add centring. Write final."
)
SAY = "Here is the reward function:\n\n"
WHY = (
    "\nThe cosine term is largest when the pole is upright; the second term keeps the cart "
    "near the middle of the track.\n"
)
ANSWER = SAY + fenced(GOOD) + WHY
HALF_COMPILES = GOOD[: GOOD.index(" + centre, {")]

FORMS = [
    Form(
        "vllm-gpt-oss-raw-harmony",
        "gpt-oss behind a server without a harmony parser and skip_special_tokens off: raw channels",
        "<|channel|>analysis<|message|>"
        + MUSE
        + "<|end|><|start|>assistant<|channel|>final<|message|>"
        + ANSWER
        + "<|return|>",
        "good",
    ),
    Form(
        "vllm-gpt-oss-stripped",
        "the same with special tokens stripped: 'analysis...assistantfinal...' glued together",
        "analysis" + MUSE_PLAIN + "assistantfinal" + ANSWER,
        "good",
    ),
    Form(
        "vllm-gpt-oss-analysis-only-stop",
        "the parser ends in a non-terminal state: only the analysis, finish stop, no final channel",
        "<|channel|>analysis<|message|>" + MUSE + "<|end|>",
        "none",
    ),
    Form(
        "vllm-gpt-oss-content-null",
        "content null with finish stop, everything in reasoning (vllm#45736, #41902)",
        "",
        "none",
        thoughts=MUSE,
    ),
    Form(
        "vllm-gpt-oss-final-constrain",
        "header with a constraint between channel and message: '<|channel|>final <|constrain|>python'",
        "<|channel|>analysis<|message|>" + MUSE + "<|end|><|start|>assistant<|channel|>final "
        "<|constrain|>python<|message|>" + fenced(GOOD) + "<|return|>",
        "good",
    ),
    Form(
        "vllm-qwen3-close-only",
        "the template prefills <think>, no reasoning parser: only </think> is in the text",
        MUSE + "</think>\n\n" + ANSWER,
        "good",
    ),
    Form(
        "vllm-budget-reentry",
        "after a forced </think> the model opens <think> again, closes it, then answers (vllm#43708)",
        "</think>\n\n<think>\n" + MUSE + "</think>\n\n" + ANSWER,
        "good",
        thoughts="We need a rew",
    ),
    Form(
        "vllm-seed-oss",
        "Seed-OSS: <seed:think> with budget reflections between thoughts",
        "<seed:think>\n"
        + MUSE
        + "<seed:cot_budget_reflect>I have used 512 tokens, and there are 512 "
        "tokens remaining for use.</seed:cot_budget_reflect>\nNow write it.</seed:think>" + ANSWER,
        "good",
    ),
    Form(
        "vllm-kimi-vl-think",
        "Kimi-VL-Thinking's own triangles, no parser knows them",
        "◁think▷" + MUSE + "◁/think▷" + ANSWER,
        "good",
    ),
    Form(
        "vllm-mistral-think-special",
        "Magistral / Ministral 3 Reasoning with deepseek_r1 parser: [THINK] leaks",
        "[THINK]" + MUSE + "[/THINK]" + ANSWER,
        "good",
    ),
    Form(
        "vllm-answer-in-thoughts-and-text",
        "a working parser: the draft in reasoning, the answer in content",
        ANSWER,
        "good",
        thoughts=MUSE,
    ),
    Form(
        "vllm-cut-compiles",
        "cut off where the broken source still compiles ('return upright')",
        "First idea:\n\n"
        + fenced(DRAFT)
        + "\nThat has the wrong sign. Final:\n\n```python\n"
        + HALF_COMPILES,
        "good-or-none",
        cut_off=True,
        broken=HALF_COMPILES,
    ),
    Form(
        "llama-draft-fence-open-at-close",
        "a reasoning budget forces </think> while the draft's fence is still open",
        "<think>Try:\n```python\n" + DRAFT[: DRAFT.index("    return")] + "</think>\n\n" + ANSWER,
        "good",
    ),
    Form(
        "llama-literal-tag-in-thoughts",
        "the thoughts mention `</think>` in backticks; a splitter would end the thoughts there",
        "<think>\nThe system prompt says I end with `</think>` before the code. Draft:\n\n"
        + fenced(DRAFT)
        + "\nWrong sign. I'll write the right one.\n</think>\n\n"
        + ANSWER,
        "good",
    ),
    Form(
        "llama-desync-literal-close",
        "the parser split at a literal </think> in the thoughts: their rest, with the draft, is in content",
        "` before the code. Draft:\n\n"
        + fenced(DRAFT)
        + "\nWrong sign. I'll write the right one.\n</think>\n\n"
        + ANSWER,
        "good",
        thoughts="The system prompt says I end with `",
    ),
    Form(
        "llama-gemma4-channel",
        "Gemma 4's asymmetric pair leaks: <|channel>thought .. <channel|>",
        "<|channel>thought\n" + MUSE + "<channel|>" + ANSWER,
        "good",
    ),
    Form(
        "llama-unclosed-think-stop",
        "a small model forgets </think> and stops: thoughts with the draft only",
        "<think>\n" + MUSE,
        "none",
    ),
    Form(
        "llama-close-only-cut-in-thoughts",
        "prefilled <think>, no parser, cut off: no tag at all, the thoughts look like a reply",
        MUSE + "So the better one uses",
        "none",
        cut_off=True,
    ),
    Form(
        "llama-thoughts-after-answer",
        "a distilled model answers, then thinks again in a new <think>",
        fenced(GOOD)
        + "\n<think>\nIs the simpler one enough?\n\n"
        + fenced(DRAFT)
        + "\nNo, it rewards leaning.\n</think>\n",
        "good",
    ),
    Form(
        "llama-nested-think",
        "nested thinking: the inner </think> doesn't end the thoughts",
        "<think>\nOuter.\n<think>\nInner.\n</think>\n" + MUSE + "</think>\n\n" + ANSWER,
        "good",
    ),
    Form(
        "llama-im-end-leak",
        "a GGUF with a wrong EOS: <|im_end|> glued to the closing fence",
        "<think>\n" + MUSE + "</think>\n\n" + fenced(GOOD).rstrip("\n") + "<|im_end|>",
        "good",
    ),
    Form(
        "llama-runs-on-into-user-turn",
        "wrong EOS: the model plays the user's next turn and a further answer",
        fenced(GOOD)
        + "<|im_end|>\n<|im_start|>user\nWhat would a bad reward look like?<|im_end|>\n"
        "<|im_start|>assistant\n" + fenced(DRAFT),
        "good-or-none",
    ),
    Form(
        "ollama-thoughts-hold-answer",
        "the model wrote draft and answer in its thoughts and only a sentence as its reply",
        "I've written the reward function above.",
        "none",
        thoughts=MUSE + fenced(GOOD),
    ),
    Form(
        "ollama-draft-then-wait-stop",
        "a small model rejects its own code in prose and stops without another",
        "Here is the code:\n\n"
        + fenced(DRAFT)
        + "\nWait, this gives more reward the further the pole leans. "
        "This is wrong and must not be used. I would use the cosine instead.",
        "none",
    ),
    Form(
        "ollama-unfenced-both",
        "a small model writes both versions without fences",
        "Draft:\n\n" + DRAFT + "\nThat rewards leaning.\n\nFinal version:\n\n" + GOOD,
        "good-or-none",
    ),
    Form(
        "ollama-unfenced-draft-fenced-final",
        "the reverse: unfenced draft, fenced answer",
        "Draft:\n\n" + DRAFT + "\nThe sign is wrong. Final code:\n\n" + fenced(GOOD),
        "good",
    ),
    Form(
        "ollama-info-glued",
        "code on the opening fence's line: ```python import torch",
        "Draft:\n" + fenced(DRAFT) + "Final:\n```python " + GOOD + "```",
        "good",
    ),
    Form(
        "ollama-close-glued-to-code",
        "the closing fence stands behind the last line of code",
        "Draft:\n"
        + fenced(DRAFT).replace("\n```\n", "```\n")
        + "\nFinal:\n```python\n"
        + GOOD.rstrip("\n")
        + "```\nDone.",
        "good",
    ),
    Form(
        "ollama-label-same-line",
        "the opening fence after text on the same line",
        "Draft: ```python\n" + DRAFT + "```\nFinal version: ```python\n" + GOOD + "```\n",
        "good",
    ),
    Form(
        "lmstudio-crlf",
        "Windows line ends throughout",
        ("Draft:\n\n" + fenced(DRAFT) + "\nFinal:\n\n" + fenced(GOOD)).replace("\n", "\r\n"),
        "good",
    ),
    Form(
        "sglang-qwen3-coder-xml",
        "Qwen3-Coder's XML tool call as text",
        fenced(DRAFT)
        + "\nNow the real one.\n<tool_call>\n<function=write_file>\n<parameter=path>\nreward.py\n"
        "</parameter>\n<parameter=content>\n" + GOOD + "</parameter>\n</function>\n</tool_call>",
        "good-or-none",
    ),
    Form(
        "anthropic-answer-bare-code",
        "<answer> with bare code after <thinking> with a fenced draft",
        "<thinking>\n" + MUSE + "</thinking>\n\n<answer>\n" + GOOD + "</answer>",
        "good",
    ),
    Form(
        "anthropic-let-me-reconsider",
        "no thinking enabled: it thinks aloud in the text and corrects itself",
        SAY
        + fenced(DRAFT)
        + "\nLet me reconsider: this increases with the lean, which is the opposite of what we "
        "want. Here is the corrected function:\n\n" + ANSWER,
        "good",
    ),
    Form(
        "anthropic-rejected-after",
        "the answer first, then a section on the alternative it rejected",
        "## Reward function\n\n"
        + fenced(GOOD)
        + "\n## Earlier version (rejected, do not use)\n\n"
        + fenced(DRAFT)
        + "\nIt rewards leaning.\n",
        "good-or-none",
    ),
    Form(
        "anthropic-replace-line",
        "only a change to the draft, as prose with an inline snippet",
        fenced(DRAFT) + "\nActually, that rewards leaning. Replace `lean = pole_angle.abs()` by "
        "`lean = -pole_angle.abs()` and leave the rest as it is.\n",
        "none",
    ),
    Form(
        "anthropic-rest-unchanged",
        "the corrected function is abbreviated: '# ... rest as before'",
        fenced(DRAFT)
        + "\nCorrected:\n\n"
        + fenced(
            "def compute_reward(pole_angle, cart_position):\n    # ... as before\n"
            "    centre = -0.2 * cart_position.abs()\n    return lean + centre, {...}\n"
        ),
        "none",
        broken="def compute_reward(pole_angle, cart_position):\n    # ... as before\n"
        "    centre = -0.2 * cart_position.abs()\n    return lean + centre, {...}\n",
    ),
    Form(
        "responses-commentary-then-final",
        "two message items (phase commentary, then final_answer) joined into one text",
        "I'll start from a simple lean penalty and check its sign.\n\n"
        + fenced(DRAFT)
        + "\nThe sign is wrong, so I'm switching to the cosine.\n\n"
        + ANSWER,
        "good",
    ),
    Form(
        "responses-aider-fix",
        "aider's search/replace block changes one line of the draft",
        fenced(DRAFT)
        + "\nreward.py\n```python\n<<<<<<< SEARCH\n    lean = pole_angle.abs()\n=======\n"
        "    lean = -pole_angle.abs()\n>>>>>>> REPLACE\n```\n",
        "none",
    ),
    Form(
        "any-usage-after",
        "a usage example after the answer",
        "Draft:\n\n"
        + fenced(DRAFT)
        + "\nFinal:\n\n"
        + fenced(GOOD)
        + "\nUsage:\n\n"
        + fenced("reward, parts = compute_reward(angle, position)\nprint(reward.mean())\n"),
        "good",
    ),
    Form(
        "any-cut-opening-fence",
        "cut off right at the answer's opening fence",
        "Draft:\n\n" + fenced(DRAFT) + "\nThat's wrong. Final:\n\n```",
        "none",
        cut_off=True,
    ),
    Form(
        "any-stop-after-promise",
        "finish stop after a promise: 'Here is the corrected version:'",
        "Draft:\n\n" + fenced(DRAFT) + "\nThat rewards leaning. Here is the corrected version:\n",
        "none",
    ),
    Form(
        "any-commented-draft-in-answer",
        "the answer carries the draft as comments in front",
        fenced(
            "".join("# " + line if line.strip() else "#\n" for line in DRAFT.splitlines(True))
            + GOOD
        ),
        "good",
        source="".join("# " + line if line.strip() else "#\n" for line in DRAFT.splitlines(True))
        + GOOD,
    ),
    Form(
        "any-docstring-fence",
        "a fence within the answer's docstring",
        fenced(DRAFT)
        + "\nFinal:\n\n"
        + fenced(
            GOOD.replace(
                "cart_position):\n",
                'cart_position):\n    """Upright and centred.\n'
                '\n    ```python\n    compute_reward(angle, position)\n    ```\n    """\n',
            ),
            mark="````",
        ),
        "good",
        source=GOOD.replace(
            "cart_position):\n",
            'cart_position):\n    """Upright and centred.\n'
            '\n    ```python\n    compute_reward(angle, position)\n    ```\n    """\n',
        ),
    ),
    Form(
        "any-tag-in-prose-after",
        "the prose after the answer mentions `<think>` in backticks",
        "Draft:\n\n"
        + fenced(DRAFT)
        + "\nFinal:\n\n"
        + fenced(GOOD)
        + "\nI left out my `<think>` notes.\n",
        "good",
    ),
    Form(
        "any-option-chosen-first",
        "two options, the first recommended in the end",
        "Option A:\n\n"
        + fenced(GOOD)
        + "\nOption B:\n\n"
        + fenced(DRAFT)
        + "\nI recommend Option A; Option B rewards leaning.\n",
        "good-or-none",
    ),
]
