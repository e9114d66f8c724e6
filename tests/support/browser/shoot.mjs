// shoot.mjs CHROMIUM URL PNG
//   Writes the first 1,660 pixels of a page, dark, to PNG.
import puppeteer from "puppeteer-core";

const [chromium, url, path] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"],
});
const page = await browser.newPage();
await page.setViewport({ width: 1200, height: 1660 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
await page.goto(url, { waitUntil: "load", timeout: 60_000 });
await page.screenshot({ path });
await browser.close();
