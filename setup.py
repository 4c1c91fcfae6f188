"""Packaging of wbattn: everything that can vary stands in settings.ini, and the C core in nbs/28*.ipynb."""
import ast, sys
from configparser import ConfigParser
from pathlib import Path
from zlib import crc32

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

here = Path(__file__).parent
parser = ConfigParser(delimiters=['='])
parser.read(here/'settings.ini', encoding='utf-8')
cfg = parser['DEFAULT']
requirements, dev_requirements = cfg['requirements'].split(), cfg['dev_requirements'].split()
pythons = ['3.11', '3.12', '3.13']

def core_source():
    "The C core: the strings of wbattn/fast/c_*.py put together"
    modules = [ast.parse((here/f'wbattn/fast/{name}.py').read_text(encoding='utf-8')) for name in ('c_sums', 'c_decoupled', 'c_running')]
    cells = [n for m in modules for n in m.body if isinstance(n, (ast.Assign, ast.AugAssign))]
    return ''.join(ast.literal_eval(n.value) for n in cells if ast.unparse(n).startswith('_source'))

class BuildCore(build_ext):
    "Writes core.c and builds it where there is a compiler."
    def run(self):
        source = core_source()
        (here/'build').mkdir(exist_ok=True)
        for ext in self.extensions: ext.define_macros = [('SOURCE', f'{crc32(source.encode())}u')]   # which text it was built from
        (here/'build/core.c').write_text(source, encoding='utf-8')
        super().run()

    def get_export_symbols(self, ext): return []   # a library for ctypes, not a module of Python's

flags = [] if sys.platform == 'win32' else '-O3 -fopenmp-simd -fno-math-errno -fno-trapping-math -fvisibility=hidden'.split()
core = Extension('wbattn.fast._core', ['build/core.c'], extra_compile_args=flags, py_limited_api=True, optional=True,
                 libraries=[] if sys.platform == 'win32' else ['m'])

setup(
    name=cfg['lib_name'],
    version=cfg['version'],
    description=cfg['description'],
    long_description=(here/'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    keywords=cfg['keywords'],
    author=cfg['author'],
    author_email=cfg['author_email'],
    url=cfg['git_url'],
    license='Apache-2.0',
    classifiers=['Development Status :: 3 - Alpha', 'Intended Audience :: Developers',
                 'Intended Audience :: Science/Research', 'Natural Language :: English',
                 'Topic :: Scientific/Engineering :: Artificial Intelligence']
                + [f'Programming Language :: Python :: {v}' for v in pythons],
    packages=find_packages(include=[cfg['lib_name'], cfg['lib_name'] + '.*']),
    python_requires='>=' + cfg['min_python'],
    install_requires=requirements,
    extras_require={'dev': dev_requirements, 'log': cfg['log_requirements'].split(),
                    'text': cfg['text_requirements'].split()},
    entry_points={'console_scripts': cfg['console_scripts'].split(),
                  'nbdev': [f"{cfg['lib_name']}={cfg['lib_name']}._modidx:d"]},
    ext_modules=[core],
    cmdclass={'build_ext': BuildCore},
    options={'bdist_wheel': {'py_limited_api': 'cp311'}},   # one wheel for all versions of Python
    include_package_data=True,
    zip_safe=False,
)
