"""The typed definition of every setting that can determine a result, checked before any job runs.

The classes are frozen and reject unknown keys. A *choice* (a model, a partition scheme, a trainer)
is an object with its `name` and its own settings. For example, ``fedavg`` is short for
``{name: fedavg}``, and ``{fedprox: {mu: 0.01}}`` for ``{name: fedprox, mu: 0.01}``. To add a
choice, write its class in the file of its kind and add it to the union there. Then add a module of
the same name to the package of that kind.
"""
