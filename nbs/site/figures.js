// Figures that answer: plain inputs, plain SVG, no library. Each function takes recorded data and returns an element.
// A page puts one in the place of its still picture:
//
//     <script type="module" data-figure="still-steps">
//     import {fetchJson, replaceStill, steps} from "./site/figures.js";
//     replaceStill("still-steps", steps(await fetchJson("records/try_steps.json")));
//     </script>
//
// Where no script runs, the still picture stays.
import {COLORS, draw, el, palette, room} from './base.js';
import {GREY, OPERATORS} from './palette.js';

export {fetchJson, replaceStill} from './base.js';

// An operator has one colour in all figures.
const colour = name => OPERATORS[name] || (name.startsWith('gradient') ? 'currentColor' : GREY);

// A labelled input that calls `ask` at every change; `say` turns its value into words.
function slider(text, values, start, say, ask) {
  const input = el('input', {type: 'range', min: 0, max: values.length - 1, step: 1, value: start, 'aria-label': text});
  const out = el('output', {}, say(values[start]));
  input.addEventListener('input', () => { out.textContent = say(values[+input.value]); ask(); });
  return {box: el('label', {}, text, input, out), get value() { return values[+input.value]; }, get index() { return +input.value; }};
}

function choice(text, names, ask) {
  const select = el('select', {'aria-label': text}, ...names.map((n, i) => el('option', {value: i}, n)));
  select.addEventListener('change', ask);
  return {box: el('label', {}, text, select), get index() { return +select.value; }, get value() { return names[+select.value]; }};
}

const format = v => Math.abs(v) >= 1e6 ? (v/1e6).toPrecision(3) + 'M' : Math.abs(v) >= 1e3 ? Math.round(v).toLocaleString('en') : String(+v.toPrecision(3));

// A time in the unit that people say it in, and a memory likewise.
function inUnits(value, units) {
  let [factor, unit] = units[0];
  for (const [f, u] of units) if (value >= f) [factor, unit] = [f, u];
  return `${+(value/factor).toPrecision(3)}\u00a0${unit}`;
}
const duration = ms => inUnits(ms, [[1, 'ms'], [1e3, 's'], [6e4, 'min'], [3.6e6, 'h'], [8.64e7, 'days']]);
const memory = mb => inUnits(mb, [[1, 'MB'], [1e3, 'GB'], [1e6, 'TB']]);

// The frame: axes with ticks, `log` or linear, and a function from data to pixels.
function frame({width = room(), height = 330, x, y, xlog, ylog, xlabel, ylabel, xticks, yticks, title, right = 14}) {
  const m = {l: 62, r: right, t: 14, b: 44}, f = log => log ? Math.log : v => v;
  const scale = (lim, log, a, b) => v => a + (f(log)(v) - f(log)(lim[0]))/(f(log)(lim[1]) - f(log)(lim[0]))*(b - a);
  const X = scale(x, xlog, m.l, width - m.r), Y = scale(y, ylog, height - m.b, m.t);
  const svg = draw('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'font-size': 13, 'aria-label': title});
  svg.append(draw('title', {}, title));
  for (const v of xticks) svg.append(draw('line', {x1: X(v), x2: X(v), y1: m.t, y2: height - m.b, stroke: 'currentColor', opacity: .12}),
    draw('text', {x: X(v), y: height - m.b + 18, 'text-anchor': 'middle'}, format(v)));
  for (const v of yticks) svg.append(draw('line', {x1: m.l, x2: width - m.r, y1: Y(v), y2: Y(v), stroke: 'currentColor', opacity: .12}),
    draw('text', {x: m.l - 7, y: Y(v) + 4, 'text-anchor': 'end'}, format(v)));
  svg.append(draw('text', {x: (m.l + width - m.r)/2, y: height - 8, 'text-anchor': 'middle'}, xlabel),
    draw('text', {x: 14, y: (m.t + height - m.b)/2, 'text-anchor': 'middle', transform: `rotate(-90 14 ${(m.t + height - m.b)/2})`}, ylabel));
  return {svg, X, Y, x, y};
}

function line(f, xs, ys, color, dash, thick = 2) {
  const inside = v => Math.max(f.y[0], Math.min(f.y[1], v));
  f.svg.append(draw('polyline', {points: xs.map((v, i) => `${f.X(v).toFixed(1)},${f.Y(inside(ys[i])).toFixed(1)}`).join(' '),
    fill: 'none', stroke: color, 'stroke-width': thick, ...(dash ? {'stroke-dasharray': dash} : {})}));
}

const cross = (f, v) => f.svg.append(draw('line', {x1: f.X(v), x2: f.X(v), y1: f.Y(f.y[0]), y2: f.Y(f.y[1]), stroke: 'currentColor', 'stroke-dasharray': '3 3', opacity: .7}));

// A piece of a line as it is drawn, for tables.
function key(color, dash) {
  const piece = draw('svg', {width: 24, height: 10, 'aria-hidden': 'true', style: 'display:inline;vertical-align:middle;margin-right:.5em'});
  piece.append(draw('line', {x1: 0, x2: 24, y1: 5, y2: 5, stroke: color, 'stroke-width': 2, ...(dash ? {'stroke-dasharray': dash} : {})}));
  return piece;
}

// What stands before a row: a line for [color, dash], a square for a color alone.
function mark(color) {
  if (!color) return [];
  if (Array.isArray(color)) return [key(...color)];
  return [el('span', {style: `color:${color};font-weight:bold`, 'aria-hidden': 'true'}, '■ ')];
}

function legend(rows) {
  const table = el('table', {class: 'table table-sm'}, el('thead', {}, el('tr', {}, ...rows.head.map(h => el('th', {}, h)))));
  table.append(el('tbody', {}, ...rows.body.map(([color, ...cells]) => el('tr', {},
    el('td', {}, ...mark(color), cells[0]), ...cells.slice(1).map(c => el('td', {}, c))))));
  return table;
}

function shell(inputs, redraw) {
  const answer = el('div', {class: 'answer'}), box = el('div', {}, el('div', {class: 'ask'}, ...inputs.map(i => i.box)), answer);
  const update = () => answer.replaceChildren(...redraw());
  return {box, update};
}

// 1. One step of every operator: length of the step and ε against the change of a rate.
export function steps(data) {
  let s;
  const ask = () => s.update(), percent = v => (v > 0 ? '+' : '−') + Math.abs(v).toFixed(1) + '\u00a0%';
  const rate = choice('rate', ['R_c(Z | U), in the subspaces', 'R, of all tokens'], ask);
  const eps = slider('ε', data.eps, data.eps.indexOf(0.5), v => String(v), ask);
  const step = slider('step', data.steps, data.steps.indexOf(0.1), v => `${v} of the tokens' length`, ask);
  s = shell([rate, eps, step], () => {
    const of = name => data.steps.map((_, i) => {
      const [R, Rc] = data.rates[name][eps.index][i + 1], [R0, Rc0] = data.rates[name][eps.index][0];
      return 100*(rate.index == 0 ? Rc/Rc0 - 1 : R/R0 - 1);
    });
    const names = Object.keys(data.rates), lines = names.map(of), all = lines.flat();
    const lo = Math.max(-105, Math.min(-10, ...all)), hi = Math.min(200, Math.max(10, ...all)), tick = hi - lo > 120 ? 50 : hi - lo > 60 ? 20 : 10;
    const yticks = []; for (let v = Math.ceil(lo/tick); v*tick <= hi; v++) yticks.push(v*tick);
    const f = frame({x: [data.steps[0], data.steps.at(-1)], y: [lo, hi], xlog: true, xticks: [.01, .1, 1], yticks,
      xlabel: 'length of the step / length of the tokens', ylabel: 'change of the rate (%)', title: 'Change of the chosen rate against the length of one step, for every operator'});
    const dash = i => names[i].startsWith('random') ? '2 4' : i % 2 ? '6 3' : '';
    lines.forEach((l, i) => line(f, data.steps, l, colour(names[i]), dash(i)));
    cross(f, step.value);
    return [f.svg, legend({head: ['operator', 'change after this step', 'turns its sign after step'],
      body: names.map((n, i) => {
        const sign = Math.sign(lines[i][0]), last = lines[i].findIndex(v => Math.sign(v) != sign);
        return [[colour(n), dash(i)], n, percent(lines[i][step.index]), last < 0 ? '–' : String(data.steps[last - 1])];
      })})];
  });
  s.update();
  return s.box;
}

// 2. Membership maps of a trained model, layer by layer and head by head.
export function maps(data) {
  let s;
  const ask = () => s.update(), range = n => [...Array(n).keys()];
  const digit = choice('picture', data.pictures.map((p, i) => `digit ${p.label}`), ask);
  const layer = slider('layer', range(data.layers), 1, v => `${v + 1} of ${data.layers}`, ask);   // the maps that follow the ink most
  const head = slider('head', range(data.heads), 3, v => `${v + 1} of ${data.heads}`, ask);
  digit.box.querySelector('select').value = 3;   // as in the still picture
  s = shell([digit, layer, head], () => {
    const p = data.pictures[digit.index], g = data.grid, small = room() < 640, S = small ? (room() - 60)/3/g : 26, svg = draw('svg', {viewBox: `0 0 ${3*g*S + 60} ${g*S + 30}`, width: 3*g*S + 60, height: g*S + 30, role: 'img', 'font-size': 13,
      'aria-label': 'A digit, the membership of its tokens in the chosen head, and the head that each token belongs to most'});
    svg.append(draw('title', {}, `digit ${p.label}, layer ${layer.value + 1}, head ${head.value + 1}`));
    const grid = (x0, title, color) => { svg.append(draw('text', {x: x0, y: 16}, title));
      range(g*g).forEach(i => svg.append(draw('rect', {x: x0 + (i % g)*S, y: 24 + Math.floor(i/g)*S, width: S - .5, height: S - .5, fill: color(i)}))); };
    const of = h => p.maps[layer.value][h], own = i => range(data.heads).reduce((a, h) => of(h)[i] > of(a)[i] ? h : a, 0);
    grid(0, 'scan', i => `rgb(${Array(3).fill(Math.round(p.pixels[i]*255/16)).join(',')})`);
    grid(g*S + 30, (small ? '' : 'membership in ') + `head ${head.value + 1}`, i => palette(of(head.value)[i]/99));
    grid(2*g*S + 60, small ? 'largest' : 'head with the largest share', i => COLORS[own(i)]);
    const mean = h => of(h).reduce((a, v) => a + v, 0)/of(h).length/99;
    return [svg, legend({head: ['head', 'share of this digit\'s tokens', 'tokens with their largest share here'],
      body: range(data.heads).map(h => [COLORS[h], String(h + 1), (100*mean(h)).toFixed(0) + '\u00a0%', `${range(g*g).filter(i => own(i) == h).length} of ${g*g}`])})];
  });
  s.update();
  return s.box;
}

// 3. Tokens against time and memory. Between measured numbers of tokens: a straight line on logarithmic axes; beyond them: the last one, prolonged.
function at(points, n) {
  let i = points.findIndex(([m]) => m >= n);
  if (i == 0) i = 1;
  if (i < 0) i = points.length - 1;
  const [[a, u], [b, v]] = [points[i - 1], points[i]], t = Math.log(n/a)/Math.log(b/a);
  return Math.exp(Math.log(u) + t*Math.log(v/u));
}

export function cost(data) {
  let s;
  const ask = () => s.update(), names = Object.keys(data.ms);
  const what = choice('show', ['time of one forward call (ms)', 'memory for activations (MB)'], ask);
  const fewest = 16, most = 1048576;
  const input = el('input', {type: 'number', min: fewest, max: most, value: 4096, 'aria-label': 'number of tokens'});
  input.addEventListener('input', ask);
  s = shell([what, {box: el('label', {}, 'your number of tokens n', input)}], () => {
    const asked = Number(input.value);
    if (!(asked >= fewest && asked <= most)) return [el('p', {role: 'alert'}, `A number from ${fewest} to ${most.toLocaleString('en')}, please.`)];
    const n = asked, table = what.index ? data.mb : data.ms, say = what.index ? memory : duration, last = data.n.at(-1), first = data.n[0];
    const values = names.flatMap(k => table[k].map(p => p[1])).concat(names.map(k => at(table[k], n)));
    const lo = Math.min(...values)/1.5, hi = Math.max(...values)*1.5, ticks = [];
    for (let e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e++) if (10**e >= lo) ticks.push(10**e);
    const x = [Math.min(n, first)*.9, Math.max(n, last)*1.1], xticks = [16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576].filter(v => v >= x[0] && v <= x[1]);
    const f = frame({x, y: [lo, hi], xlog: true, ylog: true, xticks, yticks: ticks, xlabel: 'tokens n', ylabel: what.value, title: `${what.value} against the number of tokens, for every operator`});
    names.forEach(k => {
      line(f, table[k].map(p => p[0]), table[k].map(p => p[1]), colour(k));
      const [end, value] = table[k].at(-1);
      if (n > end) line(f, [end, n], [value, at(table[k], n)], colour(k), '2 4');
      if (n < first) line(f, [n, first], [at(table[k], n), table[k][0][1]], colour(k), '2 4');
      f.svg.append(draw('circle', {cx: f.X(n), cy: f.Y(at(table[k], n)), r: 3.5, fill: colour(k)}));
    });
    cross(f, n);
    const rows = names.map(k => [at(table[k], n), colour(k), k]).sort((a, b) => a[0] - b[0]), best = rows[0][0];
    return [f.svg, legend({head: ['operator', what.value, 'times the least'], body: rows.map(([v, c, k]) => [c, k, say(v) + (n > table[k].at(-1)[0] ? ' *' : ''), (v/best).toFixed(1)])}),
      el('p', {}, names.some(k => n > table[k].at(-1)[0]) ? '* Prolonged: measured were ' + names.filter(k => table[k].at(-1)[0] < last).map(k => `${k} to ${table[k].at(-1)[0].toLocaleString('en')} tokens, `).join('') + `the others to ${last.toLocaleString('en')}.` :
        n < first ? `Prolonged: measured from ${first} tokens on.` : 'Between measured points: a straight line on logarithmic axes.')];
  });
  s.update();
  return s.box;
}

// Buttons that show the claims of one paper, of one verdict, or all; papers that have none of them step back.
export function verdicts(names) {
  const rows = [...document.querySelectorAll('main table tr')].filter(r => r.querySelector('.verdict'));
  const verdict = r => r.querySelector('.verdict').textContent.replaceAll('’', "'"), section = r => r.closest('section'), paper = r => section(r).querySelector('h3').textContent;
  const address = new URLSearchParams(location.search), of = {paper, verdict}, told = el('p', {role: 'status'});   // ?verdict=fails can be sent
  const chosen = {paper: address.get('paper') || 'all', verdict: address.get('verdict') || 'all'};
  const fits = (r, kinds) => kinds.every(k => chosen[k] == 'all' || of[k](r) == chosen[k]), groups = [];
  const update = () => {
    for (const r of rows) r.style.display = fits(r, ['paper', 'verdict']) ? '' : 'none';
    for (const e of new Set(rows.map(section))) e.style.display = rows.some(r => section(r) == e && !r.style.display) ? '' : 'none';
    for (const [kind, name, b] of groups) {
      const other = kind == 'paper' ? 'verdict' : 'paper', n = rows.filter(r => fits(r, [other]) && (name == 'all' || of[kind](r) == name)).length;
      b.textContent = `${name} ${n}`;
      b.classList.toggle('active', chosen[kind] == name);
      b.setAttribute('aria-pressed', chosen[kind] == name);
    }
    told.textContent = `${rows.filter(r => !r.style.display).length} of ${rows.length} claims`;
  };
  const buttons = (kind, values) => el('div', {class: 'ask choose', role: 'group', 'aria-label': kind}, ...['all', ...values].map(name => {
    const b = el('button', {class: 'btn btn-sm btn-outline-primary', type: 'button'});
    b.addEventListener('click', () => {
      chosen[kind] = name;
      update();
      history.replaceState(null, '', '?' + new URLSearchParams(chosen) + location.hash);
    });
    groups.push([kind, name, b]);
    return b;
  }));
  const box = el('div', {}, buttons('paper', [...new Set(rows.map(paper))]), buttons('verdict', names), told);
  update();
  return box;
}

// A button that plays a slider from its first value to its last, and pauses; not there for readers who want no motion.
function player(layer, pause = 250) {
  const input = layer.box.querySelector('input'), last = +input.max;
  const play = el('button', {class: 'btn btn-sm btn-outline-primary', type: 'button', 'aria-pressed': 'false'}, '▶ play');
  let timer = null;
  const go = value => { input.value = value; input.dispatchEvent(new Event('input')); };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = '▶ play'; play.setAttribute('aria-pressed', 'false'); };
  const start = () => {
    if (+input.value == last) go(0);
    timer = setInterval(() => { go(+input.value + 1); if (+input.value == last) stop(); }, pause);
    play.textContent = '⏸ pause';
    play.setAttribute('aria-pressed', 'true');
  };
  play.addEventListener('click', () => timer ? stop() : start());
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) play.hidden = true;
  return {box: play};
}

// 4. Tokens of three groups, moved layer by layer by each operator, with the rates before and after, and in grey those of random steps.
export function moving(data) {
  let s, pressed = Object.keys(data.operators)[0];
  const ask = () => s.update(), layers = [...Array(data.layers).keys()];
  const reach = 5 + Math.max(...Object.values(data.operators).flatMap(o => o.points.flat(2)).map(Math.abs));
  const buttons = Object.keys(data.operators).map(name => {
    const b = el('button', {class: 'btn btn-sm btn-outline-primary', type: 'button'}, name);
    b.addEventListener('click', () => { pressed = name; ask(); });
    return b;
  });
  const layer = slider('layer', layers, data.layers - 1, v => `${v} of ${data.layers - 1}`, ask);
  s = shell([{box: el('span', {role: 'group', 'aria-label': 'operator'}, ...buttons)}, layer, player(layer)], () => {
    for (const b of buttons) {
      b.classList.toggle('active', b.textContent == pressed);
      b.setAttribute('aria-pressed', b.textContent == pressed);
    }
    const {points, R, Rc, random} = data.operators[pressed], l = layer.value, side = Math.min(300, room()), minus = (r, rc) => r.map((v, i) => v - rc[i]), reduction = minus(R, Rc), chance = [random.R, random.Rc, minus(random.R, random.Rc)];
    const svg = draw('svg', {viewBox: `${-reach} ${-reach} ${2*reach} ${2*reach}`, width: side, height: side, role: 'img', 'aria-label': `Tokens of three groups after ${l} layers of ${pressed}`});
    points[l].forEach(([x, y], i) => svg.append(draw('circle', {cx: x, cy: -y, r: 3, fill: COLORS[data.labels[i]], opacity: .75})));
    const top = Math.max(...Object.values(data.operators).flatMap(o => [...o.R, ...o.random.R])), half = Math.max(280, Math.min(320, room()));
    const f = frame({width: half, height: 260, right: 30, x: [0, data.layers - 1], y: [0, top], xticks: [0, 4, 8, 12], yticks: [0, 5, 10, 15, 20],
      xlabel: 'layer', ylabel: 'nats', title: `Rates of the tokens over ${data.layers - 1} layers of ${pressed}`});
    chance.forEach((v, i) => line(f, layers, v, GREY, ['', '6 3', ''][i], 1));
    line(f, layers, R, 'currentColor'); line(f, layers, Rc, 'currentColor', '6 3'); line(f, layers, reduction, 'currentColor', '', 4);
    const end = (v, ...name) => f.svg.append(draw('text', {x: f.X(data.layers - 1) + 5, y: f.Y(v.at(-1)) + 4}, ...name));
    end(R, 'R'); end(Rc, 'R', draw('tspan', {dy: 3, 'font-size': 10}, 'c')); end(reduction, 'ΔR');
    cross(f, l);
    return [el('div', {class: 'ask'}, svg, f.svg), legend({head: ['rate (nats)', 'before', `after layer ${l}`, 'random'], body: [['R, of all tokens', R],
      [el('span', {}, 'R', el('sub', {}, 'c'), ', within the groups'), Rc], ['ΔR, their difference', reduction]].map(([k, v], i) => ['', k, v[0].toFixed(1), v[l].toFixed(1), chance[i][l].toFixed(1)])})];
  });
  s.update();
  return s.box;
}

// 5. A picture whose patches merge: regions in their mean colours, the tokens that are left, and what they cost.
export function merging(data) {
  let s;
  const ask = () => s.update(), g = data.grid, p = data.side/g, [whole] = data.frames, layers = [...whole.tokens.keys()];
  const r = slider('tokens merged in each layer, r', data.frames.map(f => f.r), 5, String, ask);
  const layer = slider('after layer', layers, layers.length - 1, v => `${v + 1} of ${layers.length}`, ask);
  const rgb = c => `rgb(${c.map(Math.round).join(',')})`, million = v => (v/1e6).toFixed(1);
  const square = (cells, n, color, title) => {
    const side = Math.min(290, (room() - 24)/2), svg = draw('svg', {viewBox: `0 0 ${n} ${n}`, width: side, height: side, role: 'img', 'aria-label': title, 'shape-rendering': 'crispEdges'});
    svg.append(draw('title', {}, title), ...cells.map((c, i) => draw('rect', {x: i % n, y: Math.floor(i/n), width: 1.02, height: 1.02, fill: rgb(color(c))})));
    return svg;
  };
  const original = square(data.pixels, data.side, c => c, 'Three digits on a hill');
  s = shell([r, layer], () => {
    const f = data.frames[r.index], source = f.sources[layer.value], tokens = f.tokens[layer.value], sums = new Map();
    data.pixels.forEach((c, i) => {
      const t = source[Math.floor(Math.floor(i/data.side)/p)*g + Math.floor(i % data.side/p)], sum = sums.get(t) || [0, 0, 0, 0];
      sums.set(t, [...c.map((v, k) => sum[k] + v), sum[3] + 1]);
    });
    const regions = square(source, g, t => sums.get(t).slice(0, 3).map(v => v/sums.get(t)[3]), `The same picture in ${tokens} regions`);
    const borders = source.map((t, i) => (i % g < g - 1 && source[i + 1] != t ? `M${i % g + 1} ${Math.floor(i/g)}v1` : '') + (i + g < source.length && source[i + g] != t ? `M${i % g} ${Math.floor(i/g) + 1}h1` : ''));
    regions.append(draw('path', {d: borders.join('') || 'M0 0', stroke: '#FFCC00', 'stroke-width': .1, fill: 'none'}));
    return [el('div', {class: 'ask'}, original, regions), el('p', {}, `${tokens} of ${g*g} tokens; in all ${million(f.macs)} million multiply-adds (without merging ${million(whole.macs)}); the score of the large digit is ${(100*f.score).toFixed(1)}\u00a0%.`)];
  });
  s.update();
  return s.box;
}
