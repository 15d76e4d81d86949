"""Print the total of all pytest reports of a folder as one closing line; exit 1 where one failed or none is there."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def main() -> int:
    """Read the JUnit files of the folder named on the command line."""
    tests = failed = skipped = 0
    reports = sorted(Path(sys.argv[1]).glob("*.xml"))
    for report in reports:
        suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
        counts = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        tests += counts["tests"]
        failed += counts["failures"] + counts["errors"]
        skipped += counts["skipped"]
        seconds = float(suite.get("time", 0))
        print(f"{report.stem}: {counts['tests']} tests, {counts['skipped']} skipped, {seconds:.0f} s")
    print(f"{tests - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return int(failed > 0 or tests == skipped)


if __name__ == "__main__":
    sys.exit(main())
