"""The page of tables, Markdown, from the records alone."""

from pathlib import Path


def write(records, out):
    """Write OUT/page.md; returns its path."""
    path = Path(out, "page.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines(records)) + "\n", encoding="utf-8")
    return path


def lines(records):
    """The lines of the page."""
    machine = _result(records, "doctor", "machine") or {}
    gpus = ", ".join((machine.get("machine") or {}).get("gpus") or []) or "no GPU (a rehearsal on the CPU)"
    yield f"# One GPU: {gpus}"
    yield ""
    yield f"Preset `{records['preset']}`, Keras on {records['engine']}. Measured by `python benchmarks/gpu_proof`."
    if machine:
        told = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
        yield f"{machine['machine']['cpu']}, {machine['machine']['cores']} cores; {told}."
    seconds = sum(call["seconds"] for call in records["calls"])
    first = records["calls"][0]["started"] if records["calls"] else "never"
    yield f"First call {first}; {len(records['calls'])} calls, {seconds / 60:.1f} minutes."
    for name, part in records["parts"].items():
        yield from ["", f"## {name}: {part['about']}", ""]
        if "left_out" in part:
            yield f"Left out: {part['left_out']}."
            continue
        yield "| case | state | seconds | measured |"
        yield "|---|---|---|---|"
        for key, case in part["cases"].items():
            said = _said(case.get("result") or {}) or _of(case)
            yield f"| {key} | {case['state']} | {case.get('seconds', '')} | {said} |"


def _of(case):
    """Why a case has no result, and what is kept of it."""
    kept = case.get("kept")
    rest = f"; kept: {len(kept['epochs'])} epochs" if kept and kept["epochs"] else ""
    return " ".join(f"{case.get('reason', '')}{rest}".replace("|", "/").split())


HIDDEN = ("state", "started", "strategy", "nvidia_smi")  # in the records only


def _said(result):
    """The plain values of a result in one line; of a training also the seconds of its warm-up."""
    told = []
    if epochs := result.get("epochs"):
        told.append(f"{len(epochs)} epochs, the first {_number(epochs[0]['seconds'])} s")
    for found in result.get("ratios", []):
        between = "{:.4g} to {:.4g}".format(*found["interval"]) if found["interval"] else "one round"
        told.append(f"{found['of']} {_number(found['ratio'])} ({between})")
    for batch, seconds in (result.get("trials") or {}).items():
        told.append(f"batch {batch}: {_number(1e3 * seconds)} ms")
    for key, value in result.items():
        if key in HIDDEN:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            told.append(f"{key.replace('_', ' ')} {_number(value)}")
        elif isinstance(value, str) and len(value) < 80:
            told.append(f"{key.replace('_', ' ')} {value}")
        elif key == "interval" and value:
            told.append(f"95 % interval {_number(value[0])} to {_number(value[1])}")
    return ", ".join(told).replace("|", "/")


def _number(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _result(records, part, key):
    return records["parts"].get(part, {}).get("cases", {}).get(key, {}).get("result")
