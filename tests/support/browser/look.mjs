// look.mjs CHROMIUM OUT URL...
//   Opens each page at three widths, light and dark, and prints what is wrong with it as JSON: what the console says,
//   requests that leave the page, horizontal scrolling, faults that axe-core finds. Writes screenshots and a PDF to OUT.
import { readFileSync, mkdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const WIDTHS = [375, 800, 1600];
const SCHEMES = ["light", "dark"];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const [chromium, out, ...urls] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"],
});

async function look(url, width, scheme, name) {
  const page = await browser.newPage();
  const said = [];
  const requests = [];
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(`error: ${error.message}`));
  page.on("request", (request) => requests.push(request.url()));
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url, { waitUntil: "load", timeout: 60_000 });
  const shape = await page.evaluate(() => ({
    scroll: document.documentElement.scrollWidth,
    client: document.documentElement.clientWidth,
    height: document.documentElement.scrollHeight,
    background: getComputedStyle(document.body).backgroundColor,
    title: document.title,
    scripts: document.scripts.length,
    cut: [...document.querySelectorAll(".tile dd, h1, h2, h3, td, th")]
      .filter((each) => each.scrollWidth > each.clientWidth + 1)
      .map((each) => each.textContent.trim().slice(0, 80)),
  }));
  await page.screenshot({ path: `${out}/${name}-${width}-${scheme}.png`, fullPage: true });
  // All of the page: what is closed is hidden from axe.
  await page.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run({ preload: false })).violations);
  const faults = found.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 5).map((one) => one.html.slice(0, 200)) }));
  await page.close();
  return { url, width, scheme, said, requests, faults, ...shape };
}

async function print(url, name) {
  const page = await browser.newPage();
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await page.goto(url, { waitUntil: "load", timeout: 60_000 });
  await page.emulateMediaType("print");
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const path = `${out}/${name}.pdf`;
  await page.pdf({ path, format: "A4", printBackground: false });
  await page.close();
  return { url, path, background, bytes: statSync(path).size };
}

try {
  const looks = [];
  const prints = [];
  for (const url of urls) {
    const name = decodeURIComponent(url.split("/").pop()).replace(/\.html$/, "");
    for (const width of WIDTHS) for (const scheme of SCHEMES) looks.push(await look(url, width, scheme, name));
    prints.push(await print(url, name));
  }
  console.log(JSON.stringify({ looks, prints }));
} finally {
  await browser.close();
}
