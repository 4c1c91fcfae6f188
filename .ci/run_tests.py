"""Run the README's nbdev_test and count notebooks from what nbdev itself reports.

    python .ci/run_tests.py COUNT_FILE COMMAND...

Writes `N passed, N failed` to COUNT_FILE. A notebook counts as passed only if nbdev ran at least one of its code
cells; one that skips itself (skip_exec, flags on every cell, no code) is named, and counted as neither.
"""
import os, signal, subprocess, sys, threading
from pathlib import Path

from execnb.nbio import read_nb
from fastcore.basics import str2bool
from nbdev.config import get_config
from nbdev.doclinks import nbglob
from nbdev.frontmatter import FrontmatterProc
from nbdev.process import NBProcessor, nb_lang

limit = 15*60  # seconds; the notebooks should need less than a third of it
count_file, *command = sys.argv[1:]
cfg = get_config()
flags = set(cfg.tst_flags.split())

def runs(fn):
    "Does nbdev_test run any code of notebook `fn`? (The rule is that of nbdev.test.test_nb.)"
    nb = NBProcessor(fn, procs=FrontmatterProc, process=True).nb
    if str2bool(getattr(nb, 'frontmatter_', {}).get('skip_exec', False)) or nb_lang(nb) != 'python': return False
    return any(c.cell_type == 'code' and c.source.strip() and 'nbdev_export(' not in c.source
               and (c.directives_ or {}).get('eval:', [''])[0].lower() != 'false'
               and not flags & (c.directives_ or {}).keys() for c in nb.cells)

on_disk = {p.resolve() for p in cfg.nbs_path.rglob('*.ipynb') if '.ipynb_checkpoints' not in p.parts}
found = {Path(p).resolve() for p in nbglob(as_path=True) if not (Path(p).parent/'.notest').exists()}
broken, idle = set(), {p for p in on_disk - found}
for p in sorted(found):
    try:
        if not runs(p): idle.add(p)
    except Exception as e: broken.add(p); print(f'{p.name} cannot be read: {e}')

print('$', *command, flush=True)
proc = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                        start_new_session=True)
def stop():
    print(f'stopped after {limit} s', flush=True)
    os.killpg(proc.pid, signal.SIGKILL)   # nbdev_test's workers too
killer = threading.Timer(limit, stop)
killer.start()
lines = []
for line in proc.stdout: print(line, end='', flush=True); lines.append(line.rstrip('\n'))
rc = proc.wait(); killer.cancel()

heads = [i for i, l in enumerate(lines) if l.startswith('nbdev Tests Failed On The Following Notebooks:')]
if rc == 0 and 'Success.' in lines: failed = set()
elif heads:
    names = set()
    for l in lines[heads[-1] + 2:]:
        if not l.startswith('\t'): break
        names.add(l.strip())
    failed = {p for p in found if p.name in names}
    if not failed: print('nbdev_test names failures that are no notebook of this project'); failed = set(found)
else:
    print(f'nbdev_test ended with status {rc} and no report: no notebook counts as passed')
    failed = set(found)

failed |= broken
passed = found - failed - idle
for p in sorted(idle - failed): print(f'not run, counted as neither passed nor failed: {p.relative_to(cfg.nbs_path)}')
for p in sorted(failed): print(f'failed: {p.relative_to(cfg.nbs_path)}')
Path(count_file).write_text(f'{len(passed)} passed, {len(failed)} failed\n')
sys.exit(bool(failed or rc or not passed))
