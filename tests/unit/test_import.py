"""What `import outlast` costs a host application."""

from __future__ import annotations

import json
import subprocess
import sys

LOADED = """
import json, sys
import outlast
names = {name.partition(".")[0] for name in sys.modules}
print(json.dumps({
    "foreign": sorted(n for n in names if n not in sys.stdlib_module_names and not n.startswith("_")),
    "heavy": [n for n in ("asyncio", "concurrent.futures", "sqlite3", "ssl", "http", "email") if n in sys.modules],
    "missing": [n for n in outlast.__all__ if not hasattr(outlast, n)],
}))
"""


def test_importing_loads_the_core_dependencies_only() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    seen = json.loads(ran.stdout)
    assert set(seen["foreign"]) <= {"outlast", "msgspec", "click", "typing_extensions"}  # the last is msgspec's own, where it is installed
    assert seen["heavy"] == []
    assert seen["missing"] == []
