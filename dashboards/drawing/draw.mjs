// node draw.mjs CHROMIUM FOLDER DRAWING.json...: draws each document to FOLDER/NAME.png.
import { build } from 'esbuild';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';

const HERE = dirname(fileURLToPath(import.meta.url));
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };
// "4 minutes ago" is meant at the end of the time shown, not at the time of the drawing.
const CLOCK = `{ const Real = Date, ahead = SHOWN.to - Real.now();
  window.Date = class extends Real { constructor(...given) { given.length ? super(...given) : super(Real.now() + ahead); } static now() { return Real.now() + ahead; } }; }`;
const PAGE = `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/fonts.css"><link rel="stylesheet" href="/page.css"><body style="margin:0"><div id="root"></div>
<script>window.__grafana_public_path__='/public/';</script><script src="/shown.js"></script><script>${CLOCK}</script><script src="/page.js"></script>`;
const DEADLINE_MS = 60_000;
const WIDTH = 1632;

async function bundle(folder) {
  const shared = { bundle: true, logLevel: 'error', absWorkingDir: HERE, loader: { '.svg': 'text', '.woff2': 'dataurl', '.woff': 'empty', '.png': 'dataurl', '.ttf': 'empty' } };
  await build({ ...shared, entryPoints: ['page.tsx'], outfile: join(folder, 'page.js'), format: 'iife', platform: 'browser', jsx: 'automatic', minify: true,
    define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' }, alias: { 'monaco-editor': './empty.js', '@monaco-editor/react': './empty.js' } });
  await build({ ...shared, entryPoints: ['fonts.css'], outfile: join(folder, 'fonts.css') });
}

// Icons are files of @grafana/ui; everything else was bundled.
const ICONS = join(HERE, 'node_modules/@grafana/ui/dist/public');
function serve(folder, shown) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url.split('?')[0]);
    const file = path.startsWith('/public/') ? join(ICONS, path.slice('/public/'.length).replace(/^build\//, '')) : join(folder, path);
    const body = path === '/' ? PAGE : path === '/shown.js' ? `window.SHOWN = ${JSON.stringify(shown())}` : existsSync(file) && extname(file) ? readFileSync(file) : null;
    response.writeHead(body === null ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? (path === '/' ? 'text/html' : 'application/octet-stream') });
    response.end(body ?? '');
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function draw(page, address, picture) {
  await page.setViewport({ width: WIDTH, height: 1000 });
  await page.goto(address, { timeout: DEADLINE_MS });
  await page.waitForSelector('#board', { timeout: DEADLINE_MS });
  const height = await page.evaluate(() => Math.ceil(document.getElementById('board').getBoundingClientRect().height));
  await page.setViewport({ width: WIDTH, height });
  await page.waitForNetworkIdle({ idleTime: 1000, timeout: DEADLINE_MS });
  await page.screenshot({ path: picture });
}

const [chromium, folder, ...documents] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
await bundle(folder);
let shown;
const server = await serve(folder, () => shown);
const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--hide-scrollbars'] });
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => { throw error; });
  for (const document of documents) {
    shown = JSON.parse(readFileSync(document, 'utf8'));
    await draw(page, `http://127.0.0.1:${server.address().port}/`, join(folder, `${basename(document, '.json')}.png`));
  }
} finally {
  await browser.close();
  server.close();
}
