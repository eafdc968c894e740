"""`outlast demo`: the main job on real input."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from outlast.cli.exits import Refused
from outlast.cli.options import store_option

_NEEDS: Final = {"jinja2": "Jinja2", "PIL": "Pillow", "starlette": "Starlette", "uvicorn": "uvicorn"}


@click.command()
@store_option
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where the results go. Default: a new folder.")
@click.option(
    "--keep", is_flag=True, envvar="KEEP", show_envvar=True, help="Leave the API and a worker running, and print where the page is."
)
def command(*, store: str | None, folder: Path | None, keep: bool) -> None:
    """Make a book out of real input, over HTTP; lose the client, a worker and the API on the way, and watch the job survive."""
    missing = [name for module, name in _NEEDS.items() if find_spec(module) is None]
    if missing:
        raise Refused(f"The demo needs {', '.join(missing)}: pip install 'outlast[demo,web]' uvicorn", code="extra_missing")
    run = importlib.import_module("outlast.demo.run")
    code: int = run.main(store, folder, keep=keep)
    raise click.exceptions.Exit(code)
