"""The package is taken from the source tree; REMAT_LIBRARY (set by ctest) names the library that was built."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
GRAPHS = ROOT / "tests" / "data" / "graphs"
