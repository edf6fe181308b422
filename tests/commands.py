"""Commands of discrim in tests: what they print."""

from typer.testing import CliRunner

from discrim.cli import application


def run(*words):
    """Return exit code, output and messages of a command."""
    done = CliRunner().invoke(application(), [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def succeed(*words):
    """Return output and messages of a command that works, each as one line."""
    code, out, err = run(*words)
    assert code == 0, err
    return " ".join(out.split()), " ".join(err.split())


def refuse(*words):
    """Return the message of a command that is refused, as one line."""
    code, _, err = run(*words)
    assert code == 2, err
    return " ".join(err.split())
