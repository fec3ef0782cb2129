"""Write `class B(A)` into a `modular_*.py`, as a maintainer would: only what differs from A.

`subclass.py` works out the class, `dependencies.py` what it needs beside it, `file.py` puts both into the file. What
the subclass means is defined by transformers' `utils/modular_model_converter.py`, whose rules the three files follow.
"""

from __future__ import annotations

from twinlens.similarity.modular.file import ModularFile, inherit
from twinlens.similarity.modular.parent import NotInheritableError, Parent

__all__ = ["ModularFile", "NotInheritableError", "Parent", "inherit"]
