"""Fuzz one parser with atheris: ``python tests/fuzz/run.py rows.npz SECONDS [FOLDER]``; exit code 0 without a finding.

Inputs that reach new code are kept in FOLDER/NAME and are where the next run starts; a finding is written to
FOLDER/NAME-crash-....
"""

import random
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

PARSERS = [
    "tomllib", "zipfile", "fald_hpc.data", "fald_hpc.config", "fald_hpc.checkpoint", "fald_hpc.condition", "fald_hpc.manifest",
    "fald_hpc.json_files", "fald_hpc.summary", "fald_hpc.run",
]  # fmt: skip
"""What is instrumented: kernels are not, which numba compiles."""

with atheris.instrument_imports(include=PARSERS):
    from fuzz import mutate, targets


def main() -> None:
    """Fuzz the parser named on the command line."""
    name, seconds = sys.argv[1], float(sys.argv[2])
    place = Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp(prefix="fald-fuzz-"))
    target = targets.targets()[name]
    corpus = place / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(target.seeds):
        (corpus / f"seed-{i}").write_bytes(seed)

    def read(content: bytes) -> None:
        targets.one(target, content)

    def mutated(content: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5:
            return atheris.Mutate(content, most)
        return mutate.mutated(content, target.words, chance)[:most]

    limits = [f"-max_total_time={seconds:.0f}", "-rss_limit_mb=4000", f"-timeout={2 * targets.SECONDS}", "-max_len=20000"]
    options = [*limits, "-seed=1", f"-artifact_prefix={place / name}-"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], read, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
