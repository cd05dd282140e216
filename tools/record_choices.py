"""Record what a training framework's own argument parser takes after its flags: switches, and flags with fixed words.

    PYTHON_WITH_THE_FRAMEWORK tools/record_choices.py megatron-lm   # goes into facts/launch/training/megatron-lm-….toml

Runs in a Python that has the framework and imports nothing of orrery; no device is needed. Tests hold every launch to
what was recorded, and ``tests/planner/test_launch_parsers.py`` to the parser itself where a Python with it is named.
"""

import argparse
import json
import sys


def megatron_lm() -> argparse.ArgumentParser:
    """Of ``pretrain_gpt.py``."""
    from megatron.training.arguments import add_megatron_arguments  # pyright: ignore[reportMissingImports]

    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_megatron_arguments(parser)
    return parser


def fsdp() -> argparse.ArgumentParser:
    """Of ``accelerate launch``."""
    from accelerate.commands.launch import launch_command_parser  # pyright: ignore[reportMissingImports]

    return launch_command_parser()


PARSERS = {"megatron-lm": megatron_lm, "fsdp": fsdp}


def main() -> None:
    """Print two pieces of a fact file."""
    switches: list[str] = []
    choices: dict[str, list[str]] = {}
    for action in PARSERS[sys.argv[1]]()._actions:
        for flag in (o for o in action.option_strings if o.startswith("--")):
            if action.nargs == 0:
                switches.append(flag)
            elif action.choices and all(isinstance(c, str | int) for c in action.choices):
                choices[flag] = [str(c) for c in action.choices]
    print(f"switches = {json.dumps(sorted(switches), indent=4)}\n\n[choices]")
    for flag, words in sorted(choices.items()):
        print(f"{json.dumps(flag)} = {json.dumps(words)}")


if __name__ == "__main__":
    main()
