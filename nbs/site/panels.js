// On a phone the panels of a figure stand below one another instead of out of sight at its side.
(() => {
'use strict';

const LARGEST = 1.3, LEGIBLE = .9, SMALLEST = .72;   // pixels of the screen to a point of matplotlib

// What an element covers, in points of its figure; what is clipped lies inside of its axes.
function covered(element, svg) {
  const whole = svg.getBoundingClientRect(), {width, height} = svg.viewBox.baseVal, scale = width/whole.width;
  const box = {left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity};
  for (const leaf of element.querySelectorAll('path, text, use, image')) {
    if (leaf.closest('defs, [clip-path]')) continue;
    const r = leaf.getBoundingClientRect();
    if (!r.width && !r.height) continue;
    box.left = Math.min(box.left, (r.left - whole.left)*scale);
    box.right = Math.max(box.right, (r.right - whole.left)*scale);
    box.top = Math.min(box.top, (r.top - whole.top)*scale);
    box.bottom = Math.max(box.bottom, (r.bottom - whole.top)*scale);
  }
  return {left: Math.max(box.left, 0), top: Math.max(box.top, 0), right: Math.min(box.right, width), bottom: Math.min(box.bottom, height)};
}

const around = boxes => ({left: Math.min(...boxes.map(b => b.left)), top: Math.min(...boxes.map(b => b.top)),
                          right: Math.max(...boxes.map(b => b.right)), bottom: Math.max(...boxes.map(b => b.bottom))});

// Axes that overlap from left to right, by more than a label's margin, are one column.
function columns(boxes) {
  const found = [];
  for (const box of boxes.toSorted((a, b) => a.left - b.left)) {
    const last = found.at(-1);
    if (last && box.left < last.right - 6) found[found.length - 1] = around([last, box]);
    else found.push(box);
  }
  return found;
}

// As many columns to a line as stay legible; null: something beside them would be cut through.
function lines(axes, others, width) {
  const found = [];
  for (const column of columns(axes)) {
    const last = found.at(-1);
    if (last && column.right - last.left <= width) found[found.length - 1] = around([last, column]);
    else found.push(column);
  }
  const body = around(axes);
  const above = others.filter(b => b.bottom <= body.top + 4), below = others.filter(b => b.top >= body.bottom - 4);
  for (const box of others) {
    if (above.includes(box) || below.includes(box)) continue;
    const line = found.find(l => box.left < l.right && box.right > l.left) ?? found[0];
    const cut = found.some(l => l != line && box.left < l.right && box.right > l.left);
    if (cut) return null;
    Object.assign(line, around([line, box]));
  }
  if (above.length) found.unshift(around(above));
  if (below.length) found.push(around(below));
  return found;
}

function show(svg, {left, top, right, bottom}, room) {
  const width = right - left + 4, height = bottom - top + 4;
  svg.setAttribute('viewBox', `${left - 2} ${top - 2} ${width} ${height}`);
  for (const name of ['width', 'height']) svg.removeAttribute(name);          // its proportions are those of the box
  svg.style.width = `${Math.min(room, LARGEST*width)}px`;
  svg.style.margin = '0 0 .6rem';
}

// "scroll →" goes where nothing scrolls any more.
function forgetCue(svg) {
  for (let box = svg.parentElement; box && !box.matches('.cell'); box = box.parentElement) {
    const cue = box.previousElementSibling;
    if (cue?.matches('.scroll-cue') && box.scrollWidth <= box.clientWidth + 8) cue.remove();
  }
}

function stack(svg) {
  const figure = svg.querySelector(':scope > g'), room = svg.parentElement.clientWidth, width = svg.viewBox.baseVal.width;
  if (!figure || !room) return;
  const scale = Math.min(LARGEST, Math.max(SMALLEST, room/width));
  const axes = [...figure.querySelectorAll(':scope > .axes')].map(g => covered(g, svg));
  const others = [...figure.querySelectorAll(':scope > g:not(.axes)')].slice(1).map(g => covered(g, svg)).filter(b => b.right > b.left);   // the first is the ground
  const pieces = axes.length > 1 && room < LEGIBLE*width ? lines(axes, others, room/LEGIBLE) : null;
  if (!pieces || pieces.length < 2) {
    svg.style.width = `${scale*width}px`;
    return;
  }
  const id = figure.id = `figure-${Math.random().toString(36).slice(2)}`;
  let last = svg;
  for (const piece of pieces.slice(1)) {
    const copy = document.createElementNS(svg.namespaceURI, 'svg');
    copy.setAttribute('class', 'plot');
    copy.setAttribute('aria-hidden', 'true');
    copy.innerHTML = `<use href="#${id}"/>`;
    show(copy, piece, room);
    last.after(copy);
    last = copy;
  }
  show(svg, pieces[0], room);
}

for (const svg of document.querySelectorAll('main svg.plot')) {
  // a frame of a slider is measured when it is first seen
  const seen = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    stack(svg);
    forgetCue(svg);
  }, {rootMargin: '3000px'});
  seen.observe(svg);
}
})();
