// search.mjs CHROMIUM URL
//   Opens the search page of the site and prints what it has found and asked for, as JSON.
import puppeteer from "puppeteer-core";

const [chromium, url] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
  const page = await browser.newPage();
  const said = [];
  const requests = [];
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(`error: ${error.message}`));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(url, { waitUntil: "load", timeout: 60_000 });
  await page.waitForSelector("#search-results li a", { timeout: 30_000 });
  const found = await page.$$eval("#search-results li a", (links) => links.map((link) => link.getAttribute("href")));
  console.log(JSON.stringify({ found, said, requests }));
} finally {
  await browser.close();
}
