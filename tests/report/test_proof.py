"""A proof by another library in words, on scores made by hand."""

from __future__ import annotations

from told import score

from eureka_agent.export.proof import proof_rows, proof_sentence

HIGH, LOW, SPREAD = (5.0, 5.1, 4.9), (1.0, 1.1, 0.9), (0.0, 5.0, 9.0)


def test_the_winner_is_compared_beyond_the_noise_of_the_seeds() -> None:
    proved = [score("2-01", *HIGH), score("human", *LOW), score("sparse", *SPREAD)]
    own = {each.name: each for each in proved}
    assert proof_sentence(proved, own, "sb3") == (
        "by sb3, 2-01 is better than human and not told apart from sparse, as by this trainer"
    )


def test_another_order_than_here_is_said() -> None:
    proved = [score("2-01", *LOW), score("human", *HIGH)]
    own = {"2-01": score("2-01", *HIGH), "human": score("human", *LOW)}
    assert proof_sentence(proved, own, "sb3") == (
        "by sb3, 2-01 is worse than human; this trainer's own scores differ"
    )


def test_what_was_not_compared_is_not_called_different() -> None:
    many = [score("2-01", *HIGH), score("human", *LOW)]
    few = [score("2-01", 5.0), score("human", 1.0)]
    for proved, own in ((few, many), (many, few), (few, few)):
        here = {each.name: each for each in own}
        assert "this trainer" not in proof_sentence(proved, here, "sb3")


def test_few_seeds_and_failures_are_said() -> None:
    proved = [score("2-01", 5.0, 5.1, None), score("human", *LOW)]
    assert "not compared (fewer than 3 seeds) with human" in proof_sentence(proved, {}, "sb3")
    rows = proof_rows(proved, {"human": score("human", *LOW)}, " m")
    assert rows[0] == ("2-01", "5.05 ± 0.07 m (2 seeds), 1 failed", "-")
    assert rows[1][2] == "1.00 ± 0.10 m (3 seeds)"
