"""Groups of settings in the `--help` of a search or a training."""

from __future__ import annotations

from eureka_agent.settings import TrainingSettings

OPTION_GROUPS = {
    "To know first": (
        "env",
        "task",
        "model",
        "budget",
        "iterations",
        "samples",
        "max_cost",
        "seed",
        "plan",
        "config",
    ),
    "Language models": (
        "base_url",
        "api",
        "temperature",
        "reply_tokens",
        "request_timeout",
        "outage",
        "concurrency",
        "llm_batch",
        "llm_batch_wait",
        "reviewer",
        "analyst",
        "analyst_sees",
        "judge",
        "blind",
        "max_tokens",
        "price",
    ),
    "What counts": ("fitness", "yes", "scoring_episodes", "evaluation_episodes"),
    "The search": (
        "strategy",
        "tuning",
        "max_time",
        "revisions",
        "retry_rounds",
        "novelty",
        "gate",
        "rungs",
        "schedule",
        "confirm",
        "confirm_seeds",
    ),
    "The end": ("finalists", "baselines", "baseline_seeds", "final_seeds", "randomise", "video"),
    "Trainings (PPO); what the task brings is the default": tuple(TrainingSettings.model_fields),
    "This machine": (
        "sandbox",
        "device",
        "workers",
        "cluster",
        "slots",
        "dry_run_timeout",
        "training_timeout",
        "snapshot_interval",
    ),
}
