"""`rowferry completion`: the script that completes commands in a shell."""

import click


@click.command("completion", short_help="Print the script that completes commands in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that lets your shell complete the commands and options of rowferry.

    \b
    Once, for good:
      bash   rowferry completion bash > ~/.local/share/bash-completion/completions/rowferry
      zsh    rowferry completion zsh > "${fpath[1]}/_rowferry"    (and `autoload -U compinit; compinit`)
      fish   rowferry completion fish > ~/.config/fish/completions/rowferry.fish

    \b
    For this shell only:
      source <(rowferry completion bash)
    """
    from click.shell_completion import get_completion_class

    from rowferry_cli import cli

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(found(cli, {}, "rowferry", "_ROWFERRY_COMPLETE").source())
