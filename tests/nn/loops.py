"""Sequence models one sentence and one word at a time, in float64: oracles."""

import numpy as np


def softmax(scores):
    weights = [np.exp(s - max(scores)) for s in scores]
    return [w / sum(weights) for w in weights]


def mix(scores, vectors, width):
    """The vectors' mean, weighted by the softmax of the scores; 0 of nothing."""
    total = np.zeros(width)
    for weight, vector in zip(softmax(scores) if scores else [], vectors, strict=True):
        total = total + weight * vector
    return total


def dense(params, x):
    bias = np.asarray(params["bias"], np.float64) if "bias" in params else 0.0
    return np.asarray(x, np.float64) @ np.asarray(params["kernel"], np.float64) + bias


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def lstm(cell, words):
    recurrent = np.asarray(cell["recurrent"], np.float64)
    h, c = np.zeros(len(recurrent)), np.zeros(len(recurrent))
    states = []
    for word in words:
        i, f, g, o = np.split(dense(cell["input"], word) + h @ recurrent, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return states


def bilstm(params, words):
    """Of each word, the state of either direction side by side."""
    ahead = lstm(params["forward"], words)
    back = lstm(params["backward"], words[::-1])[::-1]
    return [np.concatenate(pair) for pair in zip(ahead, back, strict=True)]


def highway(params, x, layers):
    for i in range(layers):
        t = sigmoid(dense(params[f"gate_{i}"], x))
        h = np.maximum(dense(params[f"transform_{i}"], x), 0)
        x = t * h + (1 - t) * x
    return x
