"""Features and logits of Inception-v3 by PyTorch, on weights and pictures that are
drawn by a formula, for inception_test.go: torchvision's network with the four changes
that package inception names.

    python3 reference.py > reference.json      (torch 1.13, torchvision 0.14)

tiny.pth and tiny-legacy.pth are its two formats of a state_dict.
"""

import json
import sys
import types
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torchvision.models import inception


def uniform(name, shape):
    """Numbers in [-1/2, 1/2): a mixing of the index and the name's CRC-32."""
    n = int(np.prod(shape))
    x = np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B1) ^ np.uint32(zlib.crc32(name.encode()))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    return torch.from_numpy((x / 2.0**32 - 0.5).reshape(shape))


def draw(name, shape):
    u = uniform(name, shape)
    if name.endswith("conv.weight") or name == "fc.weight":
        fan = int(np.prod(shape[1:]))
        return u * (24 / fan) ** 0.5
    if name.endswith("bn.weight"):
        return 1 + 0.4 * u
    if name.endswith("running_var"):
        return 1 + u
    return 0.4 * u


def outside(x):
    """A mean of 3x3 neighbours that leaves the padding out."""
    return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


def pooled(block, pool):
    """The block's forward, in which pool takes the place of its average pool."""
    forward = type(block).forward
    scope = dict(forward.__globals__)
    inner = type(block)._forward
    functional = types.SimpleNamespace(**{k: getattr(F, k) for k in ("max_pool2d", "relu")})
    functional.avg_pool2d = lambda x, kernel_size, stride, padding: pool(x)
    scope["F"] = functional
    patched = types.FunctionType(inner.__code__, scope)
    block._forward = types.MethodType(patched, block)


def network():
    net = inception.Inception3(num_classes=1008, aux_logits=False, init_weights=False).double().eval()
    for name in ("Mixed_5b", "Mixed_5c", "Mixed_5d", "Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e", "Mixed_7b"):
        pooled(getattr(net, name), outside)
    pooled(net.Mixed_7c, lambda x: F.max_pool2d(x, 3, stride=1, padding=1))
    state = {k: v if k.endswith("tracked") else draw(k, v.shape) for k, v in net.state_dict().items()}
    net.load_state_dict(state)
    return net


def main():
    if sys.argv[1:] == ["tiny"]:
        state = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.num": torch.tensor(7), "b": torch.tensor([-1.5, 2.5])}
        torch.save(state, "tiny.pth")
        torch.save(state, "tiny-legacy.pth", _use_new_zipfile_serialization=False)
        return
    net = network()
    features = []
    net.dropout.register_forward_hook(lambda module, inputs, out: features.append(inputs[0].flatten(1)))
    cases = {}
    for h, w in ((32, 32), (40, 24), (299, 299), (320, 310)):
        x = 2 * uniform("pictures %d %d" % (h, w), (1, 3, h, w))
        with torch.no_grad():
            y = F.interpolate(x, size=(299, 299), mode="bilinear", align_corners=False)
            out = net(y)
        f, logits = features.pop()[0], out[0] - net.fc.bias
        cases["%dx%d" % (h, w)] = {
            "features": f[::64].tolist(), "features_norm": float(f.norm()),
            "logits": logits[::63].tolist(), "logits_norm": float(logits.norm()),
        }
    json.dump(cases, sys.stdout, indent=1)
    print()


main()
