"""The wheel in empty environments: every Python that is here, the oldest and the newest dependencies; a fresh
notebook that installs it; and pyright over a user's pipeline.

``make matrix`` runs it. A Python that is not on this machine is told as not run, never as passed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
PYTHONS = ("3.11", "3.12", "3.13")
RESOLUTIONS = ("lowest-direct", "highest")
SPARKS = ("pyspark==4.2.*", "pyspark>=4.3")
LARGEST = 3_000_000
"""Bytes that the wheel may have."""


def wheel(folder: Path) -> Path:
    """Builds the wheel from a copy without what earlier builds left."""
    source = folder / "source"
    source.mkdir()
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    call = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*call, "-w", str(folder), str(source)], check=True, timeout=300)
    [built] = folder.glob("*.whl")
    return built


def refuse_strange(built: Path) -> None:
    """Refuses a wheel without its licence, marker or templates, or with anything that is no part of it."""
    names = zipfile.ZipFile(built).namelist()
    wanted = (
        "/licenses/LICENSE",
        "caesura/py.typed",
        "caesura/cli/template/files/pipeline.py.txt",
        "/METADATA",
    )
    missing = [part for part in wanted if not any(name.endswith(part) for name in names)]
    tops = {name.split("/")[0].split("-")[0] for name in names}
    strange = sorted(tops - {"caesura", "caesura_pytest", "caesura_pytest.py"})
    if missing or strange or built.stat().st_size > LARGEST:
        raise SystemExit(f"{built.name}: missing {missing}, strange {strange}, {built.stat().st_size} bytes")


def installed(built: Path, python: str, resolution: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The smoke test in a new environment with the wheel, its command line, and nothing else."""
    home = folder / f"{python}-{resolution}"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", str(found(python)), str(home)], check=True, timeout=120)
    call = [*uv, "pip", "install", "-q", "--python", str(home), "--only-binary", ":all:", "--resolution"]
    subprocess.run([*call, resolution, f"{built}[cli]"], check=True, timeout=900)
    smoke = [str(home / "bin" / "python"), "-I", str(SMOKE), "cli"]
    return subprocess.run(smoke, cwd=folder, capture_output=True, text=True, timeout=900)


def environment(name: str, folder: Path, *packages: str) -> Path:
    """A new environment of this Python with these packages."""
    home = folder / name
    uv = [sys.executable, "-m", "uv"]
    subprocess.run(
        [*uv, "venv", "-q", "--seed", "--python", sys.executable, str(home)], check=True, timeout=120
    )
    subprocess.run([*uv, "pip", "install", "-q", "--python", str(home), *packages], check=True, timeout=900)
    return home / "bin"


def fresh_notebook(built: Path, folder: Path, spark: str) -> subprocess.CompletedProcess[str]:
    """A notebook whose first cell is ``pip install``, on a kernel that has nothing, with such a Spark."""
    tools = environment(f"notebook-{spark}", folder, "nbclient", "ipykernel")
    work = folder / f"work-{spark}"
    work.mkdir()
    call = [str(tools / "python"), str(SMOKE.with_name("notebook.py")), str(built), spark, str(work)]
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    path = os.pathsep.join([str(tools), plain["PATH"]])
    return subprocess.run(call, capture_output=True, text=True, timeout=1800, env={**plain, "PATH": path})


def typed(built: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Pyright over a user's pipeline, against the hints that the wheel has."""
    tools = environment("typed", folder, "basedpyright", f"{built}[spark]")
    pipeline = folder / "users_pipeline.py"
    shutil.copy(ROOT / "tests" / "typing" / pipeline.name, pipeline)
    (folder / "pyrightconfig.json").write_text(
        '{"include": ["users_pipeline.py"], "typeCheckingMode": "standard"}'
    )
    call = [str(tools / "basedpyright"), "--pythonpath", str(tools / "python"), "-p", str(folder)]
    return subprocess.run(call, capture_output=True, text=True, timeout=900)


def found(python: str) -> str | None:
    """Such a Python that starts: on the path, or kept by pyenv, whose names on the path may be empty."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [shutil.which(f"python{python}"), *sorted(kept.glob(f"{python}.*/bin/python"), reverse=True)]
    for place in filter(None, places):
        if not subprocess.run([str(place), "-c", ""], capture_output=True).returncode:
            return str(place)
    return None


def main() -> None:
    """Prints a line for each environment, and fails if one failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = wheel(folder)
        refuse_strange(built)
        print(f"{built.name}: {built.stat().st_size / 1e6:.2f} MB")
        for python in PYTHONS:
            if found(python) is None:
                print(f"Python {python}: not run, it is not on this machine")
                continue
            for resolution in RESOLUTIONS:
                done = installed(built, python, resolution, folder)
                print(f"Python {python}, {resolution}: {done.stdout.strip() or 'failed'}", flush=True)
                failed += done.returncode != 0
                if done.returncode:
                    print(done.stderr)
        tries: dict[str, Callable[[Path, Path], subprocess.CompletedProcess[str]]] = {"pyright": typed}
        tries |= {f"a fresh notebook, {s}": partial(fresh_notebook, spark=s) for s in SPARKS}
        for what, tried in tries.items():
            done = tried(built, folder)
            print(f"{what}: {done.stdout.strip() or 'failed'}", flush=True)
            failed += done.returncode != 0
            if done.returncode:
                print(done.stderr)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
