"""How many examples property tests draw: a fifth by default, all of them with ``--hypothesis-profile=thorough``.

Both profiles draw the same examples on every run, and no test depends on how fast the machine is. Only the thorough
profile shrinks a failing example, which may take minutes.
"""

from hypothesis import HealthCheck, Phase, settings

ALWAYS = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("short", max_examples=20, phases=[Phase.explicit, Phase.generate], **ALWAYS)
settings.register_profile("thorough", max_examples=100, **ALWAYS)
settings.load_profile("short")


def examples(count: int) -> settings:
    """Decorator: ``count`` examples instead of 100 under the thorough profile, a fifth of that by default."""
    return settings(max_examples=max(count * settings().max_examples // 100, 5))
