"Small generated data sets in the true formats of the published ones, windows of scenes, a small model, and operators that know their subspaces, for the tests of these notebooks."

import json, pickle
import numpy as np, torch
import torchvision.datasets as tvd
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple
from PIL import Image
from timm.data import ImageNetInfo
from torch import Tensor, nn
from wbattn import DMSA, ECAttention, MSSA, TSSA, compression_operators, expansion_operator
from wbattn.data import digits_dls
from wbattn.checks import check_choice
from wbattn.data.scenes import scenes
from wbattn.models import create

def tiny_image(
    label, # which class
    size,  # side in pixels
    rng    # numpy's `RandomState`
)->np.ndarray: # `size size 3`, uint8
    "Noisy stripes whose colour and direction depend on the class."
    of_class = np.random.RandomState(label)
    angle = of_class.uniform(0, np.pi)
    colour = of_class.uniform(40, 215, 3)
    place = np.arange(size)*2*np.pi*3/size
    wave = np.sin(place[:, None]*np.sin(angle) + place*np.cos(angle) + rng.uniform(0, 6))
    noise = rng.normal(0, 8, (size, size, 3))
    return (colour + 30*wave[..., None] + noise).clip(0, 255).astype(np.uint8)

def save_jpeg(
    path,  # where to; folders are made
    pixels # `h w 3`, uint8
):
    "Write pixels as a JPEG file."
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, format='JPEG', quality=90)

# Each writer below is given a folder, a function that draws an image of a class, and the labels of each part.

def _cifar(root, draw, labels, dataset, fine):
    folder = root/dataset.base_folder
    folder.mkdir()
    for part, listed in (('train', dataset.train_list), ('test', dataset.test_list)):
        files = [file for file, _ in listed]
        for file, classes in zip(files, np.array_split(labels[part], len(files))):
            rows = np.stack([draw(c).transpose(2, 0, 1).ravel() for c in classes])
            batch = dict(data=rows, batch_label=file, filenames=[f'{i}.png' for i in range(len(classes))])
            if fine: batch |= dict(fine_labels=classes.tolist(), coarse_labels=(classes//5).tolist())
            else: batch |= dict(labels=classes.tolist())
            (folder/file).write_bytes(pickle.dumps(batch))
    names = [f'thing {c}' for c in range(100 if fine else 10)]
    (folder/dataset.meta['filename']).write_bytes(pickle.dumps({dataset.meta['key']: names}))

def _cifar10(root, draw, labels): _cifar(root, draw, labels, tvd.CIFAR10, fine=False)

def _cifar100(root, draw, labels): _cifar(root, draw, labels, tvd.CIFAR100, fine=True)

def _svhn(root, draw, labels):
    from scipy.io import savemat
    for part, classes in labels.items():
        x = np.stack([draw(c) for c in classes], -1)            # h w 3 n
        y = np.where(classes == 0, 10, classes)[:, None].astype(np.uint8)
        _, file, _ = tvd.SVHN.split_list[part]
        savemat(root/file, dict(X=x, y=y))

def _flowers(root, draw, labels):
    from scipy.io import savemat
    folder = root/'flowers-102'
    classes = np.concatenate(list(labels.values()))
    ids = np.arange(1, len(classes) + 1, dtype=np.uint16)
    for i, c in zip(ids, classes): save_jpeg(folder/'jpg'/f'image_{i:05d}.jpg', draw(c))
    savemat(folder/'imagelabels.mat', dict(labels=(classes + 1)[None].astype(np.uint8)))
    train, valid, test = np.split(ids, len(labels))             # as large as each other
    savemat(folder/'setid.mat', dict(trnid=train, valid=valid, tstid=test))

def _pets(root, draw, labels):
    folder = root/'oxford-iiit-pet'
    (folder/'annotations').mkdir(parents=True)
    number = count(1)
    for part, classes in labels.items():
        lines = []
        for c in classes:
            name = f'some_breed_{c}_{next(number)}'
            save_jpeg(folder/'images'/f'{name}.jpg', draw(c))
            lines.append(f'{name} {c+1} {1+c%2} {1+c//2}\n')
        (folder/'annotations'/f'{part}.txt').write_text(''.join(lines))

def _food101(root, draw, labels):
    folder = root/'food-101'
    (folder/'meta').mkdir(parents=True)
    number = count(1)
    for part, classes in labels.items():
        files = {f'dish_{c:03d}': [] for c in range(101)}
        for c in classes:
            dish = f'dish_{c:03d}'
            file = f'{dish}/{next(number)}'
            save_jpeg(folder/'images'/f'{file}.jpg', draw(c))
            files[dish].append(file)
        (folder/'meta'/f'{part}.json').write_text(json.dumps(files))

def _folder(root, draw, labels):
    for part, classes in labels.items():
        for i, c in enumerate(classes): save_jpeg(root/part/f'thing {c}'/f'{i}.jpg', draw(c))

def _imagenet(root, draw, labels):
    wnids = ImageNetInfo().label_names()
    for i, c in enumerate(labels['train'], 1): save_jpeg(root/'train'/wnids[c]/f'{wnids[c]}_{i}.JPEG', draw(c))
    for i, c in enumerate(labels['val'][::-1], 1):
        save_jpeg(root/'val'/wnids[c]/f'ILSVRC2012_val_{i:08d}.JPEG', draw(c))

class Format(NamedTuple):
    "How a data set lies on disk."
    write:Callable     # of a folder, a function that draws, and labels by part
    classes:int|None   # None: as many as one likes
    parts:tuple

_formats = dict(
    cifar10  = Format(_cifar10,  10,   ('train', 'test')),
    cifar100 = Format(_cifar100, 100,  ('train', 'test')),
    svhn     = Format(_svhn,     10,   ('train', 'test', 'extra')),
    flowers  = Format(_flowers,  102,  ('train', 'val', 'test')),
    pets     = Format(_pets,     37,   ('trainval', 'test')),
    food101  = Format(_food101,  101,  ('train', 'test')),
    imagenet = Format(_imagenet, None, ('train', 'val')),
    folder   = Format(_folder,   None, ('train', 'val')))

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
    form = _formats[name]
    root = Path(root)
    if form.classes is not None:
        if classes not in (None, form.classes): raise ValueError(f'classes={classes}; {name} has {form.classes}')
        classes = form.classes
    if root.is_dir() and any(root.iterdir()): raise FileExistsError(f'{str(root)!r} is not empty')
    root.mkdir(parents=True, exist_ok=True)
    if name in ('cifar10', 'cifar100', 'svhn'): size = 32
    rng = np.random.RandomState(seed)
    in_order = np.repeat(np.arange(classes or 3), n_per_class)
    labels = {part: rng.permutation(in_order) for part in form.parts}
    def draw(label): return tiny_image(int(label), size, rng)
    form.write(root, draw, labels)
    return root

def tiny_model(
    family='eca', # 'eca', 'tost', 'dmst', 'crate' or 'xcit'
    **kwargs      # of the model
)->nn.Module:
    "A digits model of a few tens of thousands of parameters, or fewer."
    arguments = dict(embed_dim=32, depth=2, num_heads=2, extra_convs=1)
    if family != 'crate': arguments['cls_attn_layers'] = 1
    if family == 'eca': arguments['rank'] = 4
    return create(f'wb_{family}_digits_patch2_8', **(arguments | kwargs))

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
    op = op.double().requires_grad_(False)
    W = U.transpose(1, 2).flatten(0, 1).double()
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
    E = expansion_operator(Z, 0.5)
    C = compression_operators(Z, Pi, 0.5)
    found = {'ReduNet': Z @ E.T - torch.einsum('nk,k,kde,ne->nd', Pi, Pi.mean(0), C, Z)}
    operators = dict(MSSA=MSSA(d, h, tied=True), TSSA=TSSA(d, h), DMSA=DMSA(d, h, rope=False))
    batch = Z[None]
    for name, op in operators.items(): found[name] = with_bases(op, U)(batch)[0]
    eca = with_bases(ECAttention(d, h, rank=rank), U)
    found['ECA, expansion'] = eca.expand(batch)[0]
    found['ECA, compression'] = -eca.compress(batch)[0]
    return found

def scene_windows(
    part,   # of the scenes: train, valid or test
    n,      # how many
    seed=0, # of the places
    side=32 # of a window, in pixels
)->tuple:   # images `n 3 side side` in [0, 1], classes `n`, masks `n side side`
    "A window of each scene, centred at a pixel of its largest digit."
    made = scenes(part, n, warp=.15 if part == 'train' else 0.)
    rng = np.random.RandomState(seed)
    images, masks = [], []
    for image, label, mask in zip(made.images, made.labels, made.masks):
        inked = np.argwhere(mask == label + 1)
        top, left = (inked[rng.randint(len(inked))] - side//2).clip(0, len(mask) - side)
        rows, columns = slice(top, top + side), slice(left, left + side)
        images.append(image[:, rows, columns])
        masks.append(mask[rows, columns])
    return np.stack(images)/np.float32(255), made.labels, np.stack(masks)
