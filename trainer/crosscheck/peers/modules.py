"""Modules of PyTorch that hold the variables of a part by their names."""
import torch
import torch.nn as nn


def load(module, prefix, vars):
    state = module.state_dict()
    for k in state:
        if not k.endswith("num_batches_tracked"):
            state[k] = vars[prefix + "." + k].reshape(state[k].shape).clone()
    module.load_state_dict(state)
    return module


def store(module, prefix, out):
    """Weights, running statistics and the vectors of spectral norms."""
    for k, v in module.state_dict().items():
        if not k.endswith("num_batches_tracked"):
            out[prefix + "." + k] = v.detach().clone()


def named(module, prefix):
    return {prefix + "." + k: p for k, p in module.named_parameters()}


def assign(module, prefix, new):
    with torch.no_grad():
        for k, p in module.named_parameters():
            p.copy_(new[prefix + "." + k])


def batch_statistics(module):
    """Batch norms as in training; spectral norms, which would iterate, not."""
    for m in module.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.train()
