"""Write the golden files again; what changed shows in `git diff`."""

from tests.golden import DIRECTORY, cases, render_case

for old in DIRECTORY.glob("*.yaml"):
    old.unlink()
for name, file, sets in cases():
    (DIRECTORY / f"{name}.yaml").write_text(render_case(file, sets), encoding="utf-8")
