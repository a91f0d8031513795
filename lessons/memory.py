"""What one training step keeps in the memory of each device: weights, gradients, optimizer state, activations."""

SHARDED = {  # what is cut into shards: its parts
    "nothing": (),
    "optimizer": ("optimizer",),
    "optimizer, gradients": ("optimizer", "gradients"),
    "everything": ("optimizer", "gradients", "weights"),
}
SLOTS = {"SGD": 0, "momentum": 1, "Adam": 2}  # numbers that the optimizer keeps for each parameter


def step(
    parameters: float, activations: float, local_batch: int, slots=1, bytes_per_value=4.0, devices=1, sharded="nothing"
) -> dict[str, float]:
    """Bytes on each device by part, {"weights", "gradients", "optimizer", "activations"}.

    parameters: of the network; activations: bytes that backward needs kept, for one sample in float32
    local_batch: samples per device and step
    slots: numbers that the optimizer keeps for each parameter, see SLOTS
    bytes_per_value: 4 (float32) or 2, of every value
    devices: K; sharded: a key of SHARDED, the parts of which each device keeps 1/K only

    Data parallelism alone divides none of them. Workspaces of the operations are left out. Source of the parts and of
    what can be sharded: S. Rajbhandari and others, ZeRO, SC 2020.
    """
    found = {
        "weights": parameters * bytes_per_value,
        "gradients": parameters * bytes_per_value,
        "optimizer": slots * parameters * bytes_per_value,
        "activations": activations * local_batch * bytes_per_value / 4,
    }
    return {part: value / devices if part in SHARDED[sharded] else value for part, value in found.items()}
