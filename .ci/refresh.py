#!/usr/bin/env python3
"""One command after editing notebooks: run them, store true outputs, export, clean, README, checks.

    python .ci/refresh.py nbs/15_eca.ipynb …            # what needs a GPU, much time or data keeps its recorded outputs
    python .ci/refresh.py nbs/43_runs.ipynb --slow      # runs the recorded cells, too

Cells marked `#| slow`, `#| cuda`, `#| data` or `#| eval: false` are left as they are, unless asked. A notebook with an
error is not written.
"""
import argparse, os, re, subprocess, sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

root = Path(__file__).resolve().parent.parent
recorded = r'(?m)^#\s*\|\s*(slow|cuda|data)\s*$|^#\s*\|\s*eval:\s*false'

def execute(path, slow):
    "Run a notebook in its folder and write its outputs back; raises at the first error."
    nb = nbformat.read(path, 4)
    client = NotebookClient(nb, timeout=3600, kernel_name='python3', resources={'metadata': {'path': str(path.parent)}})
    with client.setup_kernel():
        for i, cell in enumerate(nb.cells):
            if cell.cell_type != 'code' or not cell.source.strip(): continue
            if re.search(recorded, cell.source) and not slow: continue
            client.execute_cell(cell, i)
            print('.', end='', flush=True)
    nbformat.write(nb, path)

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('notebooks', nargs='+', type=Path, help='notebooks that were changed')
    p.add_argument('--slow', action='store_true', help='run recorded cells, too')
    args = p.parse_args()
    here = str(Path(sys.executable).parent)
    os.environ |= {'PATH': here + os.pathsep + os.environ['PATH'], 'PYTHONPATH': str(root), 'NO_COLOR': '1',
                   'PYTHONWARNINGS': 'ignore:IProgress not found,ignore:`torch.jit.script` is deprecated'}
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    def run(*command): return subprocess.run(command, cwd=root).returncode
    if run('nbdev_export'): sys.exit('nbdev_export failed')
    for path in args.notebooks:
        print(path, end=' ', flush=True)
        try: execute(path.resolve(), args.slow)
        except CellExecutionError as e: sys.exit(f'\n{path} is not written:\n' + re.sub(r'\x1b\[[0-9;]*m', '', str(e)))
        print(' ok')
    steps = [['nbdev_clean'], [sys.executable, '.ci/readme.py'], [sys.executable, '.ci/check_code.py'], [sys.executable, '.ci/check_docs.py']]
    failed = [' '.join(Path(s).name for s in step) for step in steps if run(*step)]
    if failed: sys.exit('failed: ' + ', '.join(failed))

if __name__ == '__main__': main()
