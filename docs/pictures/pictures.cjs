// Takes the pictures of the page at the address that `flowlet ui` printed.
const { chromium } = require('playwright-core')

async function main(address) {
  // The processes of Chromium have no sandbox as root.
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid() === 0 ? ['--no-sandbox'] : [] })
  let cookies // the token in the address is good for one visit
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 800 } })
    const page = await context.newPage()
    if (cookies) await context.addCookies(cookies)
    await page.goto(cookies ? address.split('?')[0] : address)
    cookies = await context.cookies()
    await page.screenshot({ path: `docs/pictures/pods-${colorScheme}.png`, clip: { x: 0, y: 0, width: 1280, height: 340 } })
    await page.getByRole('link', { name: /\/web-/ }).click()
    await page.mouse.move(0, 0) // nothing is pointed at
    await page.waitForSelector('#live[data-state=on]')
    const start = page.locator('section', { hasText: 'Last start' })
    await start.scrollIntoViewIfNeeded()
    await start.screenshot({ path: `docs/pictures/start-${colorScheme}.png` })
    await page.locator('section', { hasText: 'Graph' }).first().screenshot({ path: `docs/pictures/graph-${colorScheme}.png` })
    await context.close()
  }
  await browser.close()
}

main(process.argv[2].trim())
