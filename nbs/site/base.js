// What every figure is made of: elements, a colour scale, data, and the place of a still picture.
import {CLASSES} from './palette.js';

const NS = 'http://www.w3.org/2000/svg';
export const COLORS = CLASSES;

export function el(tag, attrs = {}, ...kids) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
  e.append(...kids);
  return e;
}

export function draw(tag, attrs = {}, ...kids) {
  const e = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
  e.append(...kids);
  return e;
}

// The width there is: letters stay as large on a phone, the drawing gets narrower.
export const room = () => Math.min(640, Math.max(320, document.documentElement.clientWidth - 56));

export async function fetchJson(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// A membership from 0 to 1 in the colours of matplotlib's cividis.
export function palette(t) {
  const a = [0, 34, 78], b = [124, 123, 120], c = [253, 231, 55], m = (p, q, u) => p.map((v, i) => Math.round(v + (q[i] - v)*u));
  return `rgb(${(t < .5 ? m(a, b, 2*t) : m(b, c, 2*t - 1)).join(',')})`;
}

// The figure stands where its script stands, and replaces the still picture in the cell of this class, with its caption and its anchor.
export function replaceStill(name, element) {
  const cells = [...document.querySelectorAll('.' + name)], still = document.querySelector(`.${name} [id^="fig-"]`);
  const figure = el('figure', {class: 'figure d-block'}, element);
  const place = document.querySelector(`script[data-figure="${name}"]`) ?? cells[0];
  place.before(figure);
  for (const cell of cells) cell.style.display = 'none';
  if (still) {
    figure.id = still.id;
    still.removeAttribute('id');
    figure.append(still.querySelector('figcaption'));
  }
}
