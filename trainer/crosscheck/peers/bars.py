"""What counts as the same, and the table. README.md says how the bars were chosen."""
import re

import torch

# The largest difference that is float32's rounding, by what is compared.
BARS = {"report": 2e-5, "weights": 5e-4, "moments": 5e-5, "buffers": 2e-6, "graphs": 5e-5, "features": 2e-6, "statistics": 1e-10,
        "small gradients": 4.0, "biases at rest": 4.0, "their moments": 1e-5, "means after them": 4.0}

# A bias before a batch norm does nothing: its gradient is rounding alone, and Adam makes a step of that. Its moments are
# to be nothing beside the others', and it may move as Adam moves.
AT_REST = re.compile(r"generator\.block\d\.(conv1|conv2|shortcut)\.bias")

# The running means of these batch norms follow them, where the generator runs after its step.
MEANS = re.compile(r"generator\.(block\d\.)?bn\d?\.running_mean")

# Tensors whose gradient is the difference of two nearly equal ones, of data and of samples: 5e-6 of 0.2, so float32
# leaves three digits of it.
CANCELLING = {("bidvl-sigmoid", "moments"): re.compile(r"adam\.upper\."), ("bidvl-sigmoid", "weights"): re.compile(r"energy\.")}
CANCELLING_BAR = 1e-2

# Below this share of a tensor's largest root of the second moment a gradient may be rounding, whose sign Adam follows.
SMALL = 2e-3


class Table:
    def __init__(self):
        self.rows, self.wrong = {}, []

    def add(self, case, what, values, error, name, bar=None):
        """Keeps the worst of each case and kind."""
        bar = bar or BARS[what]
        if (case, what) in CANCELLING and CANCELLING[case, what].match(name):
            what, bar = what + ", cancelling", CANCELLING_BAR
        if not error <= bar:  # a NaN, too
            self.wrong.append(f"{case}: {what}: {name}: {error:.3g}, above {bar:.0e}")
        n, worst = self.rows.get((case, what), (0, 0.0, 0))[:2]
        self.rows[case, what] = (n + values, worst if worst >= error else error, bar)

    def fail(self, case, text):
        self.wrong.append(f"{case}: {text}")
        self.rows.setdefault((case, "peer"), (0, float("nan"), 0.0))

    def print(self):
        print(f"{'case':20s} {'compared':20s} {'values':>8s} {'largest':>9s} {'bar':>7s}  verdict")
        for (case, what), (n, worst, bar) in self.rows.items():
            print(f"{case:20s} {what:20s} {n:8d} {worst:9.1e} {bar:7.0e}  {'ok' if worst <= bar else 'OVER'}")
        for text in self.wrong:
            print(text)
        print(f"{sum(r[0] for r in self.rows.values())} values of {len({k[0] for k in self.rows})} cases, {len(self.wrong)} differ")


def relative(got, want):
    """The largest difference, of the largest value."""
    return float((got - want).abs().max()) / max(float(want.abs().max()), 1e-30)


def compare_step(table, case, roles, got, s):
    """All variables after a step."""
    largest, at_rest = root_of_largest(s.out), [k for k in s.rate if AT_REST.search(k)]
    for name, value in got.items():
        if name not in s.out:
            table.fail(case, f"the peer has no {name}")
            continue
        want = s.out[name].reshape(value.shape)
        if roles[name] == "weight":
            compare_weight(table, case, name, value, want, s)
        elif roles[name] == "moment" and AT_REST.search(name):
            of = max(float(value.abs().max()), float(want.abs().max())) ** (0.5 if name.endswith(".v") else 1)
            table.add(case, "their moments", value.numel(), of / largest, name)
        elif at_rest and MEANS.search(name):
            table.add(case, "means after them", value.numel(), float((value - want).abs().max()) / s.rate[at_rest[0]], name)
        else:
            table.add(case, "moments" if roles[name] == "moment" else "buffers", value.numel(), relative(value, want), name)

    for name in s.out:
        if name not in got:
            table.fail(case, f"the program has no {name}")


def root_of_largest(out):
    return max((float(v.max()) for k, v in out.items() if k.startswith("adam.") and k.endswith(".v")), default=0.0) ** 0.5


def compare_weight(table, case, name, got, want, s):
    """In learning rates, less the rounding of the weight itself."""
    away, rate = (got - want).abs(), s.rate.get(name)
    if rate is None:  # nothing moves it
        table.add(case, "buffers", got.numel(), relative(got, want), name)
        return
    if AT_REST.search(name):
        table.add(case, "biases at rest", got.numel(), float(away.max()) / rate, name)
        return
    small = torch.zeros_like(want, dtype=torch.bool)
    for k, v in s.out.items():
        if k.startswith("adam.") and k.endswith(f".{name}.v"):
            root = v.reshape(want.shape).sqrt()
            small = root <= SMALL * root.max()
    if small.any():
        table.add(case, "small gradients", int(small.sum()), float(away[small].max()) / rate, name)
    if not small.all():
        excess = (away - 2**-23 * want.abs())[~small].clamp(min=0)
        table.add(case, "weights", int((~small).sum()), float(excess.max()) / rate, name)


def compare_report(table, case, columns, values, report, without):
    for name, got in zip(columns, values):
        if name in report:
            want = float(report[name])
            table.add(case, "report", 1, abs(got - want) / max(abs(want), 1e-2), name)
        elif name != without:
            table.fail(case, f"the peer reports no {name}")
    for name in report:
        if name not in columns:
            table.fail(case, f"the program reports no {name}")
