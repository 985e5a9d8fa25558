"""`leafcuttr completion`: the script with which a shell completes our command line.

The completion itself is click's; what it offers for topics and groups is in `common.completion`.
"""

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that lets a shell complete commands, options, topics and groups.

    Names of topics, groups and transactional ids come from the broker of --bootstrap-server or
    LEAFCUTTR_BOOTSTRAP_SERVER, with what -X and --client-config say in the line; a broker that does not answer within a
    second, or the seconds of LEAFCUTTR_COMPLETION_TIMEOUT, completes nothing.

    \b
    Examples:
      source <(leafcuttr completion bash)
      leafcuttr completion bash > ~/.local/share/bash-completion/completions/leafcuttr
      leafcuttr completion zsh > ~/.zfunc/_leafcuttr
      leafcuttr completion fish > ~/.config/fish/completions/leafcuttr.fish

    Exit status: 0 done, 2 wrong usage.
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    click.echo(made(root, {}, "leafcuttr", "_LEAFCUTTR_COMPLETE").source())
