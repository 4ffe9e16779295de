"""Memory snapshots with known answers, as torch.cuda.memory._dump_snapshot writes them."""

import pickle
from pathlib import Path

SITE = {"filename": "/home/me/model.py", "line": 7, "name": "forward"}
TORCH = {"filename": "/x/site-packages/torch/nn/modules/module.py", "line": 1787, "name": "_call_impl"}


def frames(line=7, name="forward", path="/home/me/model.py"):
    """A stack: torch's frame innermost, then the line ``line`` of a user's file."""
    return [TORCH, {"filename": path, "line": line, "name": name}]


def event(action, address, size, stack=(), time=None):
    entry = {"action": action, "addr": address, "size": size, "stream": 0, "frames": list(stack)}
    return entry if time is None else entry | {"time_us": time}


def alloc(address, size, stack=(), time=None):
    return [event("alloc", address, size, stack, time)]


def free(address, size, stack=(), time=None):
    return [event(action, address, size, stack, time) for action in ("free_requested", "free_completed")]


def block(address, size, state="active_allocated", requested=None, stack=()):
    return {
        "address": address,
        "size": size,
        "requested_size": size if requested is None else requested,
        "state": state,
        "frames": list(stack),
    }


def segment(address, size, *blocks, device=0, kind="large", **more):
    return {
        "device": device,
        "address": address,
        "total_size": size,
        "allocated_size": sum(b["size"] for b in blocks if b["state"] == "active_allocated"),
        "stream": 0,
        "segment_type": kind,
        "segment_pool_id": (0, 0),
        "blocks": list(blocks),
    } | more


def snapshot(segments, *traces):
    return {"segments": list(segments), "device_traces": [list(trace) for trace in traces]}


def write(path: Path, document, protocol=4) -> Path:
    path.write_bytes(pickle.dumps(document, protocol))
    return path


class Program:
    """A program that allocates and frees on one device; ``record`` starts the recording. Its own count of the peak is
    what the account of its snapshot must have.
    """

    def __init__(self, device=0):
        self.device = device
        self.alive = {}
        self.trace = None
        self.allocated = self.peak = self.start = 0
        self.at_peak = {}
        self.next = 1 << 20

    def record(self):
        self.trace = []
        self.start = self.peak = self.allocated
        self.at_peak = dict(self.alive)

    def alloc(self, size, line=7):
        address, self.next = self.next, self.next + size + 512
        recorded = self.trace is not None
        self.alive[address] = (size, line if recorded else None)
        self.allocated += size
        if recorded:
            self.trace += alloc(address, size, frames(line), time=len(self.trace))
            if self.allocated > self.peak:
                self.peak, self.at_peak = self.allocated, dict(self.alive)
        return address

    def free(self, address):
        size, _ = self.alive.pop(address)
        self.allocated -= size
        if self.trace is not None:
            self.trace += free(address, size, frames(99, "drop"), time=len(self.trace))

    def segments(self):
        found = []
        for address, (size, line) in self.alive.items():
            stack = frames(line) if line is not None else ()
            found.append(segment(address, size + 512, block(address, size, stack=stack), device=self.device))
        return found
