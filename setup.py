"""Packaging of wbattn: everything that can vary stands in settings.ini, and the C core in wbattn/fast/core.c."""
import sys
from configparser import ConfigParser
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

here = Path(__file__).parent
parser = ConfigParser(delimiters=['='])
parser.read(here/'settings.ini', encoding='utf-8')
cfg = parser['DEFAULT']
requirements, dev_requirements = cfg['requirements'].split(), cfg['dev_requirements'].split()
pythons = ['3.11', '3.12', '3.13']

class BuildCore(build_ext):
    "A library for ctypes, not a module of Python's."
    def get_export_symbols(self, ext): return []

flags = [] if sys.platform == 'win32' else '-O3 -fopenmp-simd -fno-math-errno -fno-trapping-math -fvisibility=hidden'.split()
core = Extension('wbattn.fast._core', ['wbattn/fast/core.c'], extra_compile_args=flags, py_limited_api=True, optional=True,
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
    packages=find_packages(include=[cfg['lib_name'], cfg['lib_name'] + '.*'], exclude=[cfg['lib_name'] + '._site']),
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
    exclude_package_data={'': ['*.c']},   # in the source distribution, not in the wheel
    zip_safe=False,
)
