"""collect: run steps under torch.profiler and write trace sets. Needs torch and the standard library only.

The package can be called: ``tracediff.collect(…)`` is the function `collect` of `tracediff.collect.options`.
"""

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package whose name is also that of its one public function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from tracediff.collect.options import collect

        return collect(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
