"""Everything that the course does on one GPU, measured part by part: `make gpu-proof`.

    python benchmarks/gpu_proof                            all parts that are not measured yet, for at most 8 minutes
    python benchmarks/gpu_proof --part steps --part turns  these only
    python benchmarks/gpu_proof --preset test              rehearse on the CPU, with a small network
    python benchmarks/gpu_proof --page                     only write the page again

Each case is a process of its own with a limit. What it measured is in OUT/records.json before the next one starts; a
call goes on where the last one ended, also on another machine that got this file. A case that fails, runs out of time
or ends with the machine leaves its reason there, and the epochs that it had finished. OUT/page.md shows all of it.
With TensorFlow installed, Keras computes with it, otherwise with JAX; --engine chooses. Nothing is written outside OUT
and WORK.
"""

import argparse
import importlib.util
import json
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu_proof import page, plan, summary

LARGEST = 16 * 2**20  # bytes of records.json: what comes back from a machine that is lent
SHORTEST = 15.0  # seconds: with less left, no case is started
ATTEMPTS = 2  # a case that failed twice is not tried again unless it is asked for


def main(argv=None):
    args = _arguments(argv)
    records, path = _read(args), args.out / "records.json"
    if args.page:
        print(page.write(records, args.out))
        return 0
    os.environ["KERAS_BACKEND"] = args.engine
    from labs import files

    def keep():
        text = json.dumps(records, indent=1)
        if len(text) > LARGEST:
            raise SystemExit(
                f"The records would be {len(text) / 2**20:.1f} MiB: more than comes back. Use a new --out."
            )
        files.write(path, text)
        page.write(records, args.out)

    _close(records, args.work)
    call = {"started": _now(), "seconds": 0.0, "engine": args.engine, "preset": args.preset}
    records["calls"].append(call)
    keep()
    begin, spent = time.monotonic(), sum(each["seconds"] for each in records["calls"])
    allowed = min(60 * args.minutes, 60 * args.total - spent)
    for part, key, case in list(_open(args, records)):
        left = allowed - (time.monotonic() - begin)
        if left < SHORTEST:
            print(f"Out of time: {part.name}, {key} and what follows is left for the next call.", flush=True)
            break
        case.update(state="running", started=_now(), attempts=case.get("attempts", 0) + 1)
        keep()
        limit = min(left, args.limit or plan.PRESETS[args.preset].limit)
        print(f"{part.name}, {key}: at most {limit:.0f} s", flush=True)
        _run(args, part, key, case, limit)
        call["seconds"] = round(time.monotonic() - begin, 1)
        keep()
        if args.preset == "gpu" and part.name == "doctor" and not case.get("result", {}).get("machine", {}).get("gpus"):
            print(f"Stopped: {args.engine} sees no GPU here, and the CPU would take hours. {case.get('reason', '')}")
            return 1
        print(f"  {case['state']} after {case['seconds']:.1f} s. {case.get('reason', '')}", flush=True)
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB; {args.out / 'page.md'}")
    return 0 if all(case["state"] == "done" for case in _asked(args, records)) else 1


def _arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [part.name for part in plan.parts(plan.PRESETS["test"])]
    parser.add_argument("--part", action="append", choices=names, help="only this part; may be given several times")
    parser.add_argument("--out", type=Path, default=Path("build/gpu-proof"), help="records.json, page.md (%(default)s)")
    parser.add_argument("--work", type=Path, help="what each case prints and leaves (default: OUT/work)")
    parser.add_argument(
        "--preset", choices=plan.PRESETS, help="default: gpu on a machine with one; else you must name it"
    )
    parser.add_argument("--engine", choices=("tensorflow", "jax"), help="what Keras computes with")
    parser.add_argument("--minutes", type=float, default=8, help="of this call (%(default)s)")
    parser.add_argument("--total", type=float, default=25, help="minutes of all calls together (%(default)s)")
    parser.add_argument("--limit", type=float, help="seconds for a case (default: of the preset)")
    parser.add_argument("--page", action="store_true", help="write page.md from the records, and measure nothing")
    args = parser.parse_args(argv)
    args.out, has = args.out.resolve(), importlib.util.find_spec
    args.work = (args.work or args.out / "work").resolve()
    args.engine = args.engine or ("tensorflow" if has("tensorflow") else "jax")
    if not (args.preset or args.page):
        if not shutil.which("nvidia-smi"):
            parser.error("no GPU here (nvidia-smi is not found). To rehearse on the CPU: --preset test")
        args.preset = "gpu"
    return args


def _read(args):
    """What was measured before, of this preset and engine; else new records."""
    path = args.out / "records.json"
    if not path.exists():
        return {"version": 1, "preset": args.preset, "engine": args.engine, "calls": [], "parts": {}}
    records = json.loads(path.read_text())
    for key in ("preset", "engine"):
        if not args.page and records[key] != getattr(args, key):
            raise SystemExit(f"{path} holds {key} {records[key]}, not {getattr(args, key)}: give another --out.")
    return records


def _open(args, records):
    """(part, key, its record) of each case that is to be measured, in order; parts that cannot be are marked so."""
    for part in plan.parts(plan.PRESETS[args.preset]):
        of = records["parts"].setdefault(part.name, {"about": part.about, "cases": {}})
        if missing := [name for name in part.needs if not importlib.util.find_spec(name)]:
            of["left_out"] = f"{' and '.join(missing)} not installed here"
            continue
        if "tensorflow" in part.needs and args.engine != "tensorflow":
            of["left_out"] = "needs TensorFlow, and Keras computes with JAX here"
            continue
        of.pop("left_out", None)
        for key in part.cases:
            case = of["cases"].setdefault(key, {"state": "open"})
            chosen = part.name in args.part if args.part else case.get("attempts", 0) < ATTEMPTS
            if chosen and case["state"] != "done":
                yield part, key, case


def _asked(args, records):
    """The records of all cases of the parts asked for, without those that are left out."""
    parts = {name: of for name, of in records["parts"].items() if "left_out" not in of}
    return [case for name, of in parts.items() if name in (args.part or parts) for case in of["cases"].values()]


def _run(args, part, key, case, limit):
    """Measure one case in a process of its own."""
    from labs import jobs

    name, (function, arguments) = _name(part.name, key), part.cases[key]
    result = args.work / f"{name}.result"
    result.unlink(missing_ok=True)
    options = {"function": function, "arguments": arguments, "preset": args.preset, "name": name}
    asked = [json.dumps(options | {"runs": str(args.work), "result": str(result)})]
    # JAX and TensorFlow take what they need of a GPU, not all of it.
    grow = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    # What JAX has compiled for one case serves the next.
    grow["JAX_COMPILATION_CACHE_DIR"] = str(args.work / "compiled")
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    begin = time.monotonic()
    job = jobs.start(HERE / "measures.py", *asked, name=name, runs=args.work, env=grow | paths | part.env)
    job.wait(timeout=limit, show=False)
    case["seconds"] = round(time.monotonic() - begin, 1)
    if job.state == "finished" and result.exists():
        case.update(state="done", result=json.loads(result.read_text()))
        for left in ("reason", "kept", "end_of_out", "end_of_err"):  # of an earlier attempt
            case.pop(left, None)
        return
    if job.state == "stopped":
        reason = f"ran longer than its {limit:.0f} s"
    else:
        lines = job.err.read_text(errors="replace").strip().splitlines()
        said, last = job.explain()[:2000], lines[-1][:300] if lines else ""
        reason = said if last in said else f"{said} Its last line: {last}"
    case.update(state="out of time" if job.state == "stopped" else "failed", reason=reason)
    _keep_rest(case, args.work, name)


def _keep_rest(case, work, name):
    """What a case had measured before it ended: the epochs of its run record, and the end of its output."""
    if found := summary.training(work / f"{name}.json"):
        case["kept"] = found
    for ending in (".out", ".err"):
        path = work / f"{name}{ending}"
        if path.exists():
            case[f"end_of_{ending[1:]}"] = path.read_text(errors="replace")[-1500:]


def _close(records, work):
    """Cases that an earlier call left running were ended with it."""
    for name, part in records["parts"].items():
        for key, case in part["cases"].items():
            if case["state"] == "running":
                case["attempts"] -= 1  # it says nothing of the case
                case.update(state="interrupted", reason="the program or the machine ended in the middle of it")
                _keep_rest(case, work, _name(name, key))


def _name(part, key):
    return f"{part}_{key}".replace(" ", "_")


def _now():
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
