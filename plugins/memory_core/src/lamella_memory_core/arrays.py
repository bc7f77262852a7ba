"""Names for numpy's arrays, for annotations only: numpy is loaded when something is searched for."""

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Singles = np.ndarray[Any, np.dtype[np.float32]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]
Where = Numbers | slice  # positions, or a range of them
Flags = np.ndarray[Any, np.dtype[np.bool_]]
