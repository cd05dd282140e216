"""A stand-in for the package ray, where a test is about what is asked of it."""

from types import SimpleNamespace


def fake_ray(calls, num_cpus=1.0):
    """Ray, as far as tasks use it: they run when they are asked for."""

    def init(address, **rest):
        if address == "nowhere":
            raise ConnectionError("nobody answers")
        calls.append(address)

    def remote(function):
        class Task:
            def options(self, max_retries):
                assert max_retries > 0
                return self

            def remote(self, *arguments):
                calls.append("asked")
                return (function, tuple(map(str, arguments)), lambda: function(*arguments))

        return Task()

    return SimpleNamespace(
        init=init,
        shutdown=lambda: calls.append("shutdown"),
        cluster_resources=lambda: {"CPU": num_cpus},
        remote=remote,
        wait=lambda refs, num_returns: (refs[-1:], refs[:-1]),
        get=lambda ref: ref[2](),
    )
