"""Build the wheel, which contains the workflow, its configuration and its profiles."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PARTS = ("Snakefile", "workflow", "config", "profiles")
UNWANTED = shutil.ignore_patterns("__pycache__")


class WithWorkflow(build_py):
    """Add the workflow to the package; an editable installation uses that of the clone."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "private_consensus", "_workflow")
        shutil.rmtree(target, ignore_errors=True)
        for part in map(Path, PARTS):
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            if part.is_dir():
                shutil.copytree(part, target / part, ignore=UNWANTED)
            else:
                shutil.copy(part, target / part)


if __name__ == "__main__":
    setup(cmdclass={"build_py": WithWorkflow})
