// On a phone the panels of a figure stand below one another instead of out of sight at its side.
(() => {
'use strict';
const LARGEST = 1.3, LEGIBLE = .9, SMALLEST = .72, MAPS = .6;   // pixels of the screen to a point of matplotlib

// What an element covers, in points of its figure; what is clipped lies inside of its axes.
function covered(element, svg) {
  const whole = svg.getBoundingClientRect(), {width, height} = svg.viewBox.baseVal, scale = width/whole.width;
  const box = {left: width, top: height, right: 0, bottom: 0};
  for (const leaf of element.querySelectorAll('path, text, use, image')) {
    if (leaf.closest('defs, [clip-path]')) continue;
    const r = leaf.getBoundingClientRect();
    if (!r.width && !r.height) continue;
    box.left = Math.max(0, Math.min(box.left, (r.left - whole.left)*scale));
    box.top = Math.max(0, Math.min(box.top, (r.top - whole.top)*scale));
    box.right = Math.min(width, Math.max(box.right, (r.right - whole.left)*scale));
    box.bottom = Math.min(height, Math.max(box.bottom, (r.bottom - whole.top)*scale));
  }
  return box;
}

// A piece of a figure: some of its elements and the box around them.
function joined(pieces) {
  return {elements: pieces.flatMap(p => p.elements),
          left: Math.min(...pieces.map(p => p.left)), top: Math.min(...pieces.map(p => p.top)),
          right: Math.max(...pieces.map(p => p.right)), bottom: Math.max(...pieces.map(p => p.bottom))};
}

// Pieces from left to right, those that belong together joined.
function grouped(pieces, belong) {
  const found = [];
  for (const piece of pieces.toSorted((a, b) => a.left - b.left)) {
    const last = found.at(-1);
    if (last && belong(last, piece)) found[found.length - 1] = joined([last, piece]);
    else found.push(piece);
  }
  return found;
}

// The lines of a stacked figure, as many columns of panels in each as stay legible; null: something lies across them.
function lines(panels, others, width) {
  const isBar = b => b.right - b.left < 60;            // of colours: it goes with the panel at its left
  const columns = grouped(panels, (a, b) => b.left < a.right - 6 || isBar(b));   // 6: a label may stand out
  const found = grouped(columns, (line, column) => column.right - line.left <= width);
  const body = joined(panels), above = [], below = [];
  for (const other of others) {
    const across = found.filter(line => other.left < line.right && other.right > line.left);
    if (other.bottom <= body.top + 4) above.push(other);
    else if (other.top >= body.bottom - 4) below.push(other);
    else if (across.length > 1) return null;
    else {
      const line = found.indexOf(across[0] ?? found[0]);
      found[line] = joined([found[line], other]);
    }
  }
  return [above, found, below].flatMap((pieces, i) => i == 1 ? pieces : pieces.length ? [joined(pieces)] : []);
}

function drawing(piece, room) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const width = piece.right - piece.left + 4, height = piece.bottom - piece.top + 4;
  svg.setAttribute('class', 'plot');
  svg.setAttribute('aria-hidden', 'true');
  svg.setAttribute('viewBox', `${piece.left - 2} ${piece.top - 2} ${width} ${height}`);
  svg.style.width = `${Math.min(room, LARGEST*width)}px`;
  svg.style.margin = '0 0 .6rem';
  svg.innerHTML = piece.elements.map(element => `<use href="#${element.id}"/>`).join('');
  return svg;
}

let named = 0;
function stack(svg) {
  const figure = svg.querySelector(':scope > g'), room = svg.parentElement.clientWidth, width = svg.viewBox.baseVal.width;
  if (!figure || !room) return;
  const pieces = [...figure.children].slice(1).map(element => ({elements: [element], ...covered(element, svg)}));   // the first is the ground
  const visible = pieces.filter(p => p.right > p.left);
  const panels = visible.filter(p => p.elements[0].matches('.axes')), others = visible.filter(p => !p.elements[0].matches('.axes'));
  const areMaps = panels.length > 4 && panels.every(p => p.right - p.left < 120);     // rows and columns of small pictures stay together
  const stacked = !areMaps && panels.length > 1 && room < LEGIBLE*width ? lines(panels, others, room/LEGIBLE) : null;
  svg.style.width = `${Math.min(LARGEST, Math.max(areMaps ? MAPS : SMALLEST, room/width))*width}px`;
  if (!stacked || stacked.length < 2) return;
  for (const {elements: [element]} of pieces) element.id = `part-${named++}`;
  svg.after(...stacked.map(piece => drawing(piece, room)));
  const store = document.createElementNS(svg.namespaceURI, 'defs');        // drawn where they are used
  store.append(...figure.children);
  figure.append(store);
  svg.setAttribute('viewBox', '0 0 1 1');
  svg.style.cssText = 'position: absolute; width: 1px; height: 1px';       // it still holds the parts, and says what they show
  nameSides(svg);
}

// "Left: …" is above now.
function nameSides(svg) {
  const caption = svg.closest('figure')?.querySelector('figcaption');
  for (const text of caption ? [...caption.childNodes].filter(node => node.nodeType == 3) : [])
    text.data = text.data.replace(/\bLeft:/g, 'Above:').replace(/\bRight:/g, 'Below:');
}

// "scroll →" goes where nothing scrolls any more.
function forgetCue(svg) {
  for (let box = svg.parentElement; box && !box.matches('.cell'); box = box.parentElement) {
    const cue = box.previousElementSibling;
    if (cue?.matches('.scroll-cue') && box.scrollWidth <= box.clientWidth + 8) cue.remove();
  }
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
