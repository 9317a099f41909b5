"""Every setting that can determine a result: the one typed definition, checked before any job runs.

The classes are frozen and refuse unknown keys. A *choice* (a model, a partition scheme, a trainer)
is an object with its `name` and its own settings; ``fedavg`` and ``{fedprox: {mu: 0.01}}`` are
short for ``{name: fedavg}`` and ``{name: fedprox, mu: 0.01}``. To add one, write its class into the
file of its kind, put it into the union there, and a module of the same name into that kind's
package.
"""
