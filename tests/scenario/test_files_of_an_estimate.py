"""One estimate stays short to read: the files that it runs through may only become fewer."""

from checks.files_of_an_estimate import batch, closed_loop, functions_of

MOST_FILES = {batch: 52, closed_loop: 56}


def test_one_estimate_runs_through_few_files():
    found = {question: {file for file, _ in functions_of(question)} for question in MOST_FILES}
    for question, most in MOST_FILES.items():
        assert len(found[question]) <= most, sorted(found[question])
    assert {"serving/estimate.py", "execution/step.py", "kernels/gemm/rule.py"} <= found[batch]
