"""What `.ci/release.py` refuses: a version that changelog or tag contradict, and files that git does not track."""

import subprocess
import tarfile
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PYPROJECT = """
[tool.hatch.build.targets.wheel]
packages = ["src/package"]
[tool.hatch.build.targets.sdist]
include = ["/src"]
"""
EXTRAS = """
[project.optional-dependencies]
a = ["one"]
all = ["p[a]"]
"""
TRACKED = ("pyproject.toml", ".gitignore", "src/package/a.py", "native/scanner.c")


@pytest.fixture
def release(tmp_path, monkeypatch):
    """The script's module, for a repository of its own."""
    spec = spec_from_file_location("release", ROOT / ".ci" / "release.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "DIST", tmp_path / "dist")
    for name in TRACKED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PYPROJECT if name == "pyproject.toml" else "")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True)
    return module


@pytest.mark.parametrize(
    ("heading", "tag", "fault"),
    [
        ("0.1.0 (unreleased)", None, None),
        ("0.1.0 (2030-01-31)", "v0.1.0", None),
        ("0.1.0 (unreleased)", "other", None),
        ("0.2.0 (unreleased)", None, "the first heading is not that of version 0.1.0"),
        ("0.1.0 (2030-01-31)", "v0.2.0", "tag v0.2.0: the version is 0.1.0"),
        ("0.1.0 (unreleased)", "v0.1.0", "says \\(unreleased\\) instead of its date"),
    ],
)
def test_version_changelog_and_tag_agree(release, tmp_path, heading, tag, fault):
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n## {heading}\n\n- all\n\n## 0.0.1 (2029-01-01)\n")
    if tag:
        subprocess.run(["git", "tag", tag], cwd=tmp_path, check=True)
    if fault is None:
        release.check_version("0.1.0")
    else:
        with pytest.raises(SystemExit, match=fault):
            release.check_version("0.1.0")


@pytest.mark.parametrize(
    ("wheel", "sdist", "fault"),
    [
        ((), (), None),
        (("package/b.py",), (), r"p-1-py3-none-any.whl: 1 not tracked \(package/b.py\)"),
        ((), ("src/package/b.py", "src/notes"), r"p-1.tar.gz: 2 not tracked \(src/notes, src/package/b.py\)"),
        ((), None, r"p-1.tar.gz: 1 missing \(src/package/a.py\)"),
    ],
)
def test_distributions_have_what_git_tracks_and_nothing_else(release, tmp_path, wheel, sdist, fault):
    (tmp_path / "dist").mkdir()
    with zipfile.ZipFile(tmp_path / "dist" / "p-1-py3-none-any.whl", "w") as file:
        for name in ("package/a.py", "p-1.dist-info/RECORD", *wheel):
            file.writestr(name, "")
    names = ["pyproject.toml", ".gitignore", "PKG-INFO", *(() if sdist is None else ("src/package/a.py", *sdist))]
    with tarfile.open(tmp_path / "dist" / "p-1.tar.gz", "w:gz") as file:
        for name in names:
            file.addfile(tarfile.TarInfo(f"p-1/{name}"))
    if fault is None:
        release.check_files()
    else:
        with pytest.raises(SystemExit, match=fault):
            release.check_files()


def test_every_extra_is_resolved_for_the_checkout_and_for_the_wheel(release, tmp_path):
    (tmp_path / "pyproject.toml").write_text(EXTRAS)
    (tmp_path / "dist").mkdir()
    wheel = tmp_path / "dist" / "torch_tracediff-1-py3-none-any.whl"
    wheel.touch()
    asked = []
    release.check_extras(lambda *command: asked.append(command), ("resolve",))
    assert asked == [("resolve", f"{source}[a,all]") for source in (tmp_path, wheel)]

    def refuse(*command):
        if command[-1].endswith("whl[a,all]"):
            raise subprocess.CalledProcessError(1, command)

    with pytest.raises(SystemExit, match=r"^torch_tracediff-1-py3-none-any.whl\[a,all\]: cannot be installed"):
        release.check_extras(refuse, ("resolve",))


def test_no_extra_names_what_no_index_has_and_all_is_every_other():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    native = tomllib.loads((ROOT / "native" / "pyproject.toml").read_text())["project"]["name"]
    (everything,) = extras.pop("all")
    assert [name for names in extras.values() for name in names if name.startswith(native)] == []
    assert everything == f"torch-tracediff[{','.join(extras)}]"


def test_only_the_job_that_publishes_may_prove_who_it_is():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    allowed = {name for name, job in workflow["jobs"].items() if "id-token" in job.get("permissions", {})}
    assert (workflow["permissions"], allowed) == ({"contents": "read"}, {"publish"})
    assert workflow["jobs"]["publish"]["environment"] == "pypi"
