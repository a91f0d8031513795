"""lessons.faster_steps.profile: what a `fit` leaves, read."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from labs.errors import UseError
from lessons.faster_steps import profile


def test_profile_of_a_fit_names_its_convolutions_and_no_profile_is_told(tmp_path):
    with pytest.raises(UseError, match="No profile below"):
        profile.operations(tmp_path)
    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3), keras.layers.Flatten()])
    model.compile("sgd", "mse", jit_compile=False)
    with tf.profiler.experimental.Profile(str(tmp_path)):
        model.fit(np.zeros((64, 8, 8, 3)), np.zeros((64, 144)), batch_size=8, verbose=0)
    rows = profile.operations(tmp_path)
    assert len([row for row in rows if "Conv2D" in row["operation"]]) >= 2
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds, reverse=True) and "Dataset" not in {row["operation"] for row in rows}
