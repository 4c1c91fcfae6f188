#!/usr/bin/env node
// What only a browser sees of the rendered pages: errors of scripts, what overflows, contrast, reach by keyboard.
//
//     npm install puppeteer-core@23 mathjax@3 && node .ci/audit.js _docs [page.html …]      (CHROME=… names the browser)
//
// Prints a line a page and width, with what is wrong, and exits 1 if anything is. Not part of .ci/run, which needs no browser.
const fs = require('fs'), http = require('http'), path = require('path');
const modules = process.env.NODE_MODULES || path.join(process.cwd(), 'node_modules');
const puppeteer = require(path.join(modules, 'puppeteer-core'));
const [docs, ...chosen] = process.argv.slice(2);
const TYPES = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json'};
const WIDTHS = [1400, 1000, 420];

function serve(request, response) {
  const file = path.join(docs, decodeURIComponent(request.url.split('?')[0]));
  if (!fs.existsSync(file) || fs.statSync(file).isDirectory()) return response.writeHead(404).end();
  response.writeHead(200, {'content-type': TYPES[path.extname(file)] || 'application/octet-stream'});
  fs.createReadStream(file).pipe(response);
}

// Nothing is fetched from elsewhere: MathJax comes from node_modules.
function answer(request, home) {
  const url = request.url();
  if (url.startsWith(home) || /^(data|blob):/.test(url)) return request.continue();
  const mathjax = url.match(/mathjax(?:@3|\/[\d.]+)\/([^?]*)/), file = mathjax && path.join(modules, 'mathjax', mathjax[1]);
  if (file && fs.existsSync(file)) return request.respond({contentType: TYPES[path.extname(file)] || 'font/woff', headers: {'access-control-allow-origin': '*'}, body: fs.readFileSync(file)});
  return /polyfill/.test(url) ? request.respond({contentType: 'text/javascript', body: ''}) : request.abort();
}

// In the page: equations and tables that are wider than their column, and what sticks out of the window.
function overflow() {
  const equations = [...document.querySelectorAll('main mjx-container[display]')], window_ = document.documentElement.clientWidth;
  const scrolls = e => { for (; e && e.tagName !== 'MAIN'; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
  const tables = [...document.querySelectorAll('main table')].filter(t => t.getBoundingClientRect().right > window_ + 2 && !scrolls(t));
  const inline = [...document.querySelectorAll('main mjx-container:not([display])')].filter(e => !e.closest('table') && e.getBoundingClientRect().width && e.getBoundingClientRect().right > window_ + 1);
  return {inline: inline.length, equations: innerWidth < 600 ? 0 : equations.filter(e => e.scrollWidth > e.clientWidth + 2).length,     // on a phone they scroll, and say so
    tables: tables.length, sideways: document.documentElement.scrollWidth > window_ + 1,
    pressed: innerWidth < 600 ? [...document.querySelectorAll('main button:not(.code-copy-button), main a.btn, main select')].filter(e => e.offsetHeight && e.offsetHeight < 43).length : 0};
}

// In the page: the lowest contrast of letters and their ground (WCAG: 4.5, large letters 3).
function contrast() {
  const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
  const over = ([r, g, b, a = 1], under) => [r, g, b].map((v, i) => v*a + under[i]*(1 - a));
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v/12.92 : ((v + .055)/1.055)**2.4); return .2126*r + .7152*g + .0722*b; };
  function ground(e) {
    const layers = [];
    for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length == 3 || c[3] > 0) layers.push(c); if (c.length == 3) break; }
    return layers.reverse().reduce((under, c) => over(c, under), [255, 255, 255]);
  }
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    if (e.closest('mjx-container, [aria-hidden=true], .skip-link') || !box.width || style.visibility === 'hidden') continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const under = ground(e), isSvg = e instanceof SVGElement, letters = over(parse(isSvg ? style.fill : style.color), under);
    if (isSvg) continue;                                          // letters of plots may stand on what the plot paints
    let opacity = 1;
    for (let p = e; p; p = p.parentElement) opacity *= +getComputedStyle(p).opacity;
    const seen = letters.map((v, i) => v*opacity + under[i]*(1 - opacity)), [low, high] = [light(seen), light(under)].sort((a, b) => a - b);
    const ratio = (high + .05)/(low + .05), large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && +style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5) - .05) found.push(`${ratio.toFixed(1)} ${e.tagName.toLowerCase()}.${e.className} "${e.textContent.trim().slice(0, 25)}"`);
  }
  return [...new Set(found)];
}

async function main() {
  const server = http.createServer(serve);
  await new Promise(ready => server.listen(0, '127.0.0.1', ready));
  const home = `http://127.0.0.1:${server.address().port}/`;
  const browser = await puppeteer.launch({executablePath: process.env.CHROME || '/usr/bin/chromium', headless: true, args: ['--no-sandbox', '--disable-gpu']});
  const pages = chosen.length ? chosen : fs.readdirSync(docs).filter(name => name.endsWith('.html')).sort();
  let wrong = 0;
  for (const name of pages) {
    const tab = await browser.newPage(), said = new Set();
    await tab.setRequestInterception(true);
    tab.on('request', request => answer(request, home));
    tab.on('console', m => { if (['error', 'warning'].includes(m.type()) && !/ERR_FAILED/.test(m.text())) said.add(m.text()); });
    tab.on('pageerror', e => said.add(e.message));
    tab.on('response', r => { if (r.status() >= 400) said.add(`${r.status()} ${r.url()}`); });
    const report = [];
    for (const width of WIDTHS) {
      await tab.setViewport({width, height: 900});
      await tab.goto(home + name, {waitUntil: 'networkidle0', timeout: 90000});
      await tab.evaluate(async () => { await window.MathJax?.startup?.promise; await new Promise(done => setTimeout(done, 300)); });
      const o = await tab.evaluate(overflow);
      const bad = [o.inline && `${o.inline} equations in sentences are cut`, o.equations && `${o.equations} equations overflow`, o.tables && `${o.tables} tables stick out`, o.sideways && 'scrolls sideways', o.pressed && `${o.pressed} buttons below 44 px`].filter(Boolean);
      if (bad.length) report.push(`${width}: ${bad.join(', ')}`);
    }
    await tab.setViewport({width: 1400, height: 900});
    await tab.keyboard.press('Tab');
    if (!await tab.evaluate(() => document.activeElement.classList.contains('skip-link'))) report.push('the first Tab does not reach the skip link');
    if (await tab.evaluate(() => [...document.querySelectorAll('#quarto-sidebar [data-bs-toggle=collapse]')].some(e => e.tabIndex < 0 && e.textContent.trim()))) report.push('sidebar out of reach');
    for (const theme of ['light', 'dark']) {
      await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: theme}]);
      await tab.goto(home + name, {waitUntil: 'networkidle0', timeout: 90000});
      const found = await tab.evaluate(contrast);
      if (found.length) report.push(`${theme}: contrast ${found.slice(0, 3).join('; ')}${found.length > 3 ? ` and ${found.length - 3} more` : ''}`);
    }
    if (said.size) report.push(`console: ${[...said].slice(0, 3).join('; ')}`);
    console.log(`${name}: ${report.join(' | ') || 'ok'}`);
    wrong += report.length > 0;
    await tab.close();
  }
  await browser.close();
  server.close();
  console.log(`${pages.length} pages, ${wrong} with something wrong`);
  process.exit(wrong ? 1 : 0);
}
main();
