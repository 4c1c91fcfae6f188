"Small generated data sets in the true formats of the published ones, a small model, and operators that know their subspaces, for the tests of these notebooks."

import json, pickle
import numpy as np, torch
import torchvision.datasets as tvd
from functools import partial
from pathlib import Path
from PIL import Image
from timm.data import ImageNetInfo
from torch import Tensor, nn
from wbattn import DMSA, ECAttention, MSSA, TSSA, compression_operators, expansion_operator
from wbattn.data import digits_dls
from wbattn.checks import check_choice
from wbattn.models import create

def tiny_image(
    label, # which class
    size,  # side in pixels
    rng    # numpy's `RandomState`
)->np.ndarray: # `size size 3`, uint8
    "Noisy stripes whose colour and direction depend on the class."
    own = np.random.RandomState(label)
    angle, colour, y = own.uniform(0, np.pi), own.uniform(40, 215, 3), np.arange(size)*2*np.pi*3/size
    wave = np.sin(y[:, None]*np.sin(angle) + y*np.cos(angle) + rng.uniform(0, 6))
    return (colour + 30*wave[..., None] + rng.normal(0, 8, (size, size, 3))).clip(0, 255).astype(np.uint8)

def save_jpeg(
    path,  # where to; folders are made
    pixels # `h w 3`, uint8
):
    "Write pixels as a JPEG file."
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, format='JPEG', quality=90)

def _cifar(root, draw, y, tv, fine):
    d = root/tv.base_folder
    d.mkdir()
    for files, labels in ((tv.train_list, y['train']), (tv.test_list, y['test'])):
        for (f, _), part in zip(files, np.array_split(labels, len(files))):
            rows = np.stack([draw(c).transpose(2, 0, 1).ravel() for c in part])
            named = dict(labels=part.tolist())
            if fine: named = dict(fine_labels=part.tolist(), coarse_labels=(part//5).tolist())
            names = [f'{i}.png' for i in range(len(part))]
            (d/f).write_bytes(pickle.dumps(dict(data=rows, batch_label=f, filenames=names, **named)))
    classes = [f'thing {c}' for c in range(100 if fine else 10)]
    (d/tv.meta['filename']).write_bytes(pickle.dumps({tv.meta['key']: classes}))

def _svhn(root, draw, parts):
    from scipy.io import savemat
    for part, labels in parts.items():
        x = np.stack([draw(c) for c in labels], -1)             # h w 3 n
        y = np.where(labels == 0, 10, labels)[:, None].astype(np.uint8)
        savemat(root/tvd.SVHN.split_list[part][1], dict(X=x, y=y))

def _flowers(root, draw, y):
    from scipy.io import savemat
    d, labels = root/'flowers-102', np.concatenate(list(y.values()))
    ids = np.arange(1, len(labels) + 1, dtype=np.uint16)
    for i, c in zip(ids, labels): save_jpeg(d/'jpg'/f'image_{i:05d}.jpg', draw(c))
    parts = dict(zip(('trnid', 'valid', 'tstid'), np.split(ids, len(y)))) # as large as each other
    savemat(d/'imagelabels.mat', dict(labels=(labels + 1)[None].astype(np.uint8)))
    savemat(d/'setid.mat', parts)

def _pets(root, draw, y):
    d, n = root/'oxford-iiit-pet', 0
    (d/'annotations').mkdir(parents=True)
    for part, labels in y.items():
        lines = ''
        for n, c in enumerate(labels, n + 1):
            save_jpeg(d/'images'/f'some_breed_{c}_{n}.jpg', draw(c))
            lines += f'some_breed_{c}_{n} {c+1} {1+c%2} {1+c//2}\n'
        (d/'annotations'/f'{part}.txt').write_text(lines)

def _food101(root, draw, y):
    d, n = root/'food-101', 0
    (d/'meta').mkdir(parents=True)
    for part, labels in y.items():
        files = {f'dish_{c:03d}': [] for c in range(101)}
        for n, c in enumerate(labels, n + 1):
            dish = f'dish_{c:03d}'
            save_jpeg(d/'images'/dish/f'{n}.jpg', draw(c))
            files[dish].append(f'{dish}/{n}')
        (d/'meta'/f'{part}.json').write_text(json.dumps(files))

def _folder(root, draw, y):
    for part, labels in y.items():
        for i, c in enumerate(labels): save_jpeg(root/part/f'thing {c}'/f'{i}.jpg', draw(c))

def _imagenet(root, draw, y):
    wnids = ImageNetInfo().label_names()
    for i, c in enumerate(y['train']): save_jpeg(root/'train'/wnids[c]/f'{wnids[c]}_{i+1}.JPEG', draw(c))
    for i, c in enumerate(y['val'][::-1]): save_jpeg(root/'val'/wnids[c]/f'ILSVRC2012_val_{i+1:08d}.JPEG', draw(c))

_cifar10  = partial(_cifar, tv=tvd.CIFAR10, fine=False)
_cifar100 = partial(_cifar, tv=tvd.CIFAR100, fine=True)
_formats = dict(
    cifar10  = (_cifar10,  10,   ('train', 'test')),
    cifar100 = (_cifar100, 100,  ('train', 'test')),
    svhn     = (_svhn,     10,   ('train', 'test', 'extra')),
    flowers  = (_flowers,  102,  ('train', 'val', 'test')),
    pets     = (_pets,     37,   ('trainval', 'test')),
    food101  = (_food101,  101,  ('train', 'test')),
    imagenet = (_imagenet, None, ('train', 'val')),
    folder   = (_folder,   None, ('train', 'val')))

def write_tiny(
    name,            # 'cifar10', 'cifar100', 'svhn', 'flowers', 'pets', 'food101', 'imagenet' or 'folder'
    root,            # directory to write to: what readers get as `data_dir`
    n_per_class=2,   # images of each class in each part
    classes=None,    # how many, where the data set leaves it open: imagenet, folder (default: 3)
    size=32,         # side of the images, except where it is fixed: CIFAR, SVHN
    seed=0           # of the images
)->Path:             # `root`
    "A tiny generated copy of a data set, in its true format on disk."
    check_choice(name, _formats, "no tiny copy of")
    (write, fixed, parts), root = _formats[name], Path(root)
    if fixed and classes not in (None, fixed): raise ValueError(f"classes={classes}; {name} has {fixed}")
    if root.is_dir() and any(root.iterdir()): raise FileExistsError(f"{str(root)!r} is not empty")
    root.mkdir(parents=True, exist_ok=True)
    if name in ('cifar10', 'cifar100', 'svhn'): size = 32
    rng, y = np.random.RandomState(seed), np.repeat(np.arange(fixed or classes or 3), n_per_class)
    labels = {p: rng.permutation(y) for p in parts}
    write(root, lambda c: tiny_image(int(c), size, rng), labels)
    return root

def tiny_model(
    family='eca', # 'eca', 'tost', 'dmst', 'crate' or 'xcit'
    **kwargs      # of the model
)->nn.Module:
    "A digits model of a few tens of thousands of parameters, or fewer."
    own = {} if family == 'crate' else dict(cls_attn_layers=1)
    if family == 'eca': own['rank'] = 4
    size = dict(embed_dim=32, depth=2, num_heads=2, extra_convs=1)
    return create(f'wb_{family}_digits_patch2_8', **(size | own | kwargs))

def few_digits(
    n=256,   # scans for training
    **kwargs # of `digits_dls`
):           # DataLoaders, on the CPU
    "The digits, of which only some are for training."
    dls = digits_dls(**(dict(device='cpu', seed=0) | kwargs))
    dls.train.n = n
    return dls

def quiet_fit(
    learn,   # a Learner of ours
    **kwargs # of `fit_recipe`
):           # `learn`
    "Train as the recipe says, without a word."
    with learn.no_bar(), learn.no_logging(): return learn.fit_recipe(**kwargs)

def with_bases(
    op, # MSSA, TSSA, DMSA or ECAttention
    U   # bases of its heads `h d p`
)->nn.Module: # `op`, in float64 and without gradients
    "An operator that knows these subspaces; its map back, where it has one of its own, is the transpose."
    op, W = op.double().requires_grad_(False), U.transpose(1, 2).flatten(0, 1).double()
    if hasattr(op, 'compress'): op.compress.U.copy_(W.T)
    else: op.qkv.weight.copy_(W)
    if getattr(op, 'proj', None) is not None:
        op.proj.weight.copy_(W.T)
        op.proj.bias.zero_()
    return op

def updates(
    Z:Tensor,     # tokens `n d`, float64
    Pi:Tensor,    # their groups `n h`, 0 or 1
    U,            # bases of the groups `h d p`
    rank,         # of ECA's sketches
    seed=0        # of what has no bases: DMSA's memberships
)->dict:          # name → `n d`
    "What one step of each operator, with these bases, adds to the tokens."
    torch.manual_seed(seed)
    h, d, _ = U.shape
    made = dict(MSSA=MSSA(d, h, tied=True), TSSA=TSSA(d, h), DMSA=DMSA(d, h, rope=False))
    eca, E, C = with_bases(ECAttention(d, h, rank=rank), U), expansion_operator(Z, 0.5), compression_operators(Z, Pi, 0.5)
    return {'ReduNet': Z @ E.T - torch.einsum('nk,k,kde,ne->nd', Pi, Pi.mean(0), C, Z),
            **{name: with_bases(op, U)(Z[None])[0] for name, op in made.items()},
            'ECA, expansion': eca.expand(Z[None])[0], 'ECA, compression': -eca.compress(Z[None])[0]}
