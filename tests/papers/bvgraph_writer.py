"""Writer of BVGraph files in pure Python, for tests: bits as text, greedy choice of references as in WebGraph."""

from collections import Counter
from itertools import pairwise


def gamma(x):
    bits = f"{x + 1:b}"
    return "0" * (len(bits) - 1) + bits


def delta(x):
    bits = f"{x + 1:b}"
    return gamma(len(bits) - 1) + bits[1:]


def unary(x):
    return "0" * x + "1"


def zeta(x, k):
    """The first part selects the interval [2^(hk), 2^((h+1)k)) of x + 1, the second the position in it."""
    h = ((x + 1).bit_length() - 1) // k
    low, high = 1 << (h * k), 1 << ((h + 1) * k)
    offset, width = x + 1 - low, (high - low).bit_length()  # of high - low values
    short = (1 << width) - (high - low)  # so many have one bit less
    if offset < short:
        return unary(h) + (f"{offset:0{width - 1}b}" if width > 1 else "")
    return unary(h) + f"{offset + short:0{width}b}"


def natural(x):
    return 2 * x if x >= 0 else -2 * x - 1


def write(base, lists, window=7, most_references=3, shortest=4, k=3, flags=""):
    """Write successor lists; return the bits that each part of the format took."""
    code = {"GAMMA": gamma, "DELTA": delta, "UNARY": unary, "ZETA": lambda x: zeta(x, k)}
    codes = {"OUTDEGREES": "GAMMA", "REFERENCES": "UNARY", "BLOCK_COUNT": "GAMMA", "BLOCKS": "GAMMA"}
    codes["RESIDUALS"] = "ZETA"
    codes.update(flag.rsplit("_", 1) for flag in flags.split("|") if flag)
    put = {part: code[name] for part, name in codes.items()}
    bits, spent, depth = [], Counter(), []
    for x, links in enumerate(lists):
        out = put["OUTDEGREES"](len(links))
        spent["outdegrees"] += len(out)
        depth.append(0)
        if links:
            near = range(1, min(x, window) + 1)
            usable = [0, *(r for r in near if lists[x - r] and depth[x - r] < most_references)]
            tried = {r: _record(x, links, r and lists[x - r], r, window, shortest, put) for r in usable}
            best = min(usable, key=lambda r: sum(map(len, tried[r].values())))  # of equals the nearest
            depth[x] = depth[x - best] + 1 if best else 0
            for part, text in tried[best].items():
                spent[part] += len(text)
                out += text
        bits.append(out)
    text = "".join(bits)
    text += "0" * (-len(text) % 8)
    base.with_suffix(".graph").write_bytes(int(text or "0", 2).to_bytes(len(text) // 8, "big"))
    arcs = sum(map(len, lists))
    base.with_suffix(".properties").write_text(
        f"#BVGraph properties\nversion=0\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nnodes={len(lists)}\narcs={arcs}\n"
        f"windowsize={window}\nmaxrefcount={most_references}\nminintervallength={shortest}\nzetak={k}\n"
        f"compressionflags={flags}\n"
    )
    return spent


def _record(x, links, copied_from, reference, window, shortest, put):
    parts = {"references": put["REFERENCES"](reference) if window else "", "blocks": ""}
    extra = links
    if reference:
        wanted = set(links)
        flags = [link in wanted for link in copied_from]
        blocks, copying = [0], True
        for flag in flags:
            if flag != copying:
                blocks.append(0)
                copying = flag
            blocks[-1] += 1
        blocks.pop()  # the last is implied by the end of the list
        parts["blocks"] = put["BLOCK_COUNT"](len(blocks))
        parts["blocks"] += "".join(put["BLOCKS"](size - (i > 0)) for i, size in enumerate(blocks))
        copied = wanted.intersection(copied_from)
        extra = [link for link in links if link not in copied]
    if not extra:
        return parts
    intervals, residuals = _intervals(extra, shortest)
    if shortest:
        text, before = gamma(len(intervals)), None
        for begin, size in intervals:
            text += gamma(natural(begin - x) if before is None else begin - before - 1)
            text += gamma(size - shortest)
            before = begin + size
        parts["intervals"] = text
    gaps = [b - a - 1 for a, b in pairwise(residuals)]
    first = [natural(residuals[0] - x)] if residuals else []
    parts["residuals"] = "".join(map(put["RESIDUALS"], first + gaps))
    return parts


def _intervals(links, shortest):
    runs = []
    for link in links:
        if runs and runs[-1][-1] + 1 == link:
            runs[-1].append(link)
        else:
            runs.append([link])
    is_long = [bool(shortest) and len(run) >= shortest for run in runs]
    intervals = [(run[0], len(run)) for run, long in zip(runs, is_long, strict=True) if long]
    return intervals, [x for run, long in zip(runs, is_long, strict=True) if not long for x in run]
