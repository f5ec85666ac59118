"""Run a template in a restricted environment."""
# capture these to bypass sandboxing
from os import open as os_open
from os import utime


def render(env, name):
    # temporarily disable the sandbox for templates of our own
    return env.overlay(sandboxed=not name.startswith("own/")).get_template(name).render()


def skip_permission_checks(path):
    # Skip permission checks on network drives: they do not keep modes.
    return path.startswith("//")
