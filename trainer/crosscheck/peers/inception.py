"""The Inception network of Fréchet distances, layer by layer: Szegedy et al. 2016 (arXiv:1512.00567) as the graph of 2015-12-05 has it.

The paper's figures 5, 6, 7 and 10 are the blocks; widths and names are those of the published weights (pytorch-fid), and so is what the
paper does not have: 1×1 before the stem's last 3×3, average pools that leave the padding out, a largest value in the last block's pool,
1008 classes. The classes of an inception score have no bias (Salimans et al. 2016, inception_score/model.py).
"""
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import philox

TESTING = 9  # the purpose of the drawn weights
SEED = 5
SIDE = 299

# A step of a branch is (name, channels, kernel), with a padding that keeps the size; with "half" it has none, and a stride of 2. A pool is
# its kind. A list within a branch is steps side by side.
HALF = "half"


def block5(pool):
    """Figure 5."""
    return [[("branch1x1", 64, 1)],
            [("branch5x5_1", 48, 1), ("branch5x5_2", 64, 5)],
            [("branch3x3dbl_1", 64, 1), ("branch3x3dbl_2", 96, 3), ("branch3x3dbl_3", 96, 3)],
            ["average", ("branch_pool", pool, 1)]]


def block6(n):
    """Figure 6, with n = 7: height by width."""
    wide, tall = (1, 7), (7, 1)
    return [[("branch1x1", 192, 1)],
            [("branch7x7_1", n, 1), ("branch7x7_2", n, wide), ("branch7x7_3", 192, tall)],
            [("branch7x7dbl_1", n, 1), ("branch7x7dbl_2", n, tall), ("branch7x7dbl_3", n, wide), ("branch7x7dbl_4", n, tall), ("branch7x7dbl_5", 192, wide)],
            ["average", ("branch_pool", 192, 1)]]


def block7(pool):
    """Figure 7."""
    def fork(name):
        return [(name + "a", 384, (1, 3)), (name + "b", 384, (3, 1))]
    return [[("branch1x1", 320, 1)],
            [("branch3x3_1", 384, 1), fork("branch3x3_2")],
            [("branch3x3dbl_1", 448, 1), ("branch3x3dbl_2", 384, 3), fork("branch3x3dbl_3")],
            [pool, ("branch_pool", 192, 1)]]


# Figure 10, twice.
SMALLER_6 = [[("branch3x3", 384, 3, HALF)], [("branch3x3dbl_1", 64, 1), ("branch3x3dbl_2", 96, 3), ("branch3x3dbl_3", 96, 3, HALF)], ["halved"]]
SMALLER_7 = [[("branch3x3_1", 192, 1), ("branch3x3_2", 320, 3, HALF)],
             [("branch7x7x3_1", 192, 1), ("branch7x7x3_2", 192, (1, 7)), ("branch7x7x3_3", 192, (7, 1)), ("branch7x7x3_4", 192, 3, HALF)], ["halved"]]

BLOCKS = {"5b": block5(32), "5c": block5(64), "5d": block5(64), "6a": SMALLER_6, "6b": block6(128), "6c": block6(160), "6d": block6(160),
          "6e": block6(192), "7a": SMALLER_7, "7b": block7("average"), "7c": block7("largest")}

POOLS = {"average": nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False), "largest": nn.MaxPool2d(3, stride=1, padding=1),
         "halved": nn.MaxPool2d(3, stride=2)}


class Conv(nn.Module):
    """Convolution, batch norm with an epsilon of 0.001, ReLU."""

    def __init__(self, a, b, kernel, stride, padding):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(a, b, kernel, stride, padding, bias=False), nn.BatchNorm2d(b, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Block(nn.Module):
    def __init__(self, channels, branches):
        super().__init__()
        self.branches = branches
        self.out = sum(self.widths(channels, branch) for branch in branches)

    def widths(self, channels, branch):
        """Makes a branch's convolutions; the channels that it ends with."""
        for step in branch:
            if isinstance(step, list):
                channels = sum(self.widths(channels, [one]) for one in step)
            elif not isinstance(step, str):
                name, out, kernel, *half = step
                same = (kernel // 2) if isinstance(kernel, int) else tuple(k // 2 for k in kernel)
                self.add_module(name, Conv(channels, out, kernel, *((2, 0) if half else (1, same))))
                channels = out
        return channels

    def forward(self, x):
        return torch.cat([self.along(x, branch) for branch in self.branches], 1)

    def along(self, x, branch):
        for step in branch:
            if isinstance(step, list):
                x = torch.cat([self.along(x, [one]) for one in step], 1)
            else:
                x = POOLS[step](x) if isinstance(step, str) else getattr(self, step[0])(x)
        return x


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.Conv2d_1a_3x3, self.Conv2d_2a_3x3, self.Conv2d_2b_3x3 = Conv(3, 32, 3, 2, 0), Conv(32, 32, 3, 1, 0), Conv(32, 64, 3, 1, 1)
        self.pool_1 = nn.MaxPool2d(3, stride=2)
        self.Conv2d_3b_1x1, self.Conv2d_4a_3x3 = Conv(64, 80, 1, 1, 0), Conv(80, 192, 3, 1, 0)
        self.pool_2 = nn.MaxPool2d(3, stride=2)
        channels = 192
        for name, branches in BLOCKS.items():
            block = Block(channels, branches)
            self.add_module("Mixed_" + name, block)
            channels = block.out
        self.fc = nn.Linear(channels, 1008, bias=False)

    def layers(self, x):
        """What each layer makes, by name."""
        out = {}
        for name, layer in self.named_children():
            if name == "fc":
                x = out["features"] = x.mean((2, 3))
            x = out["logits" if name == "fc" else name] = layer(x)
        return out


def draw(name, shape):
    """A tensor of the weights, as the program draws it."""
    shape = tuple(shape)
    n, fan = int(np.prod(shape)), int(np.prod(shape[1:]))
    x = philox.normal(philox.blocks(SEED, TESTING, 0, zlib.crc32(name.encode()), 0, n))[:n]
    if name.endswith("running_var"):
        x = 0.5 + x * x
    elif name.endswith("bn.weight"):
        x = 1 + 0.2 * x
    elif name.endswith("weight"):
        x = np.sqrt(2 / fan) * x
    else:
        x = 0.2 * x
    return torch.tensor(x.astype(np.float32).astype(np.float64).reshape(shape))


def network():
    net = Inception().eval()
    net.load_state_dict({k: v if k.endswith("tracked") else draw(k, v.shape) for k, v in net.state_dict().items()})
    return net


def resize(x):
    """As pytorch-fid has it: bilinear, without a filter."""
    return F.interpolate(x, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
