"""Steps of walks that do not turn back: the mass on reciprocal links, two steps of it, and sums by vertex.

``y_t(i→k)`` is the mass that crosses a link at step t. A walker who came from k does not go back to k, so that

    ``y_t(i→k) = w_ik·z_t(i) − b_ik·y_{t−1}(k→i)``,   ``b_ik = α·w_ik/(d_i − w_ik)``,

where z(i) is what i hands on for each unit of weight. Links without a reverse need no number of their own. Of a
reciprocal one the reverse's mass is eliminated, ``y_{t−1}(k→i) = w_ki·z_{t−1}(k) − b_ki·y_{t−2}(i→k)``: so a link reads
and writes its own mass of two steps before, in order, and nobody has to look up where its reverse is stored.
"""

from __future__ import annotations

import numpy as np

from apexrank.kernels.jit import kernel


@kernel()
def mark_reciprocal(indptr, indices, found, counts, first, last):
    """Mark and count the links (by target, sources sorted) whose reverse exists; a self-loop is its own reverse."""
    for k in range(first, last):
        counts[k] = 0
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            at = indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], k)
            found[e] = at < indptr[i + 1] and indices[at] == k
            counts[k] += found[e]


@kernel()
def reverse_weights(indptr, indices, weights, reciprocal, starts, back, first, last):
    """Weight of the reverse of every reciprocal link, in their order; ``starts`` says where a row's begin."""
    for k in range(first, last):
        q = starts[k]
        for e in range(indptr[k], indptr[k + 1]):
            if reciprocal[e]:
                i = indices[e]
                back[q] = weights[indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], k)]
                q += 1


@kernel()
def walk_on(
    indptr,
    indices,
    weights,
    reciprocal,
    starts,
    back,
    out,
    damping,
    z,
    z_before,
    y,
    arrived,
    handed,
    stuck,
    first,
    last,
):
    """One step for the rows ``first`` to ``last``.

    ``y`` holds the masses of reciprocal links two steps before and is overwritten. ``arrived`` is the mass on each
    vertex, ``handed`` its new z without teleports, ``stuck`` the mass that has nowhere to go on to.
    """
    for k in range(first, last):
        free = turning = lost = passed = 0.0
        q = starts[k]
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            w = weights[e] if weights.size else 1.0
            if not reciprocal[e]:
                free += w * z[i]
                continue
            v = back[q] if weights.size else 1.0
            rest_i, rest_k = out[i] - w, out[k] - v
            reverse = v * z_before[k]
            if rest_k > 0.0:
                reverse -= damping * v / rest_k * y[q]
            mass = w * z[i]
            if rest_i > 0.0:
                mass -= damping * w / rest_i * reverse
            mass = max(mass, 0.0)  # where all of i's mass came from k, rounding is all that is left
            y[q] = mass
            q += 1
            turning += mass
            if rest_k > 0.0:
                passed += mass / rest_k
            else:
                lost += mass
        if out[k] > 0.0:
            passed += free / out[k]
        else:
            lost += free
        arrived[k] = free + turning
        handed[k] = damping * passed
        stuck[k] = lost
