"""With this directory on PYTHONPATH, the native reader of some files ends its process, in every process of a command.

``CRASH_PATH`` is a part of the files' paths, ``CRASH_SIGNAL`` the number of the signal.
"""

import importlib.util
import os
import signal
import sys
from types import ModuleType

_MODULE = "acidctl.orc.read.reader"


class _Crashing:
    @staticmethod
    def find_spec(name: str, *_: object) -> object:
        if name != _MODULE:
            return None
        sys.meta_path.remove(_Crashing)
        spec = importlib.util.find_spec(name)
        assert spec
        assert spec.loader
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            native = module.OrcFile._native

            def crash(file: object) -> object:
                if os.environ["CRASH_PATH"] in file.tail.path:  # type: ignore[attr-defined]
                    os.kill(os.getpid(), int(os.environ.get("CRASH_SIGNAL", signal.SIGSEGV)))
                return native(file)

            module.OrcFile._native = crash

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Crashing)  # type: ignore[arg-type]
