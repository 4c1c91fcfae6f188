// Draw a digit: the shipped model wb_eca_digits_patch2_8 in plain JavaScript, reading the very file that `pretrained=True` reads.
// Tokens are rows: a matrix is an array of rows. The equations are those of the pages on ECA and on the transformer.
import {el, draw, palette, room, COLORS} from './base.js';

const range = n => [...Array(n).keys()];
const dot = (a, b) => { let s = 0; for (let i = 0; i < a.length; i++) s += a[i]*b[i]; return s; };
const transpose = A => range(A[0].length).map(j => A.map(a => a[j]));
const product = (A, B) => { const columns = transpose(B); return A.map(a => columns.map(b => dot(a, b))); };
const sum = (A, B, s = 1) => A.map((a, i) => a.map((v, j) => v + s*B[i][j]));
const softmax = v => { const m = Math.max(...v), e = v.map(x => Math.exp(x - m)), s = e.reduce((a, b) => a + b, 0); return e.map(x => x/s); };
const softplus = v => Math.log1p(Math.exp(v));

function gelu(x) {  // with erf by Abramowitz and Stegun 7.1.26, to 1.5e-7
  const a = Math.abs(x)/Math.SQRT2, t = 1/(1 + .3275911*a);
  const erf = 1 - t*(.254829592 + t*(-.284496736 + t*(1.421413741 + t*(-1.453152027 + t*1.061405429))))*Math.exp(-a*a);
  return x/2*(1 + Math.sign(x)*erf);
}

function half(h) {  // a number in half precision, from its sixteen bits
  const s = h >> 15 ? -1 : 1, e = h >> 10 & 31, m = h & 1023;
  return s*(e ? 2**(e - 15)*(1 + m/1024) : 2**-14*m/1024);
}

// A file of safetensors in half precision: name → {shape, data}.
export function tensors(buffer) {
  const view = new DataView(buffer), start = 8 + Number(view.getBigUint64(0, true)), res = {};
  const {__metadata__, ...header} = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)));
  for (const [name, {dtype, shape, data_offsets: [from, to]}] of Object.entries(header))
    if (dtype == 'F16') res[name] = {shape, data: range((to - from)/2).map(i => half(view.getUint16(start + from + 2*i, true)))};
  return res;
}

// pixels (64 numbers from 0 to 16) → {logits, maps: layer, head, token}
export function forward(weights, constants, pixels) {
  const vector = name => weights[name].data;
  const matrix = name => { const {shape: [n, m], data} = weights[name]; return range(n).map(i => data.slice(i*m, i*m + m)); };
  const linear = (x, name) => { const W = matrix(name + '.weight'), b = vector(name + '.bias'); return x.map(r => W.map((w, o) => dot(w, r) + b[o])); };
  const norm = (x, name) => { const w = vector(name + '.weight'), b = vector(name + '.bias');
    return x.map(r => { const m = r.reduce((s, v) => s + v, 0)/r.length, d = Math.sqrt(r.reduce((s, v) => s + (v - m)**2, 0)/r.length + 1e-6);
      return r.map((v, i) => (v - m)/d*w[i] + b[i]); }); };

  function convolution(x, side, stride, name) {  // channels of side × side; 3 × 3, then the norm of a batch as learned
    const {shape: [outs, ins], data} = weights[name + '.0.weight'], now = side/stride;
    const [w, b, mean, variance] = ['weight', 'bias', 'running_mean', 'running_var'].map(k => vector(`${name}.1.${k}`));
    return range(outs).map(o => range(now*now).map(at => {
      const top = Math.floor(at/now)*stride - 1, left = at % now*stride - 1;
      let s = 0;
      for (let i = 0; i < ins; i++) for (let k = 0; k < 9; k++) {
        const r = top + Math.floor(k/3), c = left + k % 3;
        if (r >= 0 && c >= 0 && r < side && c < side) s += data[(o*ins + i)*9 + k]*x[i][r*side + c];
      }
      return (s - mean[o])/Math.sqrt(variance[o] + 1e-5)*w[o] + b[o];
    }));
  }

  function projected(Z, S, eps = .01) {  // Z S (SᵀS + ε diag(SᵀS))⁻¹ Sᵀ, by elimination
    const M = product(transpose(S), S).map((r, i) => r.map((v, j) => v*(i == j ? 1 + eps : 1))), B = transpose(S), n = M.length;
    for (let k = 0; k < n; k++) for (let i = 0; i < n; i++) if (i != k) {
      const f = M[i][k]/M[k][k];
      for (let j = k; j < n; j++) M[i][j] -= f*M[k][j];
      B[i] = B[i].map((v, j) => v - f*B[k][j]);
    }
    return product(product(Z, S), B.map((r, k) => r.map(v => v/M[k][k])));
  }

  const heads = 4, width = 24, part = (A, h) => A.map(r => r.slice(h*width, h*width + width)), maps = [];
  function eca(Z, name, omega) {  // α (I − QQᵀ)z − β Σ π_k U_k (I − Q_kQ_kᵀ) U_kᵀz
    const [alpha, beta, eta] = ['alpha_raw', 'beta_raw', 'compress.eta_raw'].map(k => softplus(vector(`${name}.${k}`)[0]));
    const U = matrix(name + '.compress.U'), S = product(transpose(Z), omega), codes = product(Z, U);
    const few = product(transpose(U), S.map(r => r.slice(0, 2)));
    const A = range(heads).map(h => part(codes, h)), C = A.map((a, h) => projected(a, few.slice(h*width, h*width + width)));
    const Pi = Z.map((_, t) => softmax(C.map(c => dot(c[t], c[t])/(2*eta))));
    maps.push(range(heads).map(h => Pi.slice(1).map(p => p[h])));       // of the 16 patches
    const outside = Z.map((_, t) => range(heads).flatMap(h => A[h][t].map((a, i) => Pi[t][h]*(a - C[h][t][i]))));
    return sum(sum(Z, projected(Z, S), -1).map(r => r.map(v => alpha*v)), product(outside, transpose(U)), -beta);
  }

  let x = [pixels.map(v => (v/16 - constants.mean)/constants.std)];
  x = convolution(x, 8, 1, 'patch_embed.proj.0').map(c => c.map(gelu));
  x = convolution(x, 8, 1, 'patch_embed.proj.2').map(c => c.map(gelu));
  x = sum(transpose(convolution(x, 8, 2, 'patch_embed.proj.4')), constants.positions);
  x = [[...vector('cls_token')], ...x];          // the class token, first, goes through all blocks
  for (const i of range(4)) x = sum(x, eca(norm(x, `blocks.${i}.norm1`), `blocks.${i}.attn`, constants.omega[i]));
  return {logits: linear(norm(x.slice(0, 1), 'norm'), 'head')[0], maps};
}

// Strokes (lists of points) → 64 numbers from 0 to 16: as high as the scans, centred, the share of ink in each of 8 × 8 fields.
export function scan(strokes, pen = 4) {
  const points = strokes.flat(), [xs, ys] = [0, 1].map(i => points.map(p => p[i]));
  const [left, top] = [Math.min(...xs), Math.min(...ys)], w = Math.max(...xs) - left, h = Math.max(...ys) - top;
  const scale = (32 - pen)/Math.max(w, h, 1), canvas = el('canvas', {width: 32, height: 32}), c = canvas.getContext('2d');
  c.lineWidth = pen; c.lineCap = c.lineJoin = 'round'; c.strokeStyle = '#fff';
  const at = ([x, y]) => [16 + (x - left - w/2)*scale, 16 + (y - top - h/2)*scale];
  for (const s of strokes) { c.beginPath(); c.moveTo(...at(s[0])); for (const p of s) c.lineTo(...at(p)); c.stroke(); }
  const ink = c.getImageData(0, 0, 32, 32).data;
  return range(64).map(i => range(16).reduce((s, k) => s + ink[4*((4*Math.floor(i/8) + Math.floor(k/4))*32 + 4*(i % 8) + k % 4) + 3], 0)/255);
}

const gray = v => `rgb(${Array(3).fill(Math.round(v)).join(',')})`;
function grid(svg, x0, y0, side, n, color) {
  for (const i of range(n*n)) svg.append(draw('rect', {x: x0 + i % n*side/n, y: y0 + Math.floor(i/n)*side/n, width: side/n, height: side/n, fill: color(i)}));
}

// The figure: draw with the pointer; the answer and the memberships follow each stroke.
export function digit(buffer, constants) {
  const weights = tensors(buffer), size = 224, strokes = [];
  const canvas = el('canvas', {width: size, height: size, role: 'img', 'aria-label': 'Draw a digit here', style: 'background:#000;touch-action:none;cursor:crosshair;border-radius:4px;outline:1px solid #888'});
  const c = canvas.getContext('2d'), answer = el('div', {class: 'answer', 'aria-live': 'polite'});
  const clear = el('button', {class: 'btn btn-sm btn-outline-primary', type: 'button'}, 'Clear');
  const examples = el('span', {}, ...constants.digits.map((d, i) => { const b = el('button', {class: 'btn btn-sm btn-outline-secondary', type: 'button', 'aria-label': `test scan of a ${i}`}, String(i));
    b.addEventListener('click', () => example(d.pixels)); return b; }));
  const wipe = () => { strokes.length = 0; c.clearRect(0, 0, size, size); answer.replaceChildren(); };
  function example(pixels) {
    wipe();
    pixels.forEach((v, i) => { c.fillStyle = gray(v*255/16); c.fillRect(i % 8*size/8, Math.floor(i/8)*size/8, size/8, size/8); });
    show(pixels);
  }
  function show(pixels) {
    const {logits, maps} = forward(weights, constants, pixels), p = softmax(logits), best = p.indexOf(Math.max(...p));
    const W = Math.min(room(), 560), bar = (W - 130)/10, svg = draw('svg', {viewBox: `0 0 ${W} 100`, width: W, height: 100, role: 'img', 'font-size': 13, 'aria-label': 'What the model sees, and the probability of each digit'});
    grid(svg, 0, 10, 80, 8, i => gray(pixels[i]*255/16));
    svg.append(draw('rect', {x: .5, y: 10, width: 79.5, height: 80, fill: 'none', stroke: '#888'}));
    p.forEach((v, i) => svg.append(draw('rect', {x: 110 + i*bar, y: 80 - 70*v, width: bar - 4, height: 70*v, fill: i == best ? COLORS[0] : '#888'}), draw('text', {x: 110 + i*bar + bar/2 - 2, y: 96, 'text-anchor': 'middle'}, i)));
    const side = Math.min(64, (W - 90)/4 - 8), heads = draw('svg', {viewBox: `0 0 ${W} ${4*(side + 8) + 20}`, width: W, height: 4*(side + 8) + 20, role: 'img', 'font-size': 13, 'aria-label': 'Memberships of the 16 tokens, layer by layer and head by head'});
    maps.forEach((layer, l) => { heads.append(draw('text', {x: 0, y: 24 + l*(side + 8) + side/2}, `layer ${l + 1}`));
      layer.forEach((m, h) => { if (!l) heads.append(draw('text', {x: 66 + h*(side + 8), y: 12}, `head ${h + 1}`)); grid(heads, 66 + h*(side + 8), 20 + l*(side + 8), side, 4, i => palette(m[i])); }); });
    answer.replaceChildren(el('p', {}, 'This is a ', el('strong', {}, String(best)), `, with probability ${(100*p[best]).toFixed(0)}\u00a0%.`), svg, el('p', {}, 'Memberships of the 16 tokens in the four heads (yellow: wholly):'), heads);
  }
  const place = e => { const r = canvas.getBoundingClientRect(); return [(e.clientX - r.left)*size/r.width, (e.clientY - r.top)*size/r.height]; };
  canvas.addEventListener('pointerdown', e => { if (!strokes.length) wipe(); strokes.push([place(e)]); e.preventDefault(); });
  canvas.addEventListener('pointermove', e => {
    if (!(e.buttons & 1) || !strokes.length) return;
    const s = strokes.at(-1), from = s.at(-1), to = place(e);
    s.push(to);
    c.lineWidth = 18; c.lineCap = 'round'; c.strokeStyle = '#fff';
    c.beginPath(); c.moveTo(...from); c.lineTo(...to); c.stroke();
    show(scan(strokes));
  });
  clear.addEventListener('click', wipe);
  example(constants.digits[3].pixels);
  const far = Math.max(...constants.digits.map(d => Math.max(...forward(weights, constants, d.pixels).logits.map((v, i) => Math.abs(v - d.logits[i])))));
  return el('div', {}, el('div', {class: 'ask'}, 'Draw in the black square, or take a scan:', examples, clear), el('div', {class: 'ask', style: 'align-items:flex-start'}, canvas, answer),
    el('p', {class: 'small'}, `Checked in this browser: on ten test scans its logits agree with PyTorch's to ${far.toPrecision(1)}.`));
}
