"""A stand-in for a model that designs rewards for the puck: what it answers depends on the prompt,
and on how often that came."""

from __future__ import annotations

import hashlib

REVIEW = (
    'It matches.\n\n```json\n{"contradiction": null, "exploits": ["it may stand still"]}\n```\n'
)
ANALYSIS = "First the puck drifted, then it left the rail. Reward staying."


def answer(prompt: str, sample: int) -> str:
    """Rewards that differ in form and numbers for prompts that differ, and for the samples of one;
    a reviewer's and an analyst's words where those are asked for."""
    last = prompt.rpartition("\n# user\n")[2]
    number = int(hashlib.sha256(f"{sample} {prompt}".encode()).hexdigest()[:8], 16)
    sharpness, drift = 0.5 + number % 97 / 20, 0.01 + number // 97 % 89 / 200
    form = ("torch.exp(-SHARPNESS * puck_position.abs())", "-SHARPNESS * puck_position.square()")[
        number % 2
    ]
    if "contradict" in last:
        return REVIEW
    if "worst episode" in last.lower() and "time order" in last.lower():
        return ANALYSIS
    return (
        f"Close to the middle pays.\n\n```python\nSHARPNESS = {sharpness:.3f}\nDRIFT ="
        f" {drift:.4f}\n\n\ndef compute_reward(puck_position, puck_velocity):\n    closeness ="
        f" {form}\n    calm = -DRIFT * puck_velocity.square()\n    return closeness + calm,"
        ' {"closeness": closeness, "calm": calm}\n```\n'
    )
