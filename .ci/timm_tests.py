#!/usr/bin/env python3
"""timm's own tests of models, on small models of every family of ours.

    python .ci/timm_tests.py                     # downloads the source distribution of the installed timm with pip
    python .ci/timm_tests.py timm-1.0.31/tests/test_models.py

The file is taken as it is; only its lists of models become ours. Prints what pytest says; its last line is
`N passed, M failed, K left out`, and the exit status is 0 if none failed.
"""
import os, re, subprocess, sys, tarfile, tempfile
from pathlib import Path

import timm

FAMILIES = 'eca', 'tost', 'dmst', 'xcit', 'crate', 'crate_alpha', 'cbt'
MODELS = [f'wb_{family}_digits_patch2_8' for family in FAMILIES]

LEFT_OUT = dict(
    test_model_default_cfgs="for models whose features are maps; its sister for transformers, _non_std, is run",
    test_model_forward_features="for models whose features are maps",
    test_model_forward_torchscript="torch.jit.script is deprecated; our operators are not written for it",
    test_model_forward_fx_torchscript="torch.jit.script, as above",
    test_model_features_space2depth_reduction="for one family of timm's",
    test_model_features_pretrained="for models of maps; test_model_load_pretrained loads ours")

# timm's lists, filtered by names and modules of timm's, become ours
OURS = f'''
import wbattn.models

def list_models(*args, pretrained=False, **kwargs):
    models = {MODELS!r}
    if not pretrained: return models
    return [name for name in models if timm.models.is_model_pretrained(name)]
'''

def source(folder):
    "timm's tests/test_models.py, from the source distribution that pip downloads into the folder."
    wanted = [f'timm=={timm.__version__}', '--no-deps', '--no-binary', 'timm']
    subprocess.run([sys.executable, '-m', 'pip', 'download', '-q', *wanted, '-d', folder], check=True)
    archive = next(Path(folder).glob('timm-*.tar.gz'))
    with tarfile.open(archive) as tar:
        member = f"{archive.name.removesuffix('.tar.gz')}/tests/test_models.py"
        return tar.extractfile(member).read().decode()

def ours(text):
    "The same file with our models in place of timm's."
    found = re.search(r'^from timm import .*list_models.*$', text, re.M)
    if not found: sys.exit("timm's file no longer imports list_models from timm: .ci/timm_tests.py needs a look")
    return text[:found.end()] + '\n' + OURS + text[found.end():]

def main():
    with tempfile.TemporaryDirectory() as folder:
        text = Path(sys.argv[1]).read_text(encoding='utf-8') if len(sys.argv) > 1 else source(folder)
        test = Path(folder, 'test_models.py')
        test.write_text(ours(text), encoding='utf-8')
        for name, reason in LEFT_OUT.items(): print(f'left out: {name}: {reason}')
        unwanted = ' or '.join(f'{name}[' for name in LEFT_OUT)
        quiet = ['-q', '-p', 'no:cacheprovider', '-W', 'ignore', '--tb=short', '--color=no']
        command = [sys.executable, '-m', 'pytest', *quiet, '-k', f'wb_ and not ({unwanted})', str(test)]
        env = {k: v for k, v in os.environ.items() if k != 'GITHUB_ACTIONS'}     # timm leaves tests out there
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    print(done.stdout[-20000:], done.stderr[-2000:])
    counts = {word: int(n) for n, word in re.findall(r'(\d+) (passed|failed|error)', done.stdout.splitlines()[-1])}
    failed = counts.get('failed', 0) + counts.get('error', 0)
    print(f"{counts.get('passed', 0)} passed, {failed} failed, {len(LEFT_OUT)*len(MODELS)} left out")
    sys.exit(done.returncode)

if __name__ == '__main__': main()
