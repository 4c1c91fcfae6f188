#!/usr/bin/env python3
"""Run notebooks as a reader does who has downloaded one: alone in an empty folder, every cell of it, with wbattn installed.

    python .ci/alone.py nbs/17_eca.ipynb …    # without names: the operators' pages and the stories

Files beside a page come from this checkout instead of GitHub. Prints how long each took, and what came on stderr; exits 1
if one fails or prints there, or if a file of the checkout has changed.
"""
import os, subprocess, sys, tempfile, time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

root = Path(__file__).resolve().parent.parent
nearby = f'from wbattn import pages; pages.SOURCE = {(root/"nbs").as_uri()!r}'

def stories():
    "The operators' pages, how to add one, and everything from 80 on."
    for path in sorted((root/'nbs').glob('*.ipynb')):
        number = path.stem.split('_')[0]
        if number == 'index' or 10 <= int(number) <= 25 or number == '75' or 80 <= int(number) <= 98: yield path

def state_of_checkout():
    return subprocess.run(['git', 'status', '--porcelain'], cwd=root, capture_output=True, text=True, check=True).stdout

def run_alone(path):
    "Run a copy of a notebook; what it prints on stderr, or why it fails."
    nb = nbformat.read(path, 4)
    nb.cells.insert(0, nbformat.v4.new_code_cell(nearby))
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(nb, timeout=1200, kernel_name='python3', resources={'metadata': {'path': folder}},
                                extra_arguments=['--log-level=40'])
        try: client.execute()
        except CellExecutionError as e: return str(e)
    printed = [o.text for c in nb.cells if c.cell_type == 'code' for o in c.outputs if o.get('name') == 'stderr']
    return ''.join(printed)

def main():
    os.environ |= {'NO_COLOR': '1', 'OMP_NUM_THREADS': os.environ.get('OMP_NUM_THREADS', '1')}
    failed, before = [], state_of_checkout()
    for path in [Path(name) for name in sys.argv[1:]] or stories():
        start = time.perf_counter()
        said = run_alone(path)
        print(f'{path.stem:24} {time.perf_counter() - start:6.0f} s  {said or "ok"}', flush=True)
        if said: failed.append(path.stem)
    if state_of_checkout() != before: failed.append('the checkout has changed')
    if failed: sys.exit(f'{len(failed)} failed: ' + ', '.join(failed))

if __name__ == '__main__': main()
