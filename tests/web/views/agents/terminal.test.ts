import { describe, expect, it } from 'vitest'
import { canBrowse } from '../../browser.ts'
import { useControlRoom } from '../../control-room.ts'
import { until, violations, visit } from '../../page.ts'
import { startTeam, type TestTeam } from '../../team.ts'

describe.skipIf(!canBrowse)('an agent in the control room', { timeout: 90_000 }, () => {
  let team: TestTeam

  const { open } = useControlRoom(async () => {
    team = await startTeam(
      {
        Master: { script: [{ on: { text: 'Title: Think' }, after_ms: 30_000, say: 'Too late.' }] },
        Talker: {
          script: [{ on: { text: 'Title: Talk' }, after_ms: 50, say: 'These are words of my own.' }],
        },
      },
      { limits: { rate: 'off' } },
    )
    return team
  })

  const send = (to: string, title: string, content: string) =>
    team.client.command({ type: 'send_message', to, title, content })

  it('accepts typing only after take-over, and deliveries wait until release (C2, C27)', async () => {
    const { page, complaints } = await open()
    await visit(page, 'agents/Talker')
    await page.getByRole('button', { name: 'Take over' }).waitFor()
    await page.getByRole('region', { name: 'Terminal of Talker' }).click()
    await page.keyboard.type('not mine yet')
    await page.getByRole('button', { name: 'Take over' }).click()
    await page.getByText('You have taken over').waitFor()
    await page.keyboard.type('a draft of mine')
    await until(async () => (await team.client.terminal('Talker')).screen.includes('a draft of mine'))
    expect((await team.client.terminal('Talker')).screen).not.toContain('not mine yet')
    const receipt = await send('Talker', 'Waits', 'While somebody types')
    const id = receipt.status === 'delivered' ? receipt.message_id : ''
    await until(async () => (await team.client.message(id)).waits_for?.includes('taken over') === true)
    expect((await team.client.terminal('Talker')).screen).not.toContain(`got ${id}`)
    expect(['queued', 'written']).toContain((await team.client.message(id)).delivery)
    for (let key = 0; key < 'a draft of mine'.length; key++) await page.keyboard.press('Backspace')
    await page.getByRole('button', { name: 'Release' }).click()
    await until(async () => (await team.client.message(id)).delivery === 'read')
    expect(complaints).toEqual([])
  })

  it('does not trap the keyboard: Tab passes its terminal, and F6 leaves one that was taken over', async () => {
    const { page } = await open()
    await visit(page, 'agents/Talker')
    const take = page.getByRole('button', { name: 'Take over' })
    await take.focus()
    const isWithin = () => page.evaluate(() => document.activeElement?.closest('.terminal-screen') != null)
    await page.keyboard.press('Tab')
    expect(await isWithin()).toBe(true)
    for (let count = 0; count < 3; count++) await page.keyboard.press('Tab')
    expect(await isWithin()).toBe(false)
    await take.focus()
    await page.keyboard.press('Enter')
    await page.getByText('F6 leaves the terminal').waitFor()
    await until(isWithin)
    await page.keyboard.press('Tab')
    expect(await isWithin()).toBe(true)
    // The agent received it; a remaining draft would hold deliveries.
    await page.keyboard.press('Backspace')
    await page.keyboard.press('F6')
    const release = page.getByRole('button', { name: 'Release' })
    expect(await release.evaluate((it) => it === document.activeElement)).toBe(true)
    await page.keyboard.press('Enter')
    await take.waitFor()
  })

  it('stays with the browser that took it over, not with every session of that person', async () => {
    const [{ page: mine }, { page: other }] = [await open(), await open()]
    for (const page of [mine, other]) await visit(page, 'agents/Talker')
    await mine.getByRole('button', { name: 'Take over' }).click()
    await mine.getByText('You have taken over').waitFor()
    await other.getByText('taken over in another browser').waitFor()
    await other.getByRole('region', { name: 'Terminal of Talker' }).click()
    await other.keyboard.type('from elsewhere')
    await expect(team.client.typeKeys('Talker', { keys: 'by token' })).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect((await team.client.terminal('Talker')).screen).not.toContain('from elsewhere')
    await other.getByRole('button', { name: 'Release' }).click()
    await mine.getByRole('button', { name: 'Take over' }).waitFor()
  })

  it('shows what it said and received, and the scrollback of its terminal', async () => {
    const { page } = await open()
    await send('Talker', 'Talk', 'Say something.')
    // This window shows no terminal, so it keeps no take-over alive.
    const listening = page.waitForRequest((request) => /\/terminal\/events\?for=notice$/.test(request.url()))
    await visit(page, 'agents/Talker?tab=transcript')
    await listening
    await page.getByText('These are words of my own.').first().waitFor()
    await page.getByText('Say something.').first().waitFor()
    await visit(page, 'agents/Talker')
    await page.getByRole('button', { name: 'Scrollback' }).click()
    await page.getByRole('log').getByText('These are words of my own.').waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole('button', { name: 'Scrollback' }).click()
    await page.getByRole('button', { name: 'Screen reader' }).click()
    await page.locator('.xterm-accessibility').waitFor({ state: 'attached' })
    await page.reload()
    await page.locator('.xterm-accessibility').waitFor({ state: 'attached' })
  })

  it('is halted and resumed with everything else, from any view', async () => {
    const { page } = await open()
    await page.getByRole('button', { name: 'Stop all' }).click()
    await page.keyboard.type('too many at once')
    await page.keyboard.press('Enter')
    await page.getByText('Everything is halted', { exact: true }).waitFor()
    expect((await team.client.state()).halt?.reason).toBe('too many at once')
    await page.getByRole('button', { name: 'Resume all' }).click()
    await page.getByText('Everything is halted', { exact: true }).waitFor({ state: 'detached' })
    expect((await team.client.state()).halt).toBeUndefined()
    expect(await page.getByRole('dialog').count()).toBe(0)
  })
})
