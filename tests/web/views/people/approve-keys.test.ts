import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { canBrowse } from '../../browser.ts'
import { useControlRoom } from '../../control-room.ts'
import { until, visit } from '../../page.ts'
import { startDaemon, type TestDaemon } from '../../team.ts'

const CONFIG = `agents: { Master: {}, Worker: { parent: Master, permissions: { pause_session: ask } }, Other: {} }
limits: { rate: off }
`

describe.skipIf(!canBrowse)('the key that approves', { timeout: 90_000 }, () => {
  let service: TestDaemon
  const { open } = useControlRoom(async () => (service = await startDaemon(CONFIG)))

  /** Creates an action that waits for approval, and returns its request. */
  async function propose(reason: string): Promise<string> {
    const worker = service.client((await service.client().mintToken('Worker')).token)
    const held = await worker.command({
      ...{ type: 'request_action', action: 'pause_session', target: 'Other', reason },
    })
    expect(held.status, JSON.stringify(held)).toBe('held')
    return held.status === 'held' ? held.request_id : ''
  }
  const stateOf = async (id: string) => (await service.client().humanRequest(id)).state
  const approvable = (page: Page, id: string) =>
    page
      .getByRole('article', { name: new RegExp(`^${id},`) })
      .getByRole('button', { name: 'Approve', disabled: false })

  it('approves the selected request that was seen, not the next one that replaces it (S2.16)', async () => {
    const [first, second] = [await propose('the first'), await propose('the second')]
    const { page } = await open()
    await visit(page, 'inbox')
    await approvable(page, first).waitFor()
    // Twice: the second press comes just as another request takes its place.
    await page.evaluate(() => {
      const press = () => dispatchEvent(new KeyboardEvent('keydown', { key: 'a' }))
      const watching = new MutationObserver(() => {
        if (document.querySelectorAll('.request').length > 1) return
        watching.disconnect()
        press()
      })
      watching.observe(document.body, { childList: true, subtree: true })
      press()
    })
    await until(async () => (await stateOf(first)) !== 'open')
    // Until then the keys belong to the first request.
    await page.getByRole('article', { name: new RegExp(`^${first},`) }).waitFor({ state: 'detached' })
    await approvable(page, second).waitFor()
    expect([await stateOf(first), await stateOf(second)]).toEqual(['approved', 'open'])
    await page.keyboard.press('x')
    await until(async () => (await stateOf(second)) === 'rejected')
  })

  it('does nothing right after a question appears, while held down, or below a dialog', async () => {
    const { page } = await open()
    await visit(page, 'audit')
    await page.getByRole('heading', { name: 'Audit' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    const pressed = page.evaluate(
      () =>
        new Promise<void>((resolve) => {
          const watching = new MutationObserver(() => {
            if (document.querySelector('[role=dialog] .request') === null) return
            watching.disconnect()
            dispatchEvent(new KeyboardEvent('keydown', { key: 'a' }))
            resolve()
          })
          watching.observe(document.body, { childList: true, subtree: true })
        }),
    )
    const id = await propose('a surprise')
    await pressed
    await approvable(page, id).waitFor()
    await page.evaluate(() => dispatchEvent(new KeyboardEvent('keydown', { key: 'a', repeat: true })))
    await page.getByRole('button', { name: 'Not now' }).click()
    await approvable(page, id).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('a')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await stateOf(id)).toBe('open')
    await page.keyboard.press('a')
    await until(async () => (await stateOf(id)) === 'approved')
  })

  it('does not approve an action that changed since it was shown', async () => {
    const id = await propose('as it was')
    const { page } = await open()
    await page.route('**/api/v1/human-requests?*', async (route) => {
      const answer = (await (await route.fetch()).json()) as { requests: { action?: { hash: string } }[] }
      for (const { action } of answer.requests) if (action !== undefined) action.hash = 'of another'
      await route.fulfill({ json: answer })
    })
    await page.reload()
    await visit(page, 'inbox')
    await approvable(page, id).waitFor()
    await page.keyboard.press('a')
    await page.locator('.note[data-tone=bad]').waitFor()
    expect(await stateOf(id)).toBe('open')
  })

  it('keeps the input in a card opened by its address when the list loads it', async () => {
    const { page } = await open()
    await visit(page, 'inbox')
    await page.getByText('live', { exact: true }).waitFor()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/api/v1/human-requests?*', async (route) => {
      await released
      await route.continue()
    })
    const id = await propose('to be changed')
    await visit(page, `inbox/${id}`)
    const card = page.getByRole('article', { name: new RegExp(`^${id},`) })
    await card.getByRole('button', { name: 'Edit', disabled: false }).click()
    const field = card.locator('.edit label', { hasText: /^reason/ }).locator('textarea')
    await field.fill('"changed"')
    const listed = page.waitForResponse((response) => response.url().includes('/human-requests?'))
    release()
    await (await listed).finished()
    await propose('another, which shows that the list is read')
    await page.getByText('another, which shows that the list is read').first().waitFor()
    expect(await field.inputValue()).toBe('"changed"')
  })
})
