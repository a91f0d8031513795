"""benchmarks/gpu_proof: what it measures on a GPU can begin."""

from benchmarks.gpu_proof import plan


def test_parts_that_need_tensorflow_come_last_and_every_case_has_its_function():
    from benchmarks.gpu_proof import measures

    for sizes in plan.PRESETS.values():
        parts = plan.parts(sizes)
        needs = ["tensorflow" in part.needs for part in parts]
        assert needs == sorted(needs) and parts[0].name == "doctor"
        assert all(callable(getattr(measures, of)) for part in parts for of, _ in part.cases.values())
