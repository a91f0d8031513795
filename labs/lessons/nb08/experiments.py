"""What notebook 08 fits to the steps that it measured."""

from labs import costs


def fitted(observations):
    """The fit of `labs.costs` to these steps; None where there are none, or, with the reason printed, no fit.

    Steps of a few milliseconds on a busy machine can come out shorter for the larger batch.
    """
    try:
        return costs.fit(observations) if observations else None
    except costs.CostError as problem:
        print(f"No fit, so nothing is predicted: {problem}")
        return None
