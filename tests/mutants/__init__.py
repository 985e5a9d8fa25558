"""Mutation testing of the modules where a missing test hurts most: `nox -s mutants [-- MODULE ...]`.

A mutant is a copy of a module with one small change: a comparison turned, a guard dropped, two arguments swapped. If
the nearest tests pass on it all the same, no test holds that piece of code. Each such survivor is killed by a new test,
or it is listed in `equivalent.toml` with the reason why nobody could see the difference.

The changes are made by cosmic-ray's operators and by a few of the same kind (`dropping`, `arguments`). mutmut was not
taken, by what its documentation says: it puts every variant of a function behind a dispatcher, which slotted
dataclasses and generators notice, it mutates no single statement away, and it has no operators of one's own. cosmic-
ray's operators work on the syntax tree and can be added to. Of cosmic-ray's own runner nothing is used, because it
changes the file in the work tree, where a kill leaves the mutant behind, and it names mutants by line. Here the
mutant is written into a copy of the package outside the tree (`workspace`), which comes first on the path of the
tests' process.

The modules and their tests are in `targets`; what is left out of the mutation, in `left_out`; the choice of at most
sixty for each module, in `choice`.
"""
