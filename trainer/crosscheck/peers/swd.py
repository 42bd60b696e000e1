"""The sliced Wasserstein distance of Laplacian pyramids (Karras et al. 2018)."""
import numpy as np

from philox import SAMPLING, blocks, integer, normal

TAPS = np.array([1, 4, 6, 4, 1]) / 16.0
SIDE = 7
DIRECTIONS = 4  # the place of the directions' draws; that of the patches' is 3
PATCHES = 3


def mirrored(i, n):
    return -i if i < 0 else 2 * n - 2 - i if i >= n else i


def blur(x, gain=1):
    for axis in (-1, -2):
        n = x.shape[axis]
        at = np.array([[mirrored(i + k - 2, n) for k in range(5)] for i in range(n)])
        x = np.moveaxis((np.moveaxis(x, axis, -1)[..., at] * TAPS).sum(-1), -1, axis)
    return x * gain


def pyramid(x):
    levels = []
    while min(x.shape[-2:]) >= 32:
        small = blur(x)[..., ::2, ::2]
        wide = np.zeros_like(x)
        wide[..., ::2, ::2] = small
        levels.append(x - blur(wide, 4))
        x = small
    return [*levels, x]


def patches(x, level, n, seed):
    """Of each picture, standardised by channel over all."""
    out = []
    for i in range(len(x)):
        for k in range(n):
            row, col = (integer(seed, SAMPLING, PATCHES, level, i, 2 * k + j, x.shape[2 + j] - SIDE + 1) for j in (0, 1))
            out.append(x[i, :, row:row + SIDE, col:col + SIDE])
    p = np.array(out)
    return ((p - p.mean((0, 2, 3), keepdims=True)) / p.std((0, 2, 3), keepdims=True)).reshape(len(p), -1)


def projected(x, q):
    """The patches of each level along random directions, in order."""
    levels = []
    for level, pictures in enumerate(pyramid(x)):
        p = patches(pictures, level, q["patches"], q["seed"])
        ds = [normal(blocks(q["seed"], SAMPLING, DIRECTIONS, level, k, p.shape[1]))[:p.shape[1]] for k in range(q["directions"])]
        levels.append(np.sort(p @ np.array([d / np.linalg.norm(d) for d in ds]).T, 0))
    return levels


def distance(q):
    a, b = (projected(np.array(q[n]["X"]).reshape([q[n][k] for k in "NCHW"]), q) for n in "ab")
    return [1000 * np.abs(x - y).mean() for x, y in zip(a, b)]
