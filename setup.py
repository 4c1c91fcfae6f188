"""Packaging of wbattn: everything that can vary stands in settings.ini."""
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
parser = ConfigParser(delimiters=['='])
parser.read(here/'settings.ini', encoding='utf-8')
cfg = parser['DEFAULT']
requirements, dev_requirements = cfg['requirements'].split(), cfg['dev_requirements'].split()
pythons = ['3.11', '3.12', '3.13']

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
    include_package_data=True,
    zip_safe=False,
)
