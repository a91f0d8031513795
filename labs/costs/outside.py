"""Where a question leaves what was fitted: said in sentences, never refused."""

FAR = 8  # times as many workers as measured


def notes_on(fitted, network, workers, batch, machine=None):
    """Notes on a prediction from a Fit for `workers` with `batch` images each, on another `machine` or its own."""
    notes = []
    if not min(network.batches) <= batch <= max(network.batches):
        side = "larger than all" if batch > max(network.batches) else "smaller than all"
        notes.append(f"extrapolation: batch {batch:g} is {side} that were fitted ({_list(network.batches)})")
    if workers > FAR * fitted.workers:
        notes.append(
            f"extrapolation: {workers} workers are more than {FAR} times the {fitted.workers} that were "
            "measured; what shows only with many, as a network's upper levels, is not in the fit"
        )
    if machine:
        notes.append(
            f"extrapolation: another machine. Communication is that of {machine.name} by its file and was not "
            f"measured; computation is that of {fitted.hardware}"
        )
    elif workers > fitted.workers and workers <= FAR * fitted.workers:
        notes.append(f"extrapolation: {workers} workers, up to {fitted.workers} were measured")
    if not machine and workers > fitted.workers:
        notes.append(
            "extrapolation: all links are taken to be as those that were measured; give a machine if the "
            "workers are on several nodes"
        )
    return notes


def _list(batches):
    return ", ".join(f"{batch:g}" for batch in batches)
