#!/usr/bin/python3
"""Computes again, in PyTorch and float64, what the program crosscheck wrote, and prints a table of the differences.

  python3 compare.py DUMPS [CASE ...]

Exit code 1 says that something differs by more than rounding, 2 that PyTorch or the dumps are missing."""
import importlib
import os
import sys
import traceback

sys.dont_write_bytecode = True  # the peers lie in the repository


def stop(text):
    print("crosscheck: " + text, file=sys.stderr)
    sys.exit(2)


try:
    import torch  # noqa: F401
except ImportError:
    stop("PyTorch is missing: install python3-torch, or name a Python that has it with PYTHON=/path/to/python3")

import bars
import networks
import state
import stats

# The column that no peer has: whether another process wants to stop.
STOP = "stop"


class NoPeer(Exception):
    pass


def peer_of(method):
    """The module METHOD.py beside this file, which has step(state.Step) and, for graphs, look(state.Look)."""
    if not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), method + ".py")):
        raise NoPeer(f"there is no peers/{method}.py, which computes --algo {method} again")
    return importlib.import_module(method)


def compare_steps(table, dump):
    name, peer = dump["case"]["name"], peer_of(dump["method"])
    roles = {k: a["role"] for k, a in dump["init"].items()}
    for i, after in enumerate(dump["steps"]):
        s = state.Step(dump, i)
        peer.step(s)
        bars.compare_step(table, name, roles, state.tensors(after["vars"]), s)
        bars.compare_report(table, name, dump["columns"], after["report"], s.report, STOP)


def compare_graphs(table, dump):
    name, outputs = dump["case"]["name"], dump["outputs"]
    found = peer_of(dump["method"]).look(state.Look(dump))
    for k, a in outputs.items():
        if k.endswith(".given"):
            continue
        if k not in found:
            table.fail(name, f"the peer computes no {k}")
            continue
        got = state.tensor(a)
        table.add(name, "graphs", got.numel(), bars.relative(got, found[k].detach().reshape(got.shape)), k)
    for k in found:
        if k not in outputs:
            table.fail(name, f"the program writes no {k}")


def compare_file(table, path):
    dump = state.read(path)
    if path.endswith("statistics.json"):
        return stats.compare(table, dump)
    if path.endswith("networks.json"):
        return networks.compare(table, dump)
    compare = compare_steps if path.endswith(".step.json") else compare_graphs
    try:
        compare(table, dump)
    except NoPeer as e:
        table.fail(dump["case"]["name"], str(e))
    except Exception as e:  # one peer that fails leaves the others
        traceback.print_exc()
        table.fail(dump["case"]["name"], f"the peer failed: {e}")


def files(folder, cases):
    try:
        names = sorted(os.listdir(folder))
    except OSError as e:
        stop(f"cannot read the dumps: {e}")
    chosen = [n for n in names if n.endswith(".json") and (not cases or n.split(".")[0] in cases)]
    if not chosen:
        stop(f"{folder} has no dumps of what was asked for: write them with crosscheck --out {folder}")
    return [os.path.join(folder, n) for n in chosen]


def main(args):
    if not args:
        stop("want the folder of the dumps: compare.py DUMPS [CASE ...]")
    table = bars.Table()
    for path in files(args[0], args[1:]):
        compare_file(table, path)
    table.print()
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
