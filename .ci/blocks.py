#!/usr/bin/env python3
"""Commands and code of README.md.

    python .ci/blocks.py ci:main    print the command that stands after <!-- ci:main -->; exit 1 without one
    python .ci/blocks.py            run every block marked sh or python as it stands, each in a process of its own

A block runs in the current folder, which has an environment in .venv; its output is shown if it fails.
"""
import os, re, subprocess, sys
from pathlib import Path

readme = Path('README.md').read_text(encoding='utf-8')
fence = r'^[ \t]*```{}\n(.*?)^[ \t]*```'

def marked_command(marker):
    "The command that stands after a marker."
    found = re.search(re.escape(f'<!-- {marker} -->') + r'.*?' + fence.format(r'[^\n]*'), readme, re.M | re.S)
    lines = [line.strip().removeprefix('$ ') for line in found[1].splitlines() if line.strip()] if found else []
    if not lines: sys.exit(f'README.md has no code block after <!-- {marker} -->')
    if lines[0].startswith('python3 -m venv .venv && .venv/bin/pip install ') and '&& .venv/bin/' in lines[0]: return lines[0]
    sys.exit(f"the command after <!-- {marker} --> doesn't make .venv, install there and run a command of it: {lines[0]}")

def run_block(kind, code):
    "Does a block of the README end well?"
    print(f'```{kind}\n{code}```', flush=True)
    command = ['bash', '-e', '-c', code] if kind == 'sh' else ['.venv/bin/python', '-c', code]
    path = f"{Path('.venv/bin').absolute()}:{os.environ['PATH']}"
    done = subprocess.run(command, env=os.environ | dict(PATH=path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode: print(done.stdout[-6000:])
    return done.returncode == 0

if __name__ == '__main__':
    if sys.argv[1:]: print(marked_command(sys.argv[1]))
    else:
        blocks = re.findall(r'^```(sh|python)\n(.*?)^```', readme, re.M | re.S)
        ended_well = [run_block(kind, code) for kind, code in blocks]
        sys.exit(not all(ended_well))
