"""lessons.faster_steps.profile: own times of operations, from a profile made by hand and one that a `fit` leaves."""

import pytest

from labs import compat
from labs.errors import UseError
from lessons.faster_steps import profile


def write(folder, planes):
    """A profile: {plane: [[(name, begin, duration in picoseconds), ...] of each line]}."""
    space = compat.xplane().XSpace()
    for name, lines in planes.items():
        plane, ids = space.planes.add(name=name), {}
        for events in lines:
            line = plane.lines.add()
            for event, begin, duration in events:
                id = ids.setdefault(event, len(ids) + 1)
                plane.event_metadata[id].id, plane.event_metadata[id].name = id, event
                line.events.add(metadata_id=id, offset_ps=begin, duration_ps=duration)
    place = folder / "plugins/profile/run"
    place.mkdir(parents=True)
    (place / "host.xplane.pb").write_bytes(space.SerializeToString())


def test_time_inside_an_operation_counts_for_the_one_inside(tmp_path):
    second = 10**12
    first = [("model/while:While", 0, 10 * second), ("a/b:Conv2D", second, 3 * second)]
    first += [("a/c:_FusedConv2D", 5 * second, second)]
    other = [("a/b:AddV2", 0, 2 * second)]
    other += [("ExecutorState::Process", 0, 9 * second), ("TraceContext", 3 * second, second)]
    write(tmp_path, {"/host:CPU": [first, other], "/host:metadata": [[("x:Conv2D", 0, second)]]})
    rows = {row["operation"]: row for row in profile.operations(tmp_path)}
    seconds = {"While": 6.0, "Conv2D": 3.0, "_FusedConv2D": 1.0, "AddV2": 2.0}
    assert {name: row["seconds"] for name, row in rows.items()} == seconds
    assert {row["calls"] for row in rows.values()} == {1}
    assert list(rows) == ["While", "Conv2D", "AddV2", "_FusedConv2D"] and rows["While"]["share"] == 0.5


def test_kernels_of_a_gpu_count_where_there_is_one_and_no_profile_is_told(tmp_path):
    with pytest.raises(UseError, match="No profile below"):
        profile.operations(tmp_path)
    gpu = {"/host:CPU": [[("a:Conv2D", 0, 5)]], "/device:GPU:0": [[("sm80_gemm", 0, 7), ("relu", 7, 1)]]}
    write(tmp_path / "gpu", gpu)
    assert [row["operation"] for row in profile.operations(tmp_path / "gpu")] == ["sm80_gemm", "relu"]


def test_profile_of_a_fit_names_its_convolutions(tmp_path):
    import keras
    import numpy as np
    import tensorflow as tf

    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3), keras.layers.Flatten()])
    model.compile("sgd", "mse", jit_compile=False)
    with tf.profiler.experimental.Profile(str(tmp_path)):
        model.fit(np.zeros((64, 8, 8, 3)), np.zeros((64, 144)), batch_size=8, verbose=0)
    rows = profile.operations(tmp_path)
    assert len([row for row in rows if "Conv2D" in row["operation"]]) >= 2
    assert sum(row["share"] for row in rows) == pytest.approx(1)
