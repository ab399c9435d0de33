"""Scripts with which a shell completes commands, options and names on the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

from ..core import algorithms
from .output import emit

PROGRAM = "private-consensus"
SHELLS = ("bash", "zsh", "fish")

_BASH = """# {program}: completion for {shell}
_private_consensus() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}} words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "$command" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [ ${{#COMPREPLY[@]}} -eq 0 ]; then
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -F _private_consensus {program}
"""


def print_script(options: Namespace) -> None:
    """Print the completion script of a shell."""
    names = dict.fromkeys(("run", "audit", "observers"), algorithms.names())
    script = completion_script(options.commands, options.shell, names)
    contents = {"shell": options.shell, "script": script}
    emit(options, contents, script.rstrip("\n"))


def completion_script(
    commands: Mapping[str, ArgumentParser], shell: str, names: Mapping[str, Sequence[str]]
) -> str:
    """Return the completion script of a shell.

    Parameters
    ----------
    commands : mapping of str to ArgumentParser
        Parsers of all commands by name.
    shell : {"bash", "zsh", "fish"}
        Shell that reads the script.
    names : mapping of str to sequence of str
        Completions of positional arguments, by command.

    Returns
    -------
    str
    """
    words = {
        name: [*names.get(name, ()), *_words(command)] for name, command in sorted(commands.items())
    }
    if shell == "fish":
        return _fish(words)
    cases = "\n".join(
        f'        {name}) words="{" ".join(listed)}" ;;' for name, listed in words.items()
    )
    script = _BASH.format(program=PROGRAM, shell=shell, commands=" ".join(words), cases=cases)
    first = "autoload -U +X bashcompinit && bashcompinit\n"
    return first + script if shell == "zsh" else script


def _words(command: ArgumentParser) -> list[str]:
    """Return the options of a command, and the choices of its positional arguments."""
    words = []
    for action in command._actions:
        words += [text for text in action.option_strings if text.startswith("--")]
        if not action.option_strings and action.choices:
            words += list(map(str, action.choices))
    return words


def _fish(words: Mapping[str, Sequence[str]]) -> str:
    lines = [f"# {PROGRAM}: completion for fish"]
    lines.append(f"complete -c {PROGRAM} -n __fish_use_subcommand -a '{' '.join(words)}'")
    for name, listed in words.items():
        condition = f"'__fish_seen_subcommand_from {name}'"
        lines.append(f"complete -c {PROGRAM} -n {condition} -a '{' '.join(listed)}'")
    return "\n".join(lines) + "\n"
