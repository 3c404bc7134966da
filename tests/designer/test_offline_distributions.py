"""The offline family of distributions."""

from __future__ import annotations

from parameter_priors import PARAMETERS, prior

from eureka_agent.designer.distribution_writer import offline_distributions
from eureka_agent.parameters import check_distribution

PRIOR = prior((0.8, 1.2), (0.0, 1.0))


def test_the_family_from_a_prior() -> None:
    found = offline_distributions(PARAMETERS, PRIOR, (), 7)
    assert [each.text for each in found] == [
        "mass=0.8..1.2, delay=0..1",
        "defaults; from 50 %: mass=0.8..1.2, delay=0..1",
        "mass=0.9..1.1, delay=0..0.5",
        "mass=0.65..1.6, delay=0..2.5",  # (0.8 + 0.5) / 2, (1.2 + 2) / 2, (1 + 4) / 2
        "mass=0.5..2, delay=0..4",
        "defaults; from 50 %: mass=0.5..2, delay=0..4",
        (
            "mass=0.9..1.1, delay=0..0.5; from 33 %: mass=0.8..1.2, delay=0..1; from 67 %:"
            " mass=0.5..2, delay=0..4"
        ),
    ]
    assert [each.name for each in found[:2]] == ["d1", "d2"]
    assert found[1].reason == "the defaults, then the prior"


def test_it_goes_on_behind_the_known_ones() -> None:
    family = offline_distributions(PARAMETERS, PRIOR, (), 5)
    known = [family[2].model_copy(update={"name": "d1"})]
    found = offline_distributions(PARAMETERS, PRIOR, known, 3)
    assert [each.name for each in found] == ["d2", "d3", "d4"]
    expected = [family[place].curriculum for place in (0, 1, 3)]
    assert [each.curriculum for each in found] == expected


def test_sixteen_differ_whatever_the_prior_is() -> None:
    for bounds in (((1.0, 1.0), (0.0, 0.0)), ((0.5, 2.0), (0.0, 4.0)), ((0.8, 1.2), (0.0, 0.0))):
        found = offline_distributions(PARAMETERS, prior(*bounds), (), 16)
        assert len({each.text for each in found}) == 16
        for each in found:
            for stage in each.curriculum:
                check_distribution(stage.parameters, PARAMETERS)
