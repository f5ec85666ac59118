#!/usr/bin/env node
// Render HTML slides to pictures with Playwright.
const { chromium } = require('playwright');
const fs = require('fs');
const path = require('path');

(async () => {
  const browser = await chromium.launch({ args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  for (const file of process.argv.slice(2)) {
    await page.goto('file://' + path.resolve(file));
    await page.evaluate(() => document.fonts.ready);
    const png = await page.screenshot();
    fs.writeFileSync(file.replace(/\.html$/, '.png'), png);
  }
  await browser.close();
})();
