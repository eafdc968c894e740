"""TARGET: `module:attribute` that names an application's `Outlast`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from outlast.app import Outlast
from outlast.cli.exits import Refused
from outlast.cli.fault import told
from outlast.cli.output import safe
from outlast.domain.refusal import article

_FORM = "TARGET is written module:attribute, for example shop.jobs:app"


def load(target: str) -> Outlast:
    """The `Outlast` that a target names, its module imported with the current folder on the path; Refused says what is wrong."""
    module_name, colon, attribute = target.partition(":")
    if not colon or not module_name or not attribute:
        raise Refused(f"{target!r} is no target. {_FORM}.", code="target")
    if "/" in module_name or module_name.endswith(".py"):
        better = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise Refused(f"{module_name!r} is a file; a module is named with dots and without .py: {better}:{attribute}.", code="target")
    module = _module(module_name)
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise Refused(f"The module {module_name} has no attribute {attribute!r}. {_offer(module)}", code="target")
        found = getattr(found, part)
    if not isinstance(found, Outlast):
        raise Refused(f"{target} is {article(found)}, not an Outlast. {_offer(module)}", code="target")
    return found


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise Refused(
                f"There is no module {error.name!r} in {here}, nor among the installed packages. "
                "Run the command in the folder that holds it, or set PYTHONPATH.",
                code="target",
            ) from None
        missing = f" It imports {error.name!r}, which is not installed here." if error.name else ""
        raise _failed(name, error, missing) from error
    except Refused:
        raise
    except (Exception, SystemExit) as error:
        raise _failed(name, error, "") from error


def _failed(name: str, error: BaseException, more: str) -> Refused:
    """The module's own code failed."""
    return Refused(
        f"The module {name} failed while it was imported: {told(error)}.{more} To see all of it: python -c 'import {name}'",
        code="target",
    )


def _offer(module: ModuleType) -> str:
    names = sorted(name for name, value in vars(module).items() if isinstance(value, Outlast))
    if not names:
        return "That module makes no Outlast; name the one that says `Outlast(...)`."
    return f"It has {', '.join(safe(f'{module.__name__}:{name}') for name in names)}."
