import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { canBrowse } from './browser.ts'
import { useControlRoom } from './control-room.ts'
import { until, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'

describe.skipIf(!canBrowse)(
  'the control room without a mouse, or with a screen reader',
  { timeout: 90_000 },
  () => {
    let team: TestTeam
    let worker: Client

    const { open } = useControlRoom(async () => {
      team = await startTeam(
        {},
        {
          agents: { Master: {}, Worker: { parent: 'Master', permissions: { terminate_agent: 'ask' } } },
          limits: { rate: 'off' },
        },
      )
      worker = await team.clientOf('Worker')
      await team.client.command({ type: 'send_message', to: 'Worker', title: 'Hello', content: 'A word' })
      await worker.command({
        ...{ type: 'request_action', action: 'terminate_agent', target: 'Master', reason: 'It is done' },
      })
      await until(async () => (await team.client.humanRequests()).requests.length === 1)
      return team
    })

    const focused = (page: Page) =>
      page.evaluate(
        () =>
          document.activeElement?.getAttribute('aria-label') ??
          document.activeElement?.textContent?.trim() ??
          '',
      )
    const ask = async (question: string) =>
      await worker.command({ type: 'request_user_input', question, choices: 'yes, no' })
    const answerAll = async () => {
      for (const { id, decisions } of (await team.client.humanRequests()).requests)
        if (decisions.includes('answer')) await team.client.decide(id, { decision: 'answer', comment: 'yes' })
    }

    it('returns the focus when a dialog closes', async () => {
      const { page } = await open()
      for (const [opener, title] of [
        ['Stop all', 'Stop everything?'],
        ['Message', 'Write a message'],
        ['Keyboard shortcuts', 'Keyboard'],
      ] as const) {
        const button = page.locator('header.top').getByRole('button', { name: opener, exact: true })
        await button.focus()
        await page.keyboard.press('Enter')
        const dialog = page.getByRole('dialog', { name: title })
        await dialog.waitFor()
        // Tab stays within the dialog.
        for (let count = 0; count < 9; count++) await page.keyboard.press('Tab')
        expect(await dialog.evaluate((it) => it.contains(document.activeElement))).toBe(true)
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })
        await until(() => button.evaluate((it) => it === document.activeElement))
      }
    })

    it('focuses the recipient of a new message first', async () => {
      const { page } = await open()
      await page.keyboard.press('c')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.type('Worker')
      expect(await page.getByLabel('To', { exact: true }).inputValue()).toBe('Worker')
    })

    it('skips the navigation with the first Tab, and closes a side panel with Escape', async () => {
      const { page } = await open()
      await visit(page, 'conversations/msg_1')
      const aside = page.getByRole('complementary', { name: 'msg_1' })
      await aside.waitFor()
      await page.keyboard.press('Tab')
      expect(await focused(page)).toBe('Skip to content')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Tab')
      expect(await page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true)
      await page.locator('.arrow-row').focus()
      await page.keyboard.press('Escape')
      await aside.waitFor({ state: 'detached' })
      await page.getByRole('heading', { name: 'Conversations' }).waitFor()
    })

    it('shows the focus at every step through every view', async () => {
      const { page } = await open()
      const seen = new Set<string>()
      for (const place of [
        ...['team?as=graph', 'team?as=list', 'inbox', 'agents/Worker?tab=mail', 'conversations/msg_1'],
        ...['rules?from=Worker&to=Master', 'audit/1', 'metrics'],
      ]) {
        await visit(page, place)
        await page.locator('main h1').waitFor()
        await expect.poll(() => page.locator('main .loading').count()).toBe(0)
        await page.locator('main').focus()
        for (let count = 0; count < 14; count++) {
          await page.keyboard.press('Tab')
          const step = await page.evaluate(() => {
            const at = document.activeElement
            if (at === null || at === document.body) return undefined
            const name = `${at.tagName}.${at.className}`
            // A link that fills a card shows its focus ring on the card.
            const rings = [at, at.closest('.card')].filter((one) => one !== null)
            const isRinged = rings.some((one) => {
              const { outlineStyle, outlineWidth } = getComputedStyle(one)
              return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 1
            })
            const { width, height } = at.getBoundingClientRect()
            return { name, isRinged: isRinged && width > 1 && height > 1 }
          })
          if (step === undefined) break
          seen.add(step.name)
          expect(step.isRinged, `${step.name} in ${place}`).toBe(true)
        }
      }
      expect(seen.size).toBeGreaterThan(10)
    })

    it('announces a question that arrives while others are open, and reads it when it appears', async () => {
      const { page } = await open()
      await visit(page, 'inbox')
      await page.getByRole('article').first().waitFor()
      await ask('Are you there?')
      await page
        .locator('[role=status]', { hasText: 'Worker asks: Are you there?' })
        .waitFor({ state: 'attached' })
      await answerAll()
      await visit(page, 'audit')
      await page.getByRole('heading', { name: 'Audit' }).waitFor()
      await ask('And now?')
      const dialog = page.getByRole('dialog', { name: 'Worker asks' })
      await dialog.waitFor()
      const read = await dialog.evaluate(
        (it) => document.getElementById(it.getAttribute('aria-describedby') ?? '')?.textContent,
      )
      expect(read).toBe('And now?')
      await page.keyboard.press('Escape')
      await answerAll()
    })

    it('does not animate if the system asks for reduced motion', async () => {
      const { page } = await open({ prepare: (it) => it.emulateMedia({ reducedMotion: 'reduce' }) })
      await visit(page, 'team?as=graph')
      await page
        .getByRole('link', { name: /Worker/ })
        .first()
        .waitFor()
      await team.client.command({ type: 'send_message', to: 'Worker', title: 'Walk', content: 'Slowly' })
      await page.getByText('Walk').first().waitFor()
      expect(await page.evaluate(() => document.getAnimations().map((one) => one.playState))).toEqual([])
    })

    it('has field borders with a contrast of at least 3 to 1', async () => {
      for (const theme of ['dark', 'light'] as const) {
        const { page } = await open({ theme })
        await visit(page, 'inbox')
        await page.locator('textarea').first().waitFor()
        const ratio = await page.evaluate(() => {
          const light = (colour: string) => {
            const [red, green, blue] = (colour.match(/[\d.]+/g) ?? []).map((part) => {
              const share = Number(part) / 255
              return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
            }) as [number, number, number]
            return 0.2126 * red + 0.7152 * green + 0.0722 * blue
          }
          const field = document.querySelector('textarea')!
          const card = getComputedStyle(field.closest('.request')!).backgroundColor
          const both = [light(getComputedStyle(field).borderTopColor), light(card)].toSorted((a, b) => b - a)
          return (both[0]! + 0.05) / (both[1]! + 0.05)
        })
        expect(ratio, theme).toBeGreaterThanOrEqual(3)
      }
    })

    it('shows the number of questions in its title and icon', async () => {
      const { page, complaints } = await open()
      const icon = () => page.locator('link[rel=icon]').getAttribute('href')
      await until(async () => /^\(1\)/.test(await page.title()))
      const one = await icon()
      expect(one).toMatch(/^\/assets\/1-.*\.svg$/)
      const answer = await fetch(team.url + one)
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
      expect(await answer.text()).toContain('1 waiting')
      await ask('A second?')
      await until(async () => /^\/assets\/2-/.test((await icon()) ?? ''))
      await answerAll()
      await until(async () => (await icon()) === one)
      await page.getByRole('button', { name: 'Sign out' }).click()
      await until(async () => (await icon()) === '/favicon.svg')
      expect(complaints).toEqual([])
    })

    it('labels the steps of a plot, also after the data changes', async () => {
      const record = () => {
        const kept = globalThis as unknown as { written: string[] }
        kept.written = []
        const write = CanvasRenderingContext2D.prototype.fillText
        CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
          kept.written.push(text)
          write.call(this, text, ...rest)
        }
      }
      const { page } = await open({ prepare: (it) => it.addInitScript(record) })
      await visit(page, 'metrics?span=15m')
      const show = async (span: string, label: RegExp) => {
        await page.evaluate(() => {
          ;(globalThis as unknown as { written: string[] }).written.length = 0
        })
        await page.getByRole('button', { name: span, exact: true }).click()
        const written = () => page.evaluate(() => (globalThis as unknown as { written: string[] }).written)
        await until(async () => (await written()).some((text) => label.test(text))).catch(async () => {
          throw new Error(`${span} is labelled ${[...new Set(await written())].join(', ')}`)
        })
      }
      const [time, day] = [/^\d\d:\d\d$/, /^[A-Z][a-z]{2} \d+$/]
      await show('7d', day)
      await show('15m', time)
      // Both spans are cached by now, so the plots stay and only their data changes.
      await show('7d', day)
      await show('15m', time)
    })
  },
)
