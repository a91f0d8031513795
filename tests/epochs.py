"""Epochs of the runs that tests make."""


def numbered(*repeats):
    """The labs.results.run.Epochs of each repeat in one list, each with the number of its repeat and its own."""
    return [
        epoch.model_copy(update={"repeat": repeat, "epoch": number})
        for repeat, epochs in enumerate(repeats)
        for number, epoch in enumerate(epochs)
    ]
